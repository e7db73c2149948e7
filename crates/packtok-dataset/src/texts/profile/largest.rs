//! Figures while documents are read: sums, and the documents in which something occurs most.

use super::repetition::Repeated;
use super::report::{Example, Figure, Place, Repeats, RepetitiveDocument};

/// Examples of each figure.
pub(super) const MAX_EXAMPLES: usize = 5;

/// The entries with the largest keys, in descending order; of equal keys, those that came first.
pub(super) struct Largest<T>(Vec<(u64, T)>);

impl<T> Default for Largest<T> {
    fn default() -> Self {
        Self(Vec::with_capacity(MAX_EXAMPLES + 1))
    }
}

impl<T> Largest<T> {
    /// Whether an entry with this key would be one of the largest.
    pub(super) fn has_room(&self, key: u64) -> bool {
        self.0.len() < MAX_EXAMPLES || self.0.last().is_some_and(|entry| entry.0 < key)
    }

    pub(super) fn add(&mut self, key: u64, value: T) {
        if self.has_room(key) {
            let at = self.0.partition_point(|entry| entry.0 >= key);
            self.0.insert(at, (key, value));
            self.0.truncate(MAX_EXAMPLES);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &(u64, T)> {
        self.0.iter()
    }
}

/// A [`Figure`] while documents are read.
#[derive(Default)]
pub(super) struct Counter {
    documents: u64,
    occurrences: u64,
    largest: Largest<u64>,
}

impl Counter {
    pub(super) fn add(&mut self, document: u64, occurrences: u64) {
        if occurrences > 0 {
            self.documents += 1;
            self.occurrences += occurrences;
            self.largest.add(occurrences, document);
        }
    }

    pub(super) fn figure(&self, place: impl Fn(u64) -> Place) -> Figure {
        let examples = self.largest.iter().map(|&(occurrences, number)| Example {
            place: place(number),
            occurrences,
        });
        Figure {
            documents: self.documents,
            occurrences: self.occurrences,
            examples: examples.collect(),
        }
    }
}

/// [`Repeats`] while documents are read.
pub(super) struct RepeatCounter {
    limit: f64,
    sum: Repeated,
    documents: u64,
    largest: Largest<(u64, u64)>,
}

impl RepeatCounter {
    pub(super) fn new(limit: f64) -> Self {
        Self {
            limit,
            sum: Repeated::default(),
            documents: 0,
            largest: Largest::default(),
        }
    }

    pub(super) fn add(&mut self, document: u64, Repeated { repeated, total }: Repeated) {
        self.sum.repeated += repeated;
        self.sum.total += total;
        if repeated as f64 > self.limit * total as f64 {
            self.documents += 1;
            self.largest.add(repeated, (document, total));
        }
    }

    pub(super) fn repeats(&self, place: impl Fn(u64) -> Place) -> Repeats {
        let largest = self.largest.iter();
        let examples = largest.map(|&(repeated, (number, total))| RepetitiveDocument {
            place: place(number),
            repeated,
            share: repeated as f64 / total as f64,
        });
        Repeats {
            repeated: self.sum.repeated,
            total: self.sum.total,
            limit: self.limit,
            documents: self.documents,
            examples: examples.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_are_kept_and_the_first_of_equal_ones() {
        let mut counter = Counter::default();
        for (document, occurrences) in [
            (0, 1),
            (1, 3),
            (2, 0),
            (3, 3),
            (4, 2),
            (5, 1),
            (6, 9),
            (7, 2),
            (8, 1),
        ] {
            counter.add(document, occurrences);
        }
        let figure = counter.figure(|document| Place { file: 0, document });
        let examples: Vec<_> = figure
            .examples
            .iter()
            .map(|example| example.place.document)
            .collect();
        assert_eq!((figure.documents, figure.occurrences), (8, 22));
        assert_eq!(examples, [6, 1, 3, 4, 7]);
    }
}
