//! Best-fit-decreasing packing.

use std::ops::Range;

use packtok_dataset::Error;
use packtok_dataset::plans::best_fit::{WINDOW_PIECES, plan_best_fit};
use proptest::prelude::*;

use crate::reference;

fn plan(lens: &[u64], context_length: u64) -> Vec<Vec<Range<u64>>> {
    let documents = reference::results(lens);
    reference::collect(|mut emit| plan_best_fit(documents, context_length, &mut emit)).0
}

#[test]
fn a_long_document_becomes_full_blocks_and_a_rest_that_shares_its_block() {
    let blocks = plan(&[25, 4, 1], 10);
    assert_eq!(
        blocks,
        [vec![0..10], vec![10..20], vec![20..25, 25..29, 29..30]]
    );
}

#[test]
fn a_document_goes_into_the_block_with_the_least_sufficient_room() {
    // Rooms after 7, 6, 5 are 3, 4, 5: the 4 joins the 6, the 3 joins the 7.
    let blocks = plan(&[5, 3, 6, 4, 7], 10);
    assert_eq!(
        blocks,
        [vec![0..5], vec![5..8, 18..25], vec![8..14, 14..18]]
    );
}

#[test]
fn documents_without_tokens_take_no_place() {
    assert_eq!(plan(&[0, 3, 0, 0, 2, 0], 10), [vec![0..3, 3..5]]);
    assert!(plan(&[0, 0], 10).is_empty());
    assert!(plan(&[], 10).is_empty());
}

#[test]
fn the_longest_context_is_planned() {
    let context_length = 1 << 24;
    let lens = [context_length - 1, 2 * context_length + 5, 1, 3];
    assert_eq!(
        plan(&lens, context_length),
        reference::best_fit(&lens, context_length)
    );
}

#[test]
fn windows_are_packed_independently() {
    // The last piece of the first window would fit next to the first of the second.
    let mut lens = vec![10; WINDOW_PIECES - 1];
    lens.extend([4, 6]);
    let blocks = plan(&lens, 10);
    assert_eq!(blocks.len(), WINDOW_PIECES + 1);
    assert!(blocks.iter().all(|block| block.len() == 1));
}

#[test]
fn unsupported_lengths_are_rejected() {
    for context_length in [0, (1 << 24) + 1] {
        let error = plan_best_fit(reference::results(&[1]), context_length, &mut |_| Ok(()))
            .expect_err("the length is out of range");
        assert!(
            matches!(error, Error::BlockTokens { name: "context_length", found } if found == context_length)
        );
    }
}

#[test]
fn an_error_in_a_document_ends_planning() {
    let documents = [
        Ok(0..3),
        Err(packtok_jobs::Error::Cancelled.into()),
        Ok(3..5),
    ]
    .into_iter();
    let mut num_blocks = 0;
    let outcome = plan_best_fit(documents, 10, &mut |_| {
        num_blocks += 1;
        Ok(())
    });
    assert!(matches!(
        outcome,
        Err(Error::Jobs(packtok_jobs::Error::Cancelled))
    ));
    assert_eq!(num_blocks, 0);
}

proptest! {
    #[test]
    fn blocks_equal_those_of_the_reference(
        lens in prop::collection::vec(prop_oneof![0u64..40, 0u64..8, Just(16)], 0..120),
        context_length in 1u64..40,
    ) {
        prop_assert_eq!(plan(&lens, context_length), reference::best_fit(&lens, context_length));
    }

    #[test]
    fn every_token_is_in_one_block_and_documents_that_fit_are_not_split(
        lens in prop::collection::vec(0u64..3000, 0..400),
        context_length in 1u64..2000,
    ) {
        let blocks = plan(&lens, context_length);
        for block in &blocks {
            let len_tokens: u64 = block.iter().map(|piece| piece.end - piece.start).sum();
            prop_assert!((1..=context_length).contains(&len_tokens));
            prop_assert!(block.is_sorted_by_key(|piece| piece.start));
        }
        prop_assert!(blocks.is_sorted_by_key(|block| block[0].start));
        let mut pieces: Vec<_> = blocks.into_iter().flatten().collect();
        pieces.sort_by_key(|piece| piece.start);
        let expected: Vec<_> = reference::documents(&lens)
            .into_iter()
            .flat_map(|document| {
                let full = (document.end - document.start) / context_length;
                let cuts = (1..=full).map(move |i| document.start + i * context_length);
                let mut starts = vec![document.start];
                starts.extend(cuts);
                starts.push(document.end);
                starts.dedup();
                starts.windows(2).map(|ends| ends[0]..ends[1]).collect::<Vec<_>>()
            })
            .collect();
        prop_assert_eq!(pieces, expected);
    }
}
