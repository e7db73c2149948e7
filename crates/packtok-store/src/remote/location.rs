//! The location of an object: its URL, and the metadata that the store reports.

use futures_util::TryStreamExt;
use glob::{MatchOptions, Pattern};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStoreExt, ObjectStoreScheme};
use url::Url;

use crate::remote::connect::{self, Store};
use crate::remote::error::{Error, Result};
use crate::remote::runtime;

/// The location of one object, or the common prefix of several objects.
#[derive(Clone)]
pub struct Location {
    url: String,
    pub(crate) store: Store,
    pub(crate) path: Path,
}

/// The metadata that a store reports for an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// URL of the object.
    pub url: String,
    /// Length of the object in bytes.
    pub bytes: u64,
    /// Identifies this version of the object, if the store provides such an identifier.
    pub version: Option<String>,
}

impl std::fmt::Debug for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Location").field(&self.url).finish()
    }
}

impl Location {
    /// Parses a URL.
    ///
    /// # Errors
    /// The URL does not belong to a supported store or contains credentials, or the environment
    /// lacks a required setting.
    pub fn parse(text: &str) -> Result<Self> {
        let safe_url = without_secrets(text);
        let wrong = |reason: String| Error::NotAStore {
            url: safe_url.clone(),
            reason,
        };
        if safe_url != text {
            return Err(Error::HasCredentials { url: safe_url });
        }
        // `?` and `#` were rejected above, so the rest is the name, used verbatim.
        let (place, name) = split(text);
        let url = Url::parse(place).map_err(|error| wrong(error.to_string()))?;
        let scheme =
            store_scheme(&url).ok_or_else(|| wrong("not an object-store URL".to_owned()))?;
        let store = connect::store(&url, &scheme).map_err(|error| Error::of(&safe_url, &error))?;
        let path = Path::parse(name).map_err(|error| wrong(error.to_string()))?;
        Ok(Self {
            url: safe_url,
            store,
            path,
        })
    }

    /// Starts the thread that sends requests, unless it runs.
    pub(crate) fn start_thread(&self) -> Result<()> {
        start_thread(&self.url)
    }

    /// URL of the location.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Queries the store for the object.
    ///
    /// # Errors
    /// The object does not exist, or the store does not answer.
    pub fn object(&self) -> Result<Object> {
        self.start_thread()?;
        let head = || self.store.objects.head(&self.path);
        let meta = runtime::wait(self.store.ask(head));
        Ok(self.described(&meta.map_err(|error| self.error(&error))?))
    }

