//! Random masks of the contexts of encoder-decoder samples.
//!
//! A mask is a function of the seed, the epoch and the sample. So the number of workers and
//! restarts do not affect it.

use packtok_jobs::splitmix::{GAMMA, mixed};

/// The parameters of the masks.
#[derive(Debug, Clone, Copy)]
pub struct ContextMasks {
    /// The seed of all masks.
    pub seed: u64,
    /// The probability that a context is masked.
    pub mask_prob: f64,
    /// The probability that a masked context is masked as a whole.
    pub mask_seq_prob: f64,
    /// A partial mask has at least 1 and fewer than this number of tokens.
    pub context_size: u64,
}

impl ContextMasks {
    /// For each of the `num_contexts` contexts of a sample, the number of masked tokens at its
    /// end; `None` if the whole context is masked.
    pub fn of(&self, epoch: u64, sample: u64, num_contexts: usize) -> Vec<Option<u64>> {
        let mut state = [epoch, sample]
            .iter()
            .fold(mixed(self.seed), |state, &word| {
                mixed(state.wrapping_add(GAMMA) ^ mixed(word.wrapping_add(GAMMA)))
            });
        let mut next = || {
            state = state.wrapping_add(GAMMA);
            mixed(state)
        };
        let masks = (0..num_contexts).map(|_| {
            // Each context uses two words, so that its mask does not depend on the other contexts.
            let (uniform, length) = ((next() >> 11) as f64 / (1u64 << 53) as f64, next());
            if uniform >= self.mask_prob {
                Some(0)
            } else if uniform < self.mask_prob * self.mask_seq_prob {
                None
            } else {
                let lengths = u128::from(self.context_size.saturating_sub(1));
                // Without a length to choose, the whole context is masked.
                (lengths > 0).then(|| 1 + ((u128::from(length) * lengths) >> 64) as u64)
            }
        });
        masks.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_have_the_requested_probabilities_and_lengths() {
        let masks = ContextMasks {
            seed: 3,
            mask_prob: 0.5,
            mask_seq_prob: 0.25,
            context_size: 5,
        };
        let mut counts = [0; 6];
        for sample in 0..20_000 {
            for mask in masks.of(1, sample, 4) {
                counts[mask.unwrap_or(5) as usize] += 1;
            }
        }
        // 80,000 draws: a half has no mask, an eighth is fully masked, and each of the lengths 1
        // to 4 has a quarter of the remaining three eighths.
        let expected = [40_000, 7_500, 7_500, 7_500, 7_500, 10_000];
        for (count, expected) in counts.into_iter().zip(expected) {
            assert!((count as i64 - expected).abs() < 500, "{counts:?}");
        }
    }

    #[test]
    fn masks_differ_between_seeds_epochs_samples_and_contexts() {
        let of = |seed, epoch, sample| {
            let masks = ContextMasks {
                seed,
                mask_prob: 1.0,
                mask_seq_prob: 0.0,
                context_size: 1 << 40,
            };
            masks.of(epoch, sample, 2)
        };
        let all = [
            of(0, 0, 0),
            of(1, 0, 0),
            of(0, 1, 0),
            of(0, 0, 1),
            of(1, 1, 1),
        ]
        .concat();
        let different: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(different.len(), 10);
        assert_eq!(of(5, 6, 7), of(5, 6, 7));
    }
}
