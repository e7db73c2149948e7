#!/usr/bin/env bash
# Cargo's RUSTC_WORKSPACE_WRAPPER: clippy in place of the compiler, for the crates of this repository. They are not
# compiled, and all other crates are shared with `cargo test`, where `cargo clippy` would check them once more.
set -euo pipefail
arguments=()
for argument; do
    case $argument in
    --emit=*) argument=--emit=dep-info,metadata ;;
    packtok_*=*.rlib) argument=${argument%.rlib}.rmeta ;;
    esac
    arguments+=("$argument")
done
exec clippy-driver "${arguments[@]}" -D warnings
