//! Files that the caller reads, because packtok does not know their URLs.

use std::fmt;
#[cfg(feature = "remote")]
use std::sync::{Arc, OnceLock};

#[cfg(feature = "remote")]
type Files = Arc<dyn packtok_store::ForeignFiles>;
#[cfg(not(feature = "remote"))]
type Files = std::convert::Infallible;

/// The caller's files.
#[derive(Clone)]
pub struct ForeignFiles(pub(crate) Files);

/// What reads URLs of schemes that packtok does not know, where a caller does not give its own.
#[cfg(feature = "remote")]
static OF_ALL: OnceLock<ForeignFiles> = OnceLock::new();

#[cfg(feature = "remote")]
impl ForeignFiles {
    /// Makes these files those of all corpora whose caller gives no others. Only the first call counts.
    pub fn use_for_all(self) {
        drop(OF_ALL.set(self));
    }

    /// The files of [`ForeignFiles::use_for_all`].
    pub(crate) fn of_all() -> Option<&'static Self> {
        OF_ALL.get()
    }

    /// The files that `files` finds.
    pub fn new(files: Files) -> Self {
        Self(files)
    }
}

impl fmt::Debug for ForeignFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ForeignFiles")
    }
}

impl PartialEq for ForeignFiles {
    fn eq(&self, other: &Self) -> bool {
        #[cfg(feature = "remote")]
        return Arc::ptr_eq(&self.0, &other.0);
        #[cfg(not(feature = "remote"))]
        return self.0 == other.0;
    }
}

impl Eq for ForeignFiles {}
