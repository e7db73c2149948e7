//! The attention mask of an item, from the document of each of its tokens.

/// Writes the attention mask: each token may attend to itself and to the earlier tokens of its
/// document. `document_ids` are the ids of one item, so the tokens of a document are consecutive.
/// `mask` has a row for each token and must be all false.
///
/// # Panics
/// If `mask` does not have as many rows and columns as there are tokens.
pub fn fill_mask<T: PartialEq>(document_ids: &[T], mask: &mut [bool]) {
    let len = document_ids.len();
    assert_eq!(mask.len(), len * len, "a row and a column for each token");
    let mut start = 0;
    for (i, row) in mask.chunks_exact_mut(len.max(1)).enumerate() {
        if i > 0 && document_ids[i] != document_ids[i - 1] {
            start = i;
        }
        row[start..=i].fill(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_equal_a_comparison_of_all_pairs() {
        for ids in [
            vec![],
            vec![0],
            vec![0, 0, 1, 2, 2, 2],
            vec![4; 9],
            vec![0, 1, 2, 3],
        ] {
            let mut mask = vec![false; ids.len() * ids.len()];
            fill_mask(&ids, &mut mask);
            for i in 0..ids.len() {
                for j in 0..ids.len() {
                    let expected = j <= i && ids[i] == ids[j];
                    assert_eq!(mask[i * ids.len() + j], expected, "{ids:?} {i} {j}");
                }
            }
        }
    }
}
