//! The errors of this module.

use std::path::PathBuf;

/// The reason why files cannot be shuffled.
#[derive(Debug, thiserror::Error)]
pub enum ShuffleError {
    /// The positions of the order would not fit in four bytes.
    #[error(
        "there are {documents} documents to shuffle, expected fewer than 4294967295; shuffle in chunks: packtok data create_shuffled_dataset_chunk or create_shuffled_jsonl_chunk"
    )]
    TooManyDocuments {
        /// Number of documents.
        documents: u64,
    },
    /// There are no chunks.
    #[error("--num-chunks: is 0, expected at least 1")]
    NoChunks,
    /// The chunk does not exist.
    #[error("--chunk-id: is {chunk_id}, expected 0 to {}, since --num-chunks is {num_chunks}", num_chunks - 1)]
    NoSuchChunk {
        /// The chunk.
        chunk_id: u64,
        /// The number of chunks.
        num_chunks: u64,
    },
    /// No file has a document for this chunk.
    #[error(
        "chunk {chunk_id} of {num_chunks} has no documents, since the longest of {num_files} files has {longest}; set --num-chunks to at most {}",
        longest.max(&1)
    )]
    EmptyChunk {
        /// The chunk.
        chunk_id: u64,
        /// The number of chunks.
        num_chunks: u64,
        /// Number of files.
        num_files: usize,
        /// Documents of the longest file.
        longest: u64,
    },
    /// A file of a list does not exist.
    #[error("{}: line {line}: {} does not exist; correct the line, or --input-data-root-path", list.display(), path.display())]
    ListedMissing {
        /// The list.
        list: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// The file.
        path: PathBuf,
    },
    /// A line of a list names no file.
    #[error("{}: line {line}: {text:?} names no file", list.display())]
    ListedNoFile {
        /// The list.
        list: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// The line.
        text: String,
    },
    /// A list is not text.
    #[error("{}: line {line} is not UTF-8; expected one path on each line", list.display())]
    ListNotUtf8 {
        /// The list.
        list: PathBuf,
        /// Number of the line, from 1.
        line: u64,
    },
    /// A list names no files.
    #[error("{}: lists no files; expected one path on each line", list.display())]
    ListEmpty {
        /// The list.
        list: PathBuf,
    },
    /// An input is compressed.
    #[error("{}: is compressed with {compression}; decompress it first: its lines cannot be read in any order", path.display())]
    Compressed {
        /// The file.
        path: PathBuf,
        /// The compression.
        compression: &'static str,
    },
    /// An input is a folder, a device or similar.
    #[error("{}: is not a file; expected a JSONL file", path.display())]
    NotAFile {
        /// The input.
        path: PathBuf,
    },
    /// An input changed between two passes.
    #[error("{}: the file changed while it was read; run the command again when nothing writes to it", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// An existing JSONL file cannot be compared with the result, because the order is random.
    #[error(
        "{}: cannot be proven to be the result of this run without a seed; give one, or set --existing (existing) to replace",
        path.display()
    )]
    Unprovable {
        /// The output.
        path: PathBuf,
    },
}
