//! Access to stores over the network.
//!
//! All functions block. Network requests run on a runtime of this crate (`runtime`), which starts
//! lazily and again in a forked process. Credentials only come from the places where the stores'
//! own tools read them: environment variables, and `~/.aws`. A URL that contains credentials is
//! rejected, so that no credentials get into a trailer, a plan, a script or a log. Files of other
//! URLs can be read through the caller (`foreign`).

mod connect;
mod error;
mod foreign;
mod location;
mod profile;
mod remote_file;
mod runtime;
mod upload;

pub use bytes::Bytes;

pub use self::error::{Error, Result};
pub use self::foreign::{ForeignFile, ForeignFiles};
pub use self::location::{Location, Object, check_foreign, is_store};
pub use self::remote_file::RemoteFile;
pub use self::upload::IfExists;
