//! Token files and folders of samples: opened individually or as a set, listed in manifests, fetched from object stores.

mod cache_limits;
#[cfg(feature = "remote")]
mod cached_object;
pub mod checked_file;
mod data_checksum;
pub mod file_set;
pub mod fingerprint;
pub mod largest_ids;
pub mod manifest;
pub mod mds_folder;
pub(crate) mod ranges;
