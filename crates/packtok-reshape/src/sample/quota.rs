//! The number of samples of each domain: the largest-remainder method in integers.

/// Proportions are exact to this fraction.
pub(super) const SCALE: f64 = 1e12;

/// Divides `total` by `proportions`; the quotas sum to `total`.
///
/// Each domain gets the integer part of its share. The remaining units go to the largest
/// fractional parts, one each. If fractional parts are equal, the first domain wins.
pub(super) fn quotas(total: u64, proportions: &[f64]) -> Vec<u64> {
    let weights: Vec<u128> = proportions
        .iter()
        .map(|&proportion| (proportion * SCALE).round() as u128)
        .collect();
    let sum = weights.iter().sum::<u128>().max(1);
    let shares = weights.iter().map(|weight| weight * u128::from(total));
    let mut quotas: Vec<u64> = shares.clone().map(|share| (share / sum) as u64).collect();
    let mut by_rest: Vec<(usize, u128)> = shares.map(|share| share % sum).enumerate().collect();
    by_rest.sort_by_key(|&(_, rest)| std::cmp::Reverse(rest));
    let left = total - quotas.iter().sum::<u64>();
    for &(domain, _) in by_rest.iter().take(left as usize) {
        quotas[domain] += 1;
    }
    quotas
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::quotas;

    #[test]
    fn remainders_go_to_the_largest_fractions() {
        assert_eq!(quotas(7, &[0.5, 0.5]), [4, 3]);
        assert_eq!(quotas(10, &[0.15, 0.67, 0.18]), [1, 7, 2]);
        assert_eq!(quotas(0, &[1.0]), [0]);
        // In floating-point arithmetic, 0.57 * 100 is less than 57.
        assert_eq!(quotas(100, &[0.57, 0.43]), [57, 43]);
    }

    proptest! {
        #[test]
        fn quotas_sum_to_the_total_and_are_within_one_of_their_shares(
            total in 0u64..1 << 53, weights in prop::collection::vec(1u32..1000, 1..9),
        ) {
            let sum: u32 = weights.iter().sum();
            let proportions: Vec<f64> = weights.iter().map(|&weight| f64::from(weight) / f64::from(sum)).collect();
            let quotas = quotas(total, &proportions);
            prop_assert_eq!(quotas.iter().sum::<u64>(), total);
            for (quota, proportion) in quotas.iter().zip(&proportions) {
                prop_assert!((*quota as f64 - total as f64 * proportion).abs() <= 1.0 + total as f64 * 1e-9);
            }
        }
    }
}
