//! How often ids are used.

use std::cmp::Reverse;

use packtok_tokenizer::Vocabulary;

use super::report::{Place, Token, UsedToken, VocabularyUse};
use crate::texts::MAX_TABLE_IDS;

const NUM_MOST_USED: usize = 20;
const NUM_NEVER_USED: usize = 10;
const NAME_CHARS: usize = 100;

/// The number of each id, up to the largest id with a place in tables. Damaged files have ids up to 2^32.
#[derive(Default)]
pub(super) struct IdCounts(Vec<IdCount>);

#[derive(Clone, Copy, Default)]
struct IdCount {
    occurrences: u64,
    /// The first document that has the id.
    document: u64,
}

impl IdCounts {
    pub(super) fn add(&mut self, document: u64, ids: &[u32]) {
        for &id in ids {
            let at = id as usize;
            if at >= self.0.len() {
                if at >= MAX_TABLE_IDS {
                    continue;
                }
                self.0
                    .resize((at + 1).next_power_of_two(), IdCount::default());
            }
            let count = &mut self.0[at];
            if count.occurrences == 0 {
                count.document = document;
            }
            count.occurrences += 1;
        }
    }

    fn has(&self, id: u32) -> bool {
        self.0
            .get(id as usize)
            .is_some_and(|count| count.occurrences > 0)
    }

    /// The figures; `num_ids` is the number of ids of the vocabulary.
    pub(super) fn figures(
        &self,
        vocabulary: Option<(&Vocabulary, u64)>,
        place: impl Fn(u64) -> Place,
    ) -> VocabularyUse {
        let used = (0..)
            .zip(&self.0)
            .filter(|(_, count)| count.occurrences > 0);
        let mut used: Vec<(u32, IdCount)> = used.map(|(id, &count)| (id, count)).collect();
        let num_used = used.len() as u64;
        used.sort_unstable_by_key(|&(id, count)| (Reverse(count.occurrences), id));
        used.truncate(NUM_MOST_USED);
        let token = |id| Token {
            id,
            name: vocabulary
                .and_then(|(names, _)| Some(names.name_of(id)?.chars().take(NAME_CHARS).collect())),
        };
        let mut never_used = Vec::new();
        if let Some((names, num_ids)) = vocabulary {
            let ids = 0..num_ids.min(MAX_TABLE_IDS as u64) as u32;
            never_used.extend(ids.filter(|&id| !self.has(id) && names.name_of(id).is_some()));
        }
        VocabularyUse {
            used: num_used,
            never_used: vocabulary.map(|_| never_used.len() as u64),
            never_used_examples: never_used
                .iter()
                .take(NUM_NEVER_USED)
                .map(|&id| token(id))
                .collect(),
            most_used: used
                .into_iter()
                .map(|(id, count)| UsedToken {
                    token: token(id),
                    occurrences: count.occurrences,
                    example: place(count.document),
                })
                .collect(),
        }
    }
}
