//! Files in object stores (`s3://`, `gs://`, `az://`, `http://`): found, read by ranges, written whole or not
//! at all.
//!
//! Everything blocks: what waits for the network runs on a runtime of this crate ([`runtime`]), which starts
//! when it is first needed and again in a process that was forked. Credentials come from the environment
//! variables that the stores' own tools read, and from nowhere else: a URL that has some is refused, so that
//! none can get into a trailer, a plan, a script or a log.
#![forbid(unsafe_code)]

mod connect;
mod error;
mod location;
mod remote_file;
mod runtime;
mod upload;

pub use error::{Error, Result};
pub use location::{Location, Object};
pub use remote_file::RemoteFile;
pub use upload::IfExists;
