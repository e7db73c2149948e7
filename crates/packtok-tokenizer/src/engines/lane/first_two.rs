//! Which characters beyond ASCII are letters, or whatever is asked, as far as their first two bytes tell.
//!
//! Of many first bytes all characters are letters, whatever follows: of Cyrillic and most of Chinese and Korean. Of many
//! more all are but some, which the second byte tells: of the first byte 0xc3 in Latin they are `×` and `÷`. For
//! these there are groups, each with the second bytes after which no letter is sure. Both tables are looked at by a
//! byte's last six bits, so that vectors can do it for all bytes at once.
//!
//! ```text
//! of_first:  | 0 | told: 1 | groups: 6 |   told, unless the second byte has one of its groups, too
//! of_second: | 0 | 0       | groups: 6 |   the groups in which it may begin something else
//! ```

/// What the first and the second byte of a character tell.
pub(in crate::engines) struct FirstTwo {
    pub(super) of_first: [u8; 64],
    pub(super) of_second: [u8; 64],
}

const NUM_GROUPS: usize = 6;

pub(super) const MATCHES: u8 = 1 << NUM_GROUPS;

/// First bytes, and the second ones that do not always make a letter, a bit for each.
struct Group {
    firsts: Vec<usize>,
    others: u64,
}

impl Group {
    /// How many more pairs are not taken for letters with these second bytes, too; those of a first byte count as often
    /// as its weight says.
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
    /// From whether all characters are letters that begin with two bytes, of which the last six bits are given; and how
    /// much it matters that those of a first byte are known.
    pub(in crate::engines) fn new(
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
        // The two are put together that cost least, until there are few enough.
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

    /// Whether the first two bytes of a character tell that it is one: what lanes do for all bytes of a block.
    #[cfg(test)]
    pub(in crate::engines) fn matches(&self, first: u8, second: u8) -> bool {
        let [of_first, of_second] = [
            self.of_first[usize::from(first & 0x3f)],
            self.of_second[usize::from(second & 0x3f)],
        ];
        of_first & MATCHES != 0 && of_first & of_second == 0
    }
}
