//! Files that the caller reads, because packtok does not know their URLs.

use std::fmt;

#[cfg(feature = "remote")]
use std::sync::Arc;

#[cfg(feature = "remote")]
type Files = Arc<dyn packtok_store::ForeignFiles>;
#[cfg(not(feature = "remote"))]
type Files = std::convert::Infallible;

/// The caller's files.
#[derive(Clone)]
pub struct ForeignFiles(pub(super) Files);

#[cfg(feature = "remote")]
impl ForeignFiles {
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
