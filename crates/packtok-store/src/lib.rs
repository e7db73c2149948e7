//! Files in object stores (`s3://`, `gs://`, `az://`, `http://`): listing, range reads and atomic
//! writes.
//!
//! Access to stores requires the feature `remote`. Without it, the crate only defines URLs and the
//! user's cache folder.
#![forbid(unsafe_code)]

#[cfg(feature = "remote")]
mod remote;
mod urls;
mod user_cache;

#[cfg(feature = "remote")]
pub use remote::{
    Bytes, Error, ForeignFile, ForeignFiles, IfExists, Location, Object, RemoteFile, Result,
    check_foreign, is_store,
};
pub use urls::is_url;
pub use user_cache::user_cache;
