"""Builds the Rust tests of all crates and runs those of some: `crate_tests.py packtok-pack packtok-pbin`.

`cargo test -p` would select other features and compile third-party crates again.
"""

import json
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

BUILD = ["cargo", "test", "--locked", "-q", "--no-run", "--message-format=json-render-diagnostics"]


def main(crates: Collection[str]) -> int:
    """Runs the tests of these crates, named after their folders; returns the exit status."""
    build = subprocess.run(BUILD, stdout=subprocess.PIPE, text=True, check=False)
    if build.returncode != 0:
        return build.returncode
    has_failed = False
    for message in map(json.loads, build.stdout.splitlines()):
        if message["reason"] != "compiler-artifact" or not message["profile"]["test"]:
            continue
        crate = Path(message["manifest_path"]).parent
        if message["executable"] is not None and crate.name in crates:
            print(f"--- {crate.name}: {message['target']['name']}", flush=True)
            done = subprocess.run([message["executable"], "-q"], cwd=crate, check=False)
            has_failed |= done.returncode != 0
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
