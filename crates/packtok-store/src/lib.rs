//! Files in object stores (`s3://`, `gs://`, `az://`, `http://`): listing, range reads and atomic
//! writes.
//!
//! All functions block. Network requests run on a runtime of this crate (`runtime`), which starts
//! lazily and again in a forked process. Credentials only come from the places where the stores'
//! own tools read them: environment variables, and `~/.aws`. A URL that contains credentials is
//! rejected, so that no credentials get into a trailer, a plan, a script or a log. Files of other
//! URLs can be read through the caller (`foreign`).
//!
//! All of this requires the feature `remote`. Without it, the crate only defines URLs and the
//! user's cache folder.
#![forbid(unsafe_code)]

#[cfg(feature = "remote")]
mod connect;
#[cfg(feature = "remote")]
mod error;
#[cfg(feature = "remote")]
mod foreign;
#[cfg(feature = "remote")]
mod location;
#[cfg(feature = "remote")]
mod profile;
#[cfg(feature = "remote")]
mod remote_file;
#[cfg(feature = "remote")]
mod runtime;
#[cfg(feature = "remote")]
mod upload;
mod urls;
mod user_cache;

#[cfg(feature = "remote")]
pub use bytes::Bytes;
#[cfg(feature = "remote")]
pub use error::{Error, Result};
#[cfg(feature = "remote")]
pub use foreign::{ForeignFile, ForeignFiles};
#[cfg(feature = "remote")]
pub use location::{Location, Object, check_foreign, is_store};
#[cfg(feature = "remote")]
pub use remote_file::RemoteFile;
#[cfg(feature = "remote")]
pub use upload::IfExists;
pub use urls::is_url;
pub use user_cache::user_cache;
