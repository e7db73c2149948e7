#!/usr/bin/env bash
# Runs the tests of the crates that have `unsafe` code, and need no Python, with AddressSanitizer: a quarter of an hour.
set -euo pipefail
cd "$(dirname "$0")/.."
# Sanitizers are for nightly compilers only, but stable ones have them, too.
export RUSTC_BOOTSTRAP=1
export RUSTFLAGS="-Zsanitizer=address -Cdebug-assertions=yes"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target/sanitize}
host=$(rustc -vV | sed -n 's/^host: //p')
# With --target, build scripts stay free of it.
tests=(cargo test --release --locked --target "$host")
"${tests[@]}" -p packtok-tokenizer --lib
"${tests[@]}" -p packtok-tokenizer --test it -- fast:: wordwise::
"${tests[@]}" -p packtok-pbin
