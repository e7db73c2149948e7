#!/usr/bin/env bash
# Runs every fuzz target for SECONDS each; the first crash ends it with exit code 1. 0 only builds them.
set -euo pipefail

if [[ $# -ne 1 || ! $1 =~ ^[0-9]+$ ]]; then
    echo "usage: $0 SECONDS" >&2
    exit 2
fi
seconds=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
golden=$here/../golden
targets=${CARGO_TARGET_DIR:-$here/../../target}/debug

cd "$here"
# The profile of the tests compiles fast; here, every input counts.
fast=()
for crate in packtok-corpus packtok-formats packtok-reshape packtok-tokenizer parquet; do
    fast+=(--config "profile.dev.package.$crate.opt-level=3")
done
RUSTC_WORKSPACE_WRAPPER=$here/instrumented_rustc.sh cargo build --locked -q -p packtok-fuzz "${fast[@]}"
if [[ $seconds -eq 0 ]]; then
    exit
fi

# Every input becomes a file: memory takes thousands a second where a disk takes hundreds.
if [[ -w /dev/shm ]]; then
    export TMPDIR=/dev/shm
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR=$work

fuzz() {
    local target=$1 seeds
    local corpus=$here/corpus/$target
    mkdir -p "$corpus" "$here/crashes" "$work/$target"
    for seeds in "${@:2}"; do
        # Some have the same name in another folder.
        find "$golden" "$here/seeds" -name "$seeds" -exec cp --backup=numbered -t "$work/$target" {} +
    done
    local status=0
    "$targets/$target" -max_total_time="$seconds" -max_len=65536 -timeout=10 \
        -rss_limit_mb=1024 -print_final_stats=1 -artifact_prefix="$here/crashes/$target-" \
        "$corpus" "$work/$target" >"$work/$target.log" 2>&1 || status=$?
    # At once, so that the output of two targets does not mix.
    echo "== $target, $seconds s"$'\n'"$(cat "$work/$target.log")"
    # 255 tells xargs to start no other target.
    return $((status == 0 ? 0 : 255))
}
export -f fuzz
export here seconds golden targets work

# A target uses one CPU.
xargs -L 1 -P "$(nproc)" bash -c 'set -euo pipefail; fuzz "$@"' fuzz <<'TARGETS'
code_points *.text
engine *.text
field *.line
mds *.mds_folder
model_file *.model_file
npy *.npy
open_pbin *.pbin
pickled *.pickled
plan_file *.plan
raw_index *.pickle
table_file *.parquet *.arrow
token_index *.litdata_folder *.mds_folder *.idx *.index *.csv.gz *.bin *.npy *.parquet *.arrow
tokenizer_file *.tokenizer_file
tokenizer_json *.tokenizer_json
TARGETS
