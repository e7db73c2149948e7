//! Files in object stores (`s3://`, `gs://`, `az://`, `http://`): listing, range reads and atomic
//! writes.
//!
//! All functions block. Network requests run on a runtime of this crate (`runtime`), which starts
//! lazily and again in a forked process. Credentials come only from where the stores' own tools read
//! them: environment variables, and `~/.aws`. A URL that contains credentials is rejected, so that none can get
//! into a trailer, a plan, a script or a log. Files of other URLs can be read through the caller (`foreign`).
#![forbid(unsafe_code)]

mod connect;
mod error;
mod foreign;
mod location;
mod profile;
mod remote_file;
mod runtime;
mod upload;

pub use bytes::Bytes;
pub use error::{Error, Result};
pub use foreign::{ForeignFile, ForeignFiles};
pub use location::{Location, Object, check_foreign, is_store};
pub use remote_file::RemoteFile;
pub use upload::IfExists;
