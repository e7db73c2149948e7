//! Whole `tokenizer.json` files and texts: packtok loads what `tokenizers` loads, and gives the same ids and texts.
//!
//! The input chooses the components of a file (`generate`), some of them odd or broken, and a few texts. Claims:
//!
//! - packtok does not panic.
//! - packtok loads every file that `tokenizers` 0.23.2 loads, except for refusals that are documented (listed in
//!   `compare`). If `tokenizers` refuses a file or panics, packtok returns an error.
//! - Both give a text the same ids, or both refuse it: with packtok's own engine and with its reference engine, with and
//!   without the post-processor's tokens, with special tokens parsed or read as text, truncated or not.
//! - Both decode these ids, and random ones, to the same text.
//!
//! With `TOKENIZER_FILE_CASES=N` the program compares N cases without libFuzzer, starting at the seed
//! `TOKENIZER_FILE_SEED`, and prints all kinds of findings, each reduced. A seed is an input of eight bytes.
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

/// The default of a main thread.
const STACK_BYTES: usize = 8 << 20;

fuzz_target!(init: start(), |bytes: &[u8]| {
    let outcome = in_thread(|| {
        let case = Case::of(bytes);
        compare::compare(&case).map_err(|finding| Box::new((finding, case)))
    });
    match outcome {
        Ok(compared) => count::add(&compared),
        Err(failed) => {
            let (finding, case) = *failed;
            panic!("{}\n{}\n{}", finding.kind, finding.detail, case.json)
        }
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

/// Runs `call` in a new thread: `tokenizers` keeps a thread-local cache per model, which only the thread's end frees.
fn in_thread<T: Send>(call: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, call);
        let outcome = thread.expect("the thread can be started").join();
        outcome.expect("its panics abort the process")
    })
}
