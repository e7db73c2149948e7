//! Lists the files of a URL: objects of a store, or files that the caller reads.

use packtok_store::{
    Error as StoreError, Location, Object, Result as StoreResult, check_foreign, is_store,
};

use crate::ForeignFiles;

/// The service that lists the files of a URL.
pub(crate) enum Listing<'a> {
    Store(&'a str, Box<Location>),
    Foreign(&'a str, &'a ForeignFiles),
}

impl<'a> Listing<'a> {
    /// The listing of `url`. `files` reads the URLs that no store supports.
    pub(crate) fn of(url: &'a str, files: Option<&'a ForeignFiles>) -> StoreResult<Self> {
        if !is_store(url) {
            if let Some(files) = files {
                return Ok(Self::Foreign(url, files));
            }
            if let Some(files) = ForeignFiles::of_all() {
                check_foreign(url)?;
                return Ok(Self::Foreign(url, files));
            }
        }
        Ok(Self::Store(url, Box::new(Location::parse(url)?)))
    }

    /// The reader of the files, if the caller provides it.
    pub(crate) fn foreign(&self) -> Option<&'a ForeignFiles> {
        match self {
            Self::Store(..) => None,
            Self::Foreign(_, files) => Some(files),
        }
    }

    /// The object with this URL.
    pub(crate) fn object(&self) -> StoreResult<Object> {
        match self {
            Self::Store(_, location) => location.object(),
            Self::Foreign(url, files) => files.0.object(url),
        }
    }

    /// Whether the URL is a glob pattern.
    pub(crate) fn is_pattern(&self) -> bool {
        let (Self::Store(url, _) | Self::Foreign(url, _)) = self;
        Location::is_pattern(url)
    }

    /// The objects that match the URL.
    pub(crate) fn matching(&self) -> StoreResult<Vec<Object>> {
        match self {
            Self::Store(url, _) => Location::matching(url),
            Self::Foreign(url, files) => Location::matches(url, files.0.matching(url)?),
        }
    }

    /// The objects below the URL.
    pub(crate) fn list(&self) -> StoreResult<Vec<Object>> {
        match self {
            Self::Store(_, location) => location.list(),
            Self::Foreign(url, files) => files.0.list(url),
        }
    }
}

/// Whether the error means that the object does not exist.
pub(crate) fn is_absent(error: &StoreError) -> bool {
    matches!(error, StoreError::Absent { .. })
}
