"""Measures the profile of token files and the search in them: text a second on one core, and memory.

    python benches/profile.py [--corpora FOLDER] [--tokenizer gpt2] [--repetitions 3] [--work FOLDER]

Run by a Python that has packtok, on an idle core. Each corpus is packed once, and four times into one file. A
search for a text that no document has is nearly decoding alone. Exit code 1 if a profile is below its bar, or
its memory grows with the file.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from cost import machine

import packtok

CORPORA = ("prose", "code", "multi")
COPIES = (1, 4)
BAR_MB = 30.0
# What the memory of a file of four times the size may add.
BAR_MORE_MIB = 16
MEASURED = """
import json, resource, sys, time
from packtok._packtok import DocumentTexts
from packtok.tokenizer.find import find_tokenizer

def measured(call):
    start = time.process_time()
    result = call()
    return result, time.process_time() - start

path, name = sys.argv[1:]
texts = DocumentTexts([path], tokenizer=find_tokenizer(name).tokenizer)
texts.profile(sample_tokens=1000, on_progress=None)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
profile, seconds = measured(lambda: texts.profile(sample_tokens=1 << 60, on_progress=None))
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
where = {"document": 0, "token": 0, "max_hits": 1, "seconds": 1e6}
times = [measured(lambda: texts.search("\\0zq\\0", ignore_case=case, **where))[1] for case in (False, True)]
megabytes = profile["text"]["bytes"] / 1e6
rates = {"profile": megabytes / seconds, "search": megabytes / times[0], "ignore_case": megabytes / times[1]}
print(json.dumps({**rates, "megabytes": megabytes, "memory_mib": memory / 1024}))
"""


def main() -> int:
    """Runs all measurements."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    shared = os.environ.get("PACKTOK_SHARED") or Path(__file__).resolve().parents[2] / "shared"
    parser.add_argument("--corpora", type=Path, default=Path(shared) / "data" / "corpora")
    parser.add_argument("--tokenizer", default="gpt2")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--work", type=Path, help="folder to write in; a temporary one")
    arguments = parser.parse_args()
    print(machine(), flush=True)
    met = True
    with tempfile.TemporaryDirectory(dir=arguments.work) as folder:
        for corpus in CORPORA:
            memory = []
            for copies in COPIES:
                path = Path(folder) / f"{corpus}-{copies}.pbin"
                once = Path(folder) / f"{corpus}-1.pbin"
                if copies == 1:
                    source = arguments.corpora / f"{corpus}.jsonl.zst"
                    packtok.pack(input=source, output=once, tokenizer=arguments.tokenizer)
                else:
                    packtok.merge([once] * copies, path)
                runs = [run(path, arguments.tokenizer) for _ in range(arguments.repetitions)]
                medians = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
                memory.append(medians["memory_mib"])
                met &= medians["profile"] >= BAR_MB
                print(f"{path.name}: {shown(medians)}; bar: {BAR_MB:.0f} MB/s", flush=True)
            met &= memory[-1] - memory[0] <= BAR_MORE_MIB
    return 0 if met else 1


def run(path: Path, tokenizer: str) -> dict[str, Any]:
    """Returns the rates of a new process, and the memory that its profile adds."""
    command = [sys.executable, "-c", MEASURED, str(path), tokenizer]
    result: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return result


def shown(medians: dict[str, float]) -> str:
    """Returns the results in one line."""
    return (
        f"{medians['megabytes']:.0f} MB of text: profile {medians['profile']:.0f} MB/s, search "
        f"{medians['search']:.0f} MB/s, without case {medians['ignore_case']:.0f} MB/s; "
        f"{medians['memory_mib']:.0f} MiB more"
    )


if __name__ == "__main__":
    sys.exit(main())
