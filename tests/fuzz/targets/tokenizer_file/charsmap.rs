//! SentencePiece's maps of characters, in base64 as a normalizer `Precompiled` has them.
//!
//! ```text
//! bytes of the trie in 32 bits, trie, replacements, each closed by a NUL
//! ```
//!
//! The trie is a double array: a unit of 32 bits has its label in bits 0 to 7, whether a value follows in bit 8 and,
//! from bit 10 on, what its position is combined with to find its children, of which the one with label 0 has the value.

use std::collections::BTreeMap;

/// A multiple of 256, enough for some tens of short texts.
const NUM_UNITS: usize = 1 << 10;

/// The map of these texts to their replacements, no text empty or with a NUL.
pub(crate) fn charsmap(replacements: &[(String, String)]) -> Vec<u8> {
    let mut root = Node::default();
    let mut normalized = Vec::new();
    for (text, replacement) in replacements {
        let mut node = &mut root;
        for &byte in text.as_bytes() {
            node = node.children.entry(byte).or_default();
        }
        node.value = Some(normalized.len() as u32);
        normalized.extend_from_slice(replacement.as_bytes());
        normalized.push(0);
    }
    let mut units = Units {
        units: vec![0; NUM_UNITS],
        is_taken: vec![false; NUM_UNITS],
        is_base: vec![false; NUM_UNITS],
    };
    units.is_taken[0] = true;
    units.put(&root, 0, 0);
    let mut map = (4 * units.units.len() as u32).to_le_bytes().to_vec();
    map.extend(units.units.iter().flat_map(|unit| unit.to_le_bytes()));
    map.extend(normalized);
    map
}

#[derive(Default)]
struct Node {
    children: BTreeMap<u8, Node>,
    value: Option<u32>,
}

struct Units {
    units: Vec<u32>,
    is_taken: Vec<bool>,
    /// No two nodes have the same base: one would find the children of the other.
    is_base: Vec<bool>,
}

impl Units {
    fn put(&mut self, node: &Node, label: u8, at: usize) {
        let mut labels: Vec<usize> = node.children.keys().map(|&byte| byte.into()).collect();
        labels.extend(node.value.map(|_| 0));
        let is_free = |&base: &usize| {
            !self.is_base[base] && labels.iter().all(|label| !self.is_taken[base ^ label])
        };
        let base = (1..NUM_UNITS).find(is_free).expect("there is room");
        self.is_base[base] = true;
        let has_value = u32::from(node.value.is_some());
        self.units[at] = u32::from(label) | has_value << 8 | ((at ^ base) as u32) << 10;
        labels
            .iter()
            .for_each(|label| self.is_taken[base ^ label] = true);
        if let Some(value) = node.value {
            self.units[base] = value | 1 << 31;
        }
        for (&byte, child) in &node.children {
            self.put(child, byte, base ^ usize::from(byte));
        }
    }
}

/// The base64 of bytes.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let letters = bytes.chunks(3).flat_map(|three| {
        let mut padded = [0; 4];
        padded[1..=three.len()].copy_from_slice(three);
        let number = u32::from_be_bytes(padded);
        (0..4).map(move |at| match at <= three.len() {
            true => char::from(LETTERS[(number >> (18 - 6 * at) & 63) as usize]),
            false => '=',
        })
    });
    letters.collect()
}
