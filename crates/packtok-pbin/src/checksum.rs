//! Combines the checksums of pieces into the checksum of the data segment.

use std::sync::LazyLock;

use crate::trailer::CHECKED_DATA_BYTES;

/// CRC32C of the data whose pieces have the checksums `pieces`. All pieces but the last have
/// [`CHECKED_DATA_BYTES`] bytes.
pub(crate) fn combined(pieces: impl Iterator<Item = u32>, data_bytes: u64) -> u32 {
    let mut remaining = data_bytes;
    pieces.fold(0, |crc, piece| {
        let bytes = remaining.min(CHECKED_DATA_BYTES);
        remaining -= bytes;
        match bytes {
            // There is no data before the first piece.
            _ if crc == 0 => piece,
            CHECKED_DATA_BYTES => with_full_piece(crc, piece),
            _ => crc32c::crc32c_combine(crc, piece, bytes as usize),
        }
    })
}

/// CRC32C of data with checksum `crc` followed by a full piece with checksum `piece`.
pub(crate) fn with_full_piece(crc: u32, piece: u32) -> u32 {
    advanced_over_piece(crc) ^ piece
}

/// Advances the checksum `crc` over a full piece of zeros.
///
/// The operation is linear over the bits of `crc`, so a table with the result for each bit is
/// enough. `crc32c_combine` would recompute these results for every piece.
fn advanced_over_piece(crc: u32) -> u32 {
    static OF_BITS: LazyLock<[u32; 32]> = LazyLock::new(|| {
        std::array::from_fn(|bit| crc32c::crc32c_combine(1 << bit, 0, CHECKED_DATA_BYTES as usize))
    });
    let bits = OF_BITS.iter().enumerate();
    bits.filter(|(bit, _)| crc >> bit & 1 == 1)
        .fold(0, |sum, (_, of_bit)| sum ^ of_bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combined_pieces_have_the_checksum_of_the_data() {
        let piece_bytes = CHECKED_DATA_BYTES as usize;
        let data: Vec<u8> = (0..3 * piece_bytes + 5)
            .map(|i| ((i * i) >> 7) as u8)
            .collect();
        for len in [
            0,
            1,
            piece_bytes,
            piece_bytes + 1,
            3 * piece_bytes,
            data.len(),
        ] {
            let data = &data[..len];
            let pieces = data.chunks(piece_bytes).map(crc32c::crc32c);
            assert_eq!(
                combined(pieces, len as u64),
                crc32c::crc32c(data),
                "{len} bytes"
            );
        }
    }
}
