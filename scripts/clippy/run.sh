#!/usr/bin/env bash
# Lints all crates of this repository as `cargo clippy --workspace --all-targets -- -D warnings` does, in a quarter of
# the time where the tests were built before. Nothing is kept for a second run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# As maturin sets them, or else PyO3 would be built once more.
export PYO3_BUILD_EXTENSION_MODULE=1
for file in "$PWD"/target/maturin/pyo3-config-*.txt; do
    if [[ -e $file ]]; then
        export PYO3_CONFIG_FILE=$file
    fi
done
# Fuzz targets are not linked here, so an empty archive serves as libFuzzer, which takes longer to compile than all lints.
mkdir -p target/clippy
printf '!<arch>\n' >target/clippy/libFuzzer.a
export CUSTOM_LIBFUZZER_PATH=$PWD/target/clippy/libFuzzer.a
RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/clippy/linting_rustc.sh exec cargo build --workspace --all-targets --locked -q
