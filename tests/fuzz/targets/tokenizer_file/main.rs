//! Whole `tokenizer.json` files and texts: packtok loads what `tokenizers` loads, and gives the same ids and texts.
//!
//! An input chooses the components of a file (`generate`), some of them odd or broken, and a few texts. Claims:
//!
//! - No panic leaves packtok.
//! - A file that `tokenizers` 0.23.2 loads is loaded, unless packtok says that it refuses such files (`compare` has the
//!   list); one that it refuses, or panics at, is an error.
//! - Each text gets the same ids from both, or both refuse it: by packtok's own engine and by the one that it is held
//!   against, with and without the post-processor's tokens, and with special tokens parsed or taken for text.
//! - These ids and others have the same texts.
//!
//! `TOKENIZER_FILE_CASES=N` has the program compare N cases without libFuzzer, those of the seeds from
//! `TOKENIZER_FILE_SEED` on, and print all findings, each reduced. An input of eight bytes is a seed.
#![no_main]

mod added;
mod bpe;
mod breaking;
mod charsmap;
mod compare;
mod count;
mod ends;
mod generate;
mod model;
mod oracle;
mod panics;
mod reduce;
mod source;
mod steps;
mod survey;
mod texts;
mod unigram;
mod vocab;
mod words;

use std::thread;

use libfuzzer_sys::fuzz_target;

use crate::generate::Case;

/// As for a program's first thread.
const STACK_BYTES: usize = 8 << 20;

fuzz_target!(init: start(), |bytes: &[u8]| {
    let outcome = in_thread(|| {
        let case = Case::of(bytes);
        compare::compare(&case).map_err(|finding| (finding, case))
    });
    match outcome {
        Ok(compared) => count::add(&compared),
        Err((finding, case)) => panic!("{}\n{}\n{}", finding.kind, finding.detail, case.json),
    }
});

fn start() {
    panics::install_hook();
    let number = |key: &str| {
        std::env::var(key)
            .ok()
            .map(|value| value.parse().expect("a number"))
    };
    if let Some(cases) = number("TOKENIZER_FILE_CASES") {
        let is_clean = survey::run(number("TOKENIZER_FILE_SEED").unwrap_or(0), cases);
        std::process::exit(i32::from(!is_clean));
    }
}

/// Runs `call` in a thread of its own, whose end frees what `tokenizers` remembers for each thread and each model.
fn in_thread<T: Send>(call: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, call);
        let outcome = thread.expect("there is room for a thread").join();
        outcome.expect("its panics abort the process")
    })
}
