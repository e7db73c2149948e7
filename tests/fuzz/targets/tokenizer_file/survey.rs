//! Runs cases from seeds, without libFuzzer, and prints the smallest case of each kind of finding.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::compare::{Finding, compare};
use crate::count;
use crate::generate::Case;
use crate::in_thread;
use crate::reduce::reduced;

/// Cases that take longer are reported.
const SLOW: Duration = Duration::from_secs(2);

/// Number of cases of each kind that are reduced.
const REDUCED: usize = 2;

#[derive(Default)]
struct Found {
    times: usize,
    seeds: Vec<u64>,
    smallest: Option<(Case, Finding)>,
}

/// Compares `cases` cases, starting at `first_seed`; returns whether nothing was found.
pub(crate) fn run(first_seed: u64, cases: u64) -> bool {
    let mut all: BTreeMap<String, Found> = BTreeMap::new();
    for seed in first_seed..first_seed + cases {
        let input = seed.to_le_bytes();
        let start = Instant::now();
        let outcome = in_thread(|| compare(&Case::of(&input)));
        if start.elapsed() > SLOW {
            eprintln!("seed {seed} took {:?}", start.elapsed());
        }
        match outcome {
            Ok(compared) => count::add(&compared),
            Err(finding) => {
                let found = all.entry(finding.kind.clone()).or_insert_with(|| {
                    eprintln!("seed {seed}: {}", finding.kind);
                    Found::default()
                });
                found.times += 1;
                found.seeds.push(seed);
            }
        }
    }
    for (kind, found) in &mut all {
        for seed in found.seeds.iter().take(REDUCED) {
            in_thread(|| keep_smallest(kind, &seed.to_le_bytes(), &mut found.smallest));
        }
    }
    for (kind, found) in &all {
        println!(
            "\n## {kind}\n{} times, seeds {:?}",
            found.times,
            &found.seeds[..found.seeds.len().min(5)]
        );
        if let Some((case, finding)) = &found.smallest {
            println!("{}", finding.detail);
            println!("texts {:?}, ids {:?}", case.texts, case.ids);
            println!("{}", case.json);
        }
    }
    count::print();
    all.is_empty()
}

fn keep_smallest(kind: &str, input: &[u8], smallest: &mut Option<(Case, Finding)>) {
    let of_kind = |case: &Case| compare(case).err().filter(|finding| finding.kind == kind);
    let case = reduced(Case::of(input), &|case| of_kind(case).is_some());
    // Not reproducible: `tokenizers` itself is not deterministic there.
    let Some(finding) = of_kind(&case) else {
        return;
    };
    let is_smaller = smallest
        .as_ref()
        .is_none_or(|(old, _)| case.json.len() < old.json.len());
    if is_smaller {
        *smallest = Some((case, finding));
    }
}
