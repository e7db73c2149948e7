//! Profiles in the files of AWS's own tools, `~/.aws/credentials` and `~/.aws/config`, which the
//! `object_store` library does not read.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Keys of a profile that select other sources of credentials, which are not supported.
const OTHER_MEANS: [&str; 5] = [
    "sso_session",
    "sso_start_url",
    "role_arn",
    "credential_process",
    "credential_source",
];

/// The keys of a profile, and the names of the variables that they stand for.
const VARIABLES: [(&str, &str); 5] = [
    ("aws_access_key_id", "AWS_ACCESS_KEY_ID"),
    ("aws_secret_access_key", "AWS_SECRET_ACCESS_KEY"),
    ("aws_session_token", "AWS_SESSION_TOKEN"),
    ("region", "AWS_REGION"),
    ("endpoint_url", "AWS_ENDPOINT_URL"),
];

/// The reason why a profile cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProfileError {
    /// No file has it.
    #[error(
        "AWS_PROFILE is {name}, which is neither in {} nor in {}; correct it, or remove it from the environment",
        credentials.display(), config.display()
    )]
    NoSuchProfile {
        name: String,
        credentials: PathBuf,
        config: PathBuf,
    },
    /// The files do not contain the credentials of the profile.
    #[error(
        "profile {name} of ~/.aws obtains its credentials by {key}, which packtok does not support; export them to the environment with aws configure export-credentials"
    )]
    OtherMeans { name: String, key: &'static str },
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
}

/// Adds the settings of the chosen profile to `variables`. Existing variables take precedence.
///
/// # Errors
/// [`ProfileError`].
pub(crate) fn add_profile(
    variables: &mut HashMap<String, String>,
    home: Option<&Path>,
) -> Result<(), ProfileError> {
    // Roles of AWS's container services that use a token take precedence over files, as in AWS's
    // own tools.
    let is_set = |name| variables.contains_key(name);
    if is_set("AWS_ACCESS_KEY_ID") || is_set("AWS_WEB_IDENTITY_TOKEN_FILE") {
        return Ok(());
    }
    let path = |variable: &str, name: &str| {
        let in_home = || home.map(|home| home.join(".aws").join(name));
        variables.get(variable).map(PathBuf::from).or_else(in_home)
    };
    let (Some(credentials), Some(config)) = (
        path("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
        path("AWS_CONFIG_FILE", "config"),
    ) else {
        return Ok(());
    };
    let chosen = ["AWS_PROFILE", "AWS_DEFAULT_PROFILE"]
        .iter()
        .find_map(|name| variables.get(*name).cloned());
    let name = chosen.as_deref().unwrap_or("default");
    let mut values = section(&config, |title| {
        title.strip_prefix("profile ").unwrap_or(title).trim() == name
    })?;
    let secret = section(&credentials, |title| title == name)?;
    if values.is_none() && secret.is_none() && chosen.is_some() {
        return Err(ProfileError::NoSuchProfile {
            name: name.to_owned(),
            credentials,
            config,
        });
    }
    values
        .get_or_insert_default()
        .extend(secret.unwrap_or_default());
    let values = values.unwrap_or_default();
    let other = OTHER_MEANS.iter().find(|key| values.contains_key(**key));
    if let Some(key) = other
        && !values.contains_key("aws_access_key_id")
    {
        return Err(ProfileError::OtherMeans {
            name: name.to_owned(),
            key,
        });
    }
    for (key, variable) in VARIABLES {
        if let Some(value) = values.get(key) {
            variables
                .entry(variable.to_owned())
                .or_insert_with(|| value.clone());
        }
    }
    Ok(())
}

/// The values of the first section of an INI file with a matching title; `None` if no title
/// matches.
fn section(
    path: &Path,
    fits: impl Fn(&str) -> bool,
) -> Result<Option<HashMap<String, String>>, ProfileError> {
    let text = match fs::read(path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => {
            return Err(ProfileError::Unreadable {
                path: path.to_owned(),
                source,
            });
        }
    };
    let mut values = None;
    let mut is_inside = false;
    for line in text.lines() {
        if let Some(title) = line
            .trim()
            .strip_prefix('[')
            .and_then(|title| title.strip_suffix(']'))
        {
            is_inside = values.is_none() && fits(title.trim());
            if is_inside {
                values = Some(HashMap::new());
            }
            continue;
        }
        // An indented line continues the previous value. No value of `VARIABLES` has continuation
        // lines.
        let is_other = line.starts_with([' ', '\t', '#', ';']);
        if let (true, false, Some((key, value)), Some(values)) =
            (is_inside, is_other, line.split_once('='), &mut values)
        {
            values.insert(key.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "# mine\n[default]\nregion = eu-west-1\ns3 =\n  region = wrong\n\n[profile work]\nregion=us-west-2\nendpoint_url = http://127.0.0.1:1\n[profile sso]\nsso_session = x\n";
    const CREDENTIALS: &str = "[default]\naws_access_key_id = A\naws_secret_access_key = a=b\n\n[work]\naws_access_key_id=W\naws_secret_access_key=w\naws_session_token=t\n";

    fn with(settings: &[(&str, &str)]) -> Result<HashMap<String, String>, String> {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join(".aws")).unwrap();
        fs::write(home.path().join(".aws/config"), CONFIG).unwrap();
        fs::write(home.path().join(".aws/credentials"), CREDENTIALS).unwrap();
        let settings = settings
            .iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned()));
        let mut variables = settings.collect();
        let added = add_profile(&mut variables, Some(home.path()));
        let message = |error: ProfileError| {
            error
                .to_string()
                .replace(home.path().to_str().unwrap(), "~")
        };
        added.map(|()| variables).map_err(message)
    }

    fn expected(values: &[(&str, &str)]) -> HashMap<String, String> {
        let values = values.iter();
        values
            .map(|&(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    #[test]
    fn the_default_profile_adds_what_the_environment_lacks() {
        assert_eq!(
            with(&[("AWS_REGION", "mine")]).unwrap(),
            expected(&[
                ("AWS_REGION", "mine"),
                ("AWS_ACCESS_KEY_ID", "A"),
                ("AWS_SECRET_ACCESS_KEY", "a=b"),
            ])
        );
        let key = [("AWS_ACCESS_KEY_ID", "E"), ("AWS_PROFILE", "work")];
        assert_eq!(with(&key).unwrap(), expected(&key));
    }

    #[test]
    fn a_named_profile_has_values_of_both_files() {
        assert_eq!(
            with(&[("AWS_PROFILE", "work")]).unwrap(),
            expected(&[
                ("AWS_PROFILE", "work"),
                ("AWS_ACCESS_KEY_ID", "W"),
                ("AWS_SECRET_ACCESS_KEY", "w"),
                ("AWS_SESSION_TOKEN", "t"),
                ("AWS_REGION", "us-west-2"),
                ("AWS_ENDPOINT_URL", "http://127.0.0.1:1"),
            ])
        );
    }

    #[test]
    fn profiles_that_cannot_be_used_are_named() {
        assert_eq!(
            with(&[("AWS_PROFILE", "none")]).unwrap_err(),
            "AWS_PROFILE is none, which is neither in ~/.aws/credentials nor in ~/.aws/config; correct it, or remove it from the environment"
        );
        assert_eq!(
            with(&[("AWS_PROFILE", "sso")]).unwrap_err(),
            "profile sso of ~/.aws obtains its credentials by sso_session, which packtok does not support; export them to the environment with aws configure export-credentials"
        );
    }
}
