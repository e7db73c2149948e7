//! The hash that determines the side of a document.

use packtok_pbin::TokenWidth;
use xxhash_rust::xxh64::Xxh64;

/// Number of tokens widened at a time.
const WIDENED_TOKENS: usize = 1024;
const ID_BYTES: usize = 4;

/// The hash of a document, independent of the token width: XXH64 of its ids as little-endian u32.
pub fn document_hash(tokens: &[u8], width: TokenWidth, seed: u64) -> u64 {
    let mut hash = Xxh64::new(seed);
    match width {
        TokenWidth::U8 => update::<1>(&mut hash, tokens),
        TokenWidth::U16 => update::<2>(&mut hash, tokens),
        TokenWidth::U32 => hash.update(tokens),
    }
    hash.digest()
}

/// Hashes tokens of `WIDTH` bytes.
fn update<const WIDTH: usize>(hash: &mut Xxh64, tokens: &[u8]) {
    let mut ids = [[0; ID_BYTES]; WIDENED_TOKENS];
    for tokens in tokens.chunks(WIDENED_TOKENS * WIDTH) {
        let tokens = tokens.as_chunks::<WIDTH>().0;
        for (id, token) in ids.iter_mut().zip(tokens) {
            // All bytes are written, so that the loop compiles to vector instructions.
            let mut wide = [0; ID_BYTES];
            wide[..WIDTH].copy_from_slice(token);
            *id = wide;
        }
        hash.update(ids[..tokens.len()].as_flattened());
    }
}

/// The least hash of the train side if `fraction` of all documents is held out.
pub fn least_train_hash(fraction: f64) -> u64 {
    // Scaling by a power of two is exact, and the cast saturates.
    (fraction * 2f64.powi(64)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_equal_xxh64() {
        // From the reference implementation: empty input, and a single id 0.
        assert_eq!(
            document_hash(&[], TokenWidth::U16, 0),
            0xef46_db37_51d8_e999
        );
        assert_eq!(
            document_hash(&[0; 4], TokenWidth::U32, 0),
            document_hash(&[0], TokenWidth::U8, 0)
        );
    }

    #[test]
    fn the_token_width_does_not_change_the_hash() {
        let ids: Vec<u8> = (0..5000u32).map(|i| (i * 7 % 251) as u8).collect();
        for len in [0, 1, 3, 1023, 1024, 1025, 5000] {
            let ids = &ids[..len];
            let wide = |width: usize| -> Vec<u8> {
                let widened = ids.iter().flat_map(|&id| {
                    let mut token = vec![0; width];
                    token[0] = id;
                    token
                });
                widened.collect()
            };
            let expected = document_hash(&wide(4), TokenWidth::U32, 9);
            assert_eq!(document_hash(ids, TokenWidth::U8, 9), expected);
            assert_eq!(document_hash(&wide(2), TokenWidth::U16, 9), expected);
            assert_ne!(document_hash(ids, TokenWidth::U8, 8), expected);
        }
    }

    #[test]
    fn a_fraction_selects_that_share_of_all_hashes() {
        assert_eq!(least_train_hash(0.0), 0);
        assert_eq!(least_train_hash(0.5), 1 << 63);
        assert_eq!(least_train_hash(2f64.powi(-40)), 1 << 24);
        assert_eq!(least_train_hash(1.0), u64::MAX);
    }
}
