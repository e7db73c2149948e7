#!/usr/bin/env bash
# Cargo's RUSTC_WORKSPACE_WRAPPER: compiles the crates of this repository with the coverage that libFuzzer steers by,
# without the nightly-only sanitizers. All other crates are shared with `cargo test`.
set -euo pipefail
# Build scripts are not linked with libFuzzer, which provides what coverage calls.
if [[ " $* " == *" --crate-name build_script_build "* ]]; then
    exec "$@"
fi
exec "$@" --cfg fuzzing -Ccodegen-units=1 -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
