//! Pbins of random documents, for benches that read.

use std::path::Path;

use packtok_pbin::{Counts, Metadata, Replace, TokenWidth, Writer};

use crate::SplitMix;

/// Writes a pbin of `num_documents` documents of 1 to 1000 random two-byte tokens.
///
/// # Panics
/// If the file cannot be made.
pub fn write_random_documents(path: &Path, num_documents: u64, seed: u64) {
    let mut numbers = SplitMix::new(seed);
    let mut writer = Writer::create(path, TokenWidth::U16).expect("the file can be made");
    let mut tokens = 0;
    for _ in 0..num_documents {
        let num_tokens = 1 + numbers.below(1000);
        let document: Vec<u8> = (0..num_tokens)
            .flat_map(|_| (numbers.next_u64() as u16).to_le_bytes())
            .collect();
        tokens += num_tokens;
        writer
            .append(&document, &[document.len() as u64])
            .expect("there is room for the documents");
    }
    publish(writer, num_documents, tokens);
}

/// Gives what `writer` has, `documents` of `tokens` together, its index and its name.
///
/// # Panics
/// If the file cannot be finished or the name is taken.
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
        .expect("there is room for the index");
    finished.publish(Replace::Never).expect("the name is free");
}
