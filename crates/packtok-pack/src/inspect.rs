//! Statistics of a token file.

use packtok_formats::{Result, TokenFile};

/// Number of tokens of each document, after the checksum of the document offsets was verified.
///
/// # Errors
/// The index is damaged.
pub fn document_lengths(file: &TokenFile) -> Result<Vec<u64>> {
    file.verify_offsets()?;
    let documents = 0..file.num_documents();
    documents
        .map(|i| {
            file.document_tokens(i)
                .map(|tokens| tokens.end - tokens.start)
        })
        .collect()
}

/// Histogram of document lengths as `(min tokens, max tokens + 1, documents)`. Buckets double in
/// width (0, 1, 2-3, 4-7, …) and range from the shortest document's to the longest's.
///
/// # Errors
/// The index is damaged.
pub fn document_lengths_histogram(file: &TokenFile) -> Result<Vec<(u64, u64, u64)>> {
    let mut counts = [0u64; 65];
    for i in 0..file.num_documents() {
        let tokens = file.document_tokens(i)?;
        counts[bucket_of(tokens.end - tokens.start)] += 1;
    }
    let first = counts.iter().position(|&count| count > 0).unwrap_or(0);
    let stop = counts
        .iter()
        .rposition(|&count| count > 0)
        .map_or(0, |last| last + 1);
    let bucket = |i: usize| match i {
        0 => (0, 1, counts[0]),
        _ => (1 << (i - 1), (1u64 << (i - 1)).saturating_mul(2), counts[i]),
    };
    Ok((first..stop).map(bucket).collect())
}

/// The bucket of a length, its number of bits: 0 for 0, 1 for 1, 2 for 2-3, 3 for 4-7.
fn bucket_of(len_tokens: u64) -> usize {
    (u64::BITS - len_tokens.leading_zeros()) as usize
}