    /// Whether the object exists.
    ///
    /// # Errors
    /// The store does not answer.
    pub fn exists(&self) -> Result<bool> {
        match self.object() {
            Ok(_) => Ok(true),
            Err(Error::Absent { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// All objects in this folder and its subfolders, in no particular order.
    ///
    /// # Errors
    /// The store does not answer or does not support listing.
    pub fn list(&self) -> Result<Vec<Object>> {
        self.start_thread()?;
        let list = || {
            let objects = self.store.objects.list(Some(&self.path));
            objects.try_collect::<Vec<_>>()
        };
        let objects = runtime::wait(self.store.ask(list)).map_err(|error| self.error(&error))?;
        Ok(objects.iter().map(|meta| self.described(meta)).collect())
    }

    /// All objects whose URLs match this glob pattern, in no particular order.
    ///
    /// # Errors
    /// The pattern is invalid; or as [`Location::list`].
    pub fn matching(text: &str) -> Result<Vec<Object>> {
        let (place, name) = split(text);
        // List the deepest folder whose path contains no wildcard.
        let plain = name.find(['*', '?', '[']).unwrap_or(name.len());
        let folder = name[..plain].rfind('/').map_or("", |end| &name[..end]);
        Self::matches(text, Self::parse(&format!("{place}{folder}"))?.list()?)
    }

    /// Filters `objects` by a glob pattern on their URLs.
    ///
    /// # Errors
    /// The pattern is invalid.
    pub fn matches(text: &str, mut objects: Vec<Object>) -> Result<Vec<Object>> {
        let pattern = Pattern::new(split(text).1).map_err(|error| Error::NotAStore {
            url: text.to_owned(),
            reason: error.to_string(),
        })?;
        let options = MatchOptions {
            case_sensitive: true,
            require_literal_separator: true,
            require_literal_leading_dot: true,
        };
        objects.retain(|object| pattern.matches_with(split(&object.url).1, options));
        Ok(objects)
    }

    /// Whether the name of an object has the form of a glob pattern.
    pub fn is_pattern(text: &str) -> bool {
        text.contains(['*', '?', '['])
    }

    /// Deletes the object; succeeds if it does not exist.
    ///
    /// # Errors
    /// The store rejects the request.
    pub fn delete(&self) -> Result<()> {
        self.start_thread()?;
        let delete = || self.store.objects.delete(&self.path);
        match runtime::wait(self.store.ask(delete)) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.error(&error)),
        }
    }

    pub(crate) fn error(&self, error: &object_store::Error) -> Error {
        Error::of(&self.url, error)
    }

    fn described(&self, meta: &ObjectMeta) -> Object {
        Object {
            url: format!(
                "{}/{}",
                split(&self.url).0.trim_end_matches('/'),
                meta.location
            ),
            bytes: meta.size,
            version: meta.e_tag.clone(),
        }
    }
}

/// Whether a URL has a scheme that this crate reads.
pub fn is_store(url: &str) -> bool {
    let (scheme, _) = url.split_once("://").unwrap_or_default();
    Url::parse(&format!("{scheme}://host/")).is_ok_and(|url| store_scheme(&url).is_some())
}

/// Checks that a URL that the caller reads contains no credentials.
///
/// # Errors
/// The URL contains a user, a password or a query.
pub fn check_foreign(url: &str) -> Result<()> {
    let (_, rest) = url.split_once("://").unwrap_or_default();
    let host = rest.split('/').next().unwrap_or_default();
    // After a `:`, a password may contain any character.
    let has_user = host.contains('@') || (host.contains(':') && rest.contains('@'));
    if has_user {
        let (scheme, _) = url.split_once("://").unwrap_or_default();
        let url = format!("{scheme}://…");
        return Err(Error::HasCredentials { url });
    }
    match url.split_once(['?', '#']) {
        Some((url, _)) => Err(Error::HasCredentials {
            url: url.to_owned(),
        }),
        None => Ok(()),
    }
}

/// The kind of store of a URL.
fn store_scheme(url: &Url) -> Option<ObjectStoreScheme> {
    let (scheme, _) = ObjectStoreScheme::parse(url).ok()?;
    let is_here = matches!(scheme, ObjectStoreScheme::Local | ObjectStoreScheme::Memory);
    (!is_here).then_some(scheme)
}

/// Splits a URL into the store, with its last `/`, and the name of the object in it.
fn split(url: &str) -> (&str, &str) {
    let store = url.find("://").map_or(0, |at| at + 3);
    match url[store..].find('/') {
        Some(slash) => url.split_at(store + slash + 1),
        None => (url, ""),
    }
}

/// A URL without secrets. The query is removed; if an `@` suggests a password, the whole rest is
/// removed, because passwords may contain any character.
fn without_secrets(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    // Azure's own form has the container before the `@`.
    let is_azure = scheme.starts_with("abfs");
    if rest.contains('@') && !is_azure {
        format!("{scheme}://…")
    } else {
        format!(
            "{scheme}://{}",
            rest.split(['?', '#']).next().unwrap_or_default()
        )
    }
}

/// Starts the thread that sends requests. `url` is the URL of the first request, for errors.
pub(crate) fn start_thread(url: &str) -> Result<()> {
    let started = runtime::started().map_err(|source| Error::NoThread {
        url: url.to_owned(),
        source,
    });
    started.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_a_url_are_rejected_and_not_shown() {
        for (url, safe_url) in [
            ("s3://key:secret@bucket/x", "s3://…"),
            ("https://host/x?X-Amz-Signature=secret", "https://host/x"),
            ("https://host/x#secret", "https://host/x"),
            ("https://u:se/cr?et@host/secret*.jsonl", "https://…"),
            ("https://host/x?mail=a@b&token=secret", "https://…"),
            ("https://host/x?token=secret#secret", "https://host/x"),
        ] {
            let error = Location::parse(url).unwrap_err();
            assert!(matches!(error, Error::HasCredentials { .. }), "{error}");
            assert!(error.to_string().starts_with(&format!("{safe_url}: ")));
            assert!(!error.to_string().contains("secret"));
        }
    }

    #[test]
    fn credentials_in_urls_of_other_schemes_are_rejected_and_revisions_are_not() {
        for (url, safe_url) in [
            ("sftp://me@host/x", "sftp://…"),
            ("sftp://me:se/cret@host/x", "sftp://…"),
            ("hf://datasets/a/b?token=secret", "hf://datasets/a/b"),
        ] {
            let error = check_foreign(url).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{safe_url}: ")), "{error}");
        }
        for url in [
            "sftp://host:22/x",
            "hf://datasets/a/b@main/x",
            "sftp://h/a@b",
        ] {
            check_foreign(url).unwrap();
        }
    }

    #[test]
    fn unsupported_urls_are_rejected() {
        for url in ["file:///etc/passwd", "memory:///x", "ftp://host/x", "s3://"] {
            let error = Location::parse(url).unwrap_err();
            assert!(matches!(error, Error::NotAStore { .. }), "{error}");
            assert!(!is_store(url) || url == "s3://", "{url}");
        }
        for url in [
            "s3://bucket/x",
            "gs://b/x",
            "az://b/x",
            "http://h/x",
            "https://h:1/x",
        ] {
            assert!(is_store(url), "{url}");
        }
    }

    #[test]
    fn object_names_are_used_verbatim() {
        assert_eq!(split("s3://bucket/a/b%20c"), ("s3://bucket/", "a/b%20c"));
        assert_eq!(split("s3://bucket"), ("s3://bucket", ""));
    }
}
