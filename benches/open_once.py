"""Opens one pbin, after another that loads the code, and prints time and memory.

Usage: ``open_once.py WARM_UP PBIN``.
"""

import json
import sys
import time
from pathlib import Path

from packtok import PbinReader


def rss_bytes() -> int:
    """Returns the memory of this process. It is exact, unlike that in `/proc/self/status`, which may lag."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Rss:"))


def main() -> None:
    warm_up, path = sys.argv[1:]
    PbinReader(warm_up)
    rss_bytes()
    before = rss_bytes()
    started = time.perf_counter()
    reader = PbinReader(path)
    seconds = time.perf_counter() - started
    grown = rss_bytes() - before
    print(json.dumps({"documents": len(reader), "seconds": seconds, "rss_bytes": grown}))


if __name__ == "__main__":
    main()
