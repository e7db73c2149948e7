//! The kind of a path that is not a regular file, as messages name it.

use std::fs::Metadata;

/// The word for the kind in messages.
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

/// The word for the kind in messages. This platform does not distinguish kinds.
#[cfg(not(unix))]
pub fn kind(_: &Metadata) -> &'static str {
    "device"
}
