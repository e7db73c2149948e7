//! Encodes SentencePiece's `precompiled_charsmap`, which a `Precompiled` normalizer holds in base64.
//!
//! ```text
//! size of the trie in bytes (u32), trie, replacements, each followed by a NUL
//! ```
//!
//! The trie is a double array of u32 units: bits 0 to 7 hold the label, bit 8 is set if the node has a value, and the
//! bits from 10 up, XORed with the node's position, give the base of its children. Child `label` is at `base ^ label`;
//! the child with label 0 holds the value.

use std::collections::BTreeMap;

/// Units of the trie: a multiple of 256, enough for a few dozen short texts.
const NUM_UNITS: usize = 1 << 10;

/// The map from texts to replacements. No text may be empty or contain a NUL.
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
    /// Bases in use. Two nodes with the same base would find each other's children.
    is_base: Vec<bool>,
}

impl Units {
    fn put(&mut self, node: &Node, label: u8, at: usize) {
        let mut labels: Vec<usize> = node.children.keys().map(|&byte| byte.into()).collect();
        labels.extend(node.value.map(|_| 0));
        let is_free = |&base: &usize| {
            !self.is_base[base] && labels.iter().all(|label| !self.is_taken[base ^ label])
        };
        let base = (1..NUM_UNITS)
            .find(is_free)
            .expect("the trie has free units");
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
        (0..4).map(move |at| {
            if at <= three.len() {
                char::from(LETTERS[(number >> (18 - 6 * at) & 63) as usize])
            } else {
                '='
            }
        })
    });
    letters.collect()
}
