#!/usr/bin/env bash
# Cargo's RUSTC_WORKSPACE_WRAPPER: clippy in place of the compiler, for the crates of this repository. They are not
# compiled, except for build scripts, which cargo runs. All other crates are shared with `cargo test`, where
# `cargo clippy` would check them once more.
set -euo pipefail
if [[ " $* " == *" --crate-name build_script_build "* ]]; then
    exec clippy-driver "$@" -D warnings
fi
arguments=()
for argument; do
    case $argument in
    --emit=*) argument=--emit=dep-info,metadata ;;
    packtok_*=*.rlib) argument=${argument%.rlib}.rmeta ;;
    esac
    arguments+=("$argument")
done
exec clippy-driver "${arguments[@]}" -D warnings
