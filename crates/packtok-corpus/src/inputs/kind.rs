//! The kind of a path that is not a regular file.

use std::fs::Metadata;

/// The word for it in messages.
#[cfg(unix)]
pub fn kind(metadata: &Metadata) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    let file_type = metadata.file_type();
    match () {
        () if file_type.is_dir() => "folder",
        () if file_type.is_fifo() => "FIFO",
        () if file_type.is_socket() => "socket",
        () => "device",
    }
}

/// The word for it in messages.
#[cfg(not(unix))]
pub fn kind(_: &Metadata) -> &'static str {
    "device"
}
