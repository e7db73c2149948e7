//! Files at URLs that packtok does not support and that the caller reads instead.

use std::fmt;
#[cfg(feature = "remote")]
use std::sync::{Arc, OnceLock};

#[cfg(feature = "remote")]
type Files = Arc<dyn packtok_store::ForeignFiles>;
#[cfg(not(feature = "remote"))]
type Files = std::convert::Infallible;

/// A reader of files, provided by the caller.
#[derive(Clone)]
pub struct ForeignFiles(pub(crate) Files);

/// The default reader for URLs of unsupported schemes, used if a caller does not provide one.
#[cfg(feature = "remote")]
static OF_ALL: OnceLock<ForeignFiles> = OnceLock::new();

#[cfg(feature = "remote")]
impl ForeignFiles {
    /// Makes this reader the default of all corpora. Only the first call has an effect.
    pub fn use_for_all(self) {
        drop(OF_ALL.set(self));
    }

    /// The default reader, set by [`ForeignFiles::use_for_all`].
    pub(crate) fn of_all() -> Option<&'static Self> {
        OF_ALL.get()
    }

    /// A reader of the files that `files` provides.
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
