//! Pbins of random documents, for benches that read.

use std::path::Path;

use packtok_pbin::{Counts, Metadata, Replace, TokenWidth, Writer};

use crate::SplitMix;

/// Writes a pbin of `num_documents` documents of 1 to 1000 random two-byte tokens.
///
/// # Panics
/// If the file cannot be written.
pub fn write_random_documents(path: &Path, num_documents: u64, seed: u64) {
    let mut numbers = SplitMix::new(seed);
    let mut writer = Writer::create(path, TokenWidth::U16, false).expect("the file can be made");
    let mut tokens = 0;
    for _ in 0..num_documents {
        let num_tokens = 1 + numbers.below(1000);
        let document: Vec<u8> = (0..num_tokens)
            .flat_map(|_| (numbers.next_u64() as u16).to_le_bytes())
            .collect();
        tokens += num_tokens;
        writer
            .append(&document, &[document.len() as u64])
            .expect("the documents can be written");
    }
    publish(writer, num_documents, tokens);
}

/// Finishes and publishes the file of `writer`, which has `documents` with `tokens` in total.
///
/// # Panics
/// If the file cannot be finished or already exists.
pub fn publish(writer: Writer, documents: u64, tokens: u64) {
    let metadata = Metadata {
        counts: Counts {
            documents,
            tokens,
            lines: documents,
            packed: documents,
            ..Counts::default()
        },
        ..Metadata::default()
    };
    let finished = writer
        .finish(&metadata, &[])
        .expect("the index can be written");
    finished
        .publish(Replace::Never)
        .expect("the file does not exist yet");
}
