//! Blocks that start at documents.

use packtok_dataset::Error;
use packtok_dataset::plans::whole_documents::plan_whole_documents;
use proptest::prelude::*;

use crate::reference;

/// Starts of the blocks and the number of dropped tokens.
fn plan(lens: &[u64], block_size: u64) -> (Vec<u64>, u64) {
    let documents = reference::results(lens);
    let (blocks, num_dropped) =
        reference::collect(|mut emit| plan_whole_documents(documents, block_size, &mut emit));
    for block in &blocks {
        assert_eq!(block.len(), 1);
        assert_eq!(block[0].end - block[0].start, block_size);
    }
    (
        blocks.iter().map(|block| block[0].start).collect(),
        num_dropped,
    )
}

#[test]
fn a_block_ends_inside_the_first_document_of_the_next_block() {
    assert_eq!(plan(&[4, 4, 6, 6], 10), (vec![0, 8], 2));
}

#[test]
fn the_rest_of_a_document_longer_than_a_block_is_dropped() {
    assert_eq!(plan(&[25, 3, 7], 10), (vec![0, 25], 15));
    assert_eq!(plan(&[3, 25, 10], 10), (vec![0, 3, 28], 15));
}

#[test]
fn documents_that_fill_a_block_exactly_are_in_one_block_only() {
    assert_eq!(plan(&[10, 10, 4, 6], 10), (vec![0, 10, 20], 0));
}

#[test]
fn a_block_past_the_end_is_dropped() {
    assert_eq!(plan(&[4, 5], 10), (vec![], 9));
    assert_eq!(plan(&[4, 6], 10), (vec![0], 0));
    assert_eq!(plan(&[], 10), (vec![], 0));
    assert_eq!(plan(&[0, 0], 10), (vec![], 0));
}

#[test]
fn unsupported_lengths_are_rejected() {
    for block_size in [0, (1 << 24) + 1, u64::MAX] {
        let error = plan_whole_documents(reference::results(&[1]), block_size, &mut |_| Ok(()))
            .expect_err("the length is out of range");
        assert!(matches!(error, Error::BlockTokens { found, .. } if found == block_size));
        assert_eq!(
            error.to_string(),
            format!("block_size is {block_size}, expected 1 to 16777216")
        );
    }
}

proptest! {
    #[test]
    fn blocks_and_dropped_tokens_equal_those_of_the_reference(
        lens in prop::collection::vec(prop_oneof![0u64..20, Just(0), Just(7)], 0..60),
        block_size in 1u64..30,
    ) {
        let (blocks, num_dropped) = reference::megatron(&lens, block_size);
        let starts: Vec<u64> = blocks.iter().map(|block| block.start).collect();
        prop_assert_eq!(plan(&lens, block_size), (starts, num_dropped));
    }
}
