//! Decides by the first two bytes whether a character beyond ASCII is a letter, or has another
//! property.
//!
//! For many first bytes, all characters are letters: the first bytes of Cyrillic, and most first
//! bytes of Chinese and Korean. For many other first bytes, nearly all characters are letters, and
//! the second byte decides: after the first byte 0xc3 in Latin, only `×` and `÷` are not letters.
//! Such first bytes form groups, each with the second bytes that do not decide. Both tables are
//! indexed by a byte's last six bits, so that vector instructions look up all bytes at once.
//!
//! ```text
//! of_first:  | 0 | match: 1 | groups: 6 |   matches unless the second byte has one of its groups
//! of_second: | 0 | 0        | groups: 6 |   the groups in which it does not decide
//! ```

/// The two tables.
pub(crate) struct FirstTwo {
    pub(super) of_first: [u8; 64],
    pub(super) of_second: [u8; 64],
}

const NUM_GROUPS: usize = 6;

pub(super) const MATCHES: u8 = 1 << NUM_GROUPS;

/// A group of first bytes, with a bit for each second byte that does not decide.
struct Group {
    firsts: Vec<usize>,
    others: u64,
}

impl Group {
    /// The cost of adding `others` to the second bytes that do not decide: the number of lost
    /// pairs, each with the weight of its first byte.
    fn cost(&self, others: u64, weight: impl Fn(usize) -> usize) -> usize {
        let lost = (others & !self.others).count_ones() as usize;
        lost * self
            .firsts
            .iter()
            .map(|&first| weight(first))
            .sum::<usize>()
    }
}

impl FirstTwo {
    /// Builds the tables. `are_letters` takes the last six bits of two bytes and returns whether
    /// all characters that begin with these bytes have the property. `weight` is the importance of
    /// a first byte.
    pub(crate) fn new(
        are_letters: impl Fn(usize, usize) -> bool,
        weight: impl Fn(usize) -> usize,
    ) -> Self {
        let mut groups: Vec<Group> = Vec::new();
        let mut of_first = [0; 64];
        for (first, of_first) in of_first.iter_mut().enumerate() {
            let others = (0..64).filter(|&second| !are_letters(first, second));
            let others = others.fold(0, |others, second| others | 1u64 << second);
            if others != u64::MAX {
                *of_first = MATCHES;
            }
            if !matches!(others, 0 | u64::MAX) {
                let firsts = vec![first];
                groups.push(Group { firsts, others });
            }
        }
        // Joins the two groups of lowest cost until there are few enough.
        while groups.len() > NUM_GROUPS {
            let pairs = (1..groups.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
            let cost = |&(a, b): &(usize, usize)| {
                groups[a].cost(groups[b].others, &weight)
                    + groups[b].cost(groups[a].others, &weight)
            };
            let (a, b) = pairs.min_by_key(cost).expect("there are more than one");
            let Group { firsts, others } = groups.swap_remove(b);
            groups[a].firsts.extend(firsts);
            groups[a].others |= others;
        }
        let mut of_second = [0; 64];
        for (group, Group { firsts, others }) in groups.iter().enumerate() {
            for &first in firsts {
                of_first[first] |= 1 << group;
            }
            for (second, of_second) in of_second.iter_mut().enumerate() {
                *of_second |= ((others >> second & 1) as u8) << group;
            }
        }
        Self {
            of_first,
            of_second,
        }
    }

    /// Whether the first two bytes decide that a character has the property. Back ends compute
    /// this for all bytes of a SIMD block.
    #[cfg(test)]
    pub(crate) fn matches(&self, first: u8, second: u8) -> bool {
        let [of_first, of_second] = [
            self.of_first[usize::from(first & 0x3f)],
            self.of_second[usize::from(second & 0x3f)],
        ];
        of_first & MATCHES != 0 && of_first & of_second == 0
    }
}
