//! The checksum of the data segment, combined from those of its pieces.

use std::sync::LazyLock;

use crate::trailer::CHECKED_DATA_BYTES;

/// CRC32C of data of which `pieces` are the checksums, each of [`CHECKED_DATA_BYTES`] but the last.
pub(crate) fn combined(pieces: impl Iterator<Item = u32>, data_bytes: u64) -> u32 {
    let mut remaining = data_bytes;
    pieces.fold(0, |crc, piece| {
        let bytes = remaining.min(CHECKED_DATA_BYTES);
        remaining -= bytes;
        match bytes {
            // Nothing stands before the first piece.
            _ if crc == 0 => piece,
            CHECKED_DATA_BYTES => with_whole_piece(crc, piece),
            _ => crc32c::crc32c_combine(crc, piece, bytes as usize),
        }
    })
}

/// CRC32C of data with the checksum `crc` and, behind it, a whole piece with the checksum `piece`.
pub(crate) fn with_whole_piece(crc: u32, piece: u32) -> u32 {
    before_whole_piece(crc) ^ piece
}

/// What a checksum of data is worth in that of the data with a whole piece behind it.
///
/// This is linear, so that it is enough to know what becomes of each bit; the general way works that
/// out anew for every piece.
fn before_whole_piece(crc: u32) -> u32 {
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
    fn pieces_give_the_checksum_of_the_whole() {
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
