"""Memory that does not grow with the corpus: huge lines, tiny documents, long inputs."""

from __future__ import annotations

import json
from pathlib import Path

from extent import extent
from processes import Ended, measure, write_corpus, write_one_line

MEMORY_TIMES_LINE = 8
# Far more than the command needs for a corpus of short lines.
LINE_BYTES = extent(200_000_000, 150_000_000)
SHORT_BYTES, LONG_BYTES = 50_000_000, extent(500_000_000, 100_000_000)
# Tiny documents take longer for each byte.
SHORT_TINY_BYTES, LONG_TINY_BYTES = extent((SHORT_BYTES, LONG_BYTES), (18_000_000, 36_000_000))
# Allowed growth from the short to the long input.
GROWTH = 1.10


def packed(corpus: Path, *options: object) -> Ended:
    """Returns a successful run with its peak memory."""
    arguments = ("-o", "o.pbin", "-t", "gpt2", "--existing", "replace", "--report", "r.json", *options)
    done = measure("pack", "-i", corpus, *arguments, cwd=corpus.parent)
    assert done.code == 0, done.err
    return done


def test_huge_line_packs_in_eight_times_its_size(tmp_path: Path) -> None:
    corpus = write_one_line(tmp_path / "c.jsonl", LINE_BYTES)
    done = packed(corpus)
    line_bytes = corpus.stat().st_size
    print(f"peak {done.peak_bytes / 1e6:.0f} MB, {done.peak_bytes / line_bytes:.2f} times the line")
    report = json.loads((tmp_path / "r.json").read_text())
    assert (report["documents"], report["lines"]) == (1, 1)
    assert report["tokens"] > LINE_BYTES // 10
    assert line_bytes >= LINE_BYTES
    assert done.peak_bytes <= MEMORY_TIMES_LINE * line_bytes


def test_line_over_the_limit_needs_no_memory(tmp_path: Path) -> None:
    corpus = write_one_line(tmp_path / "c.jsonl", LINE_BYTES)
    skipping = ("--on-bad-document", "skip", "--max-rejects", "100%")
    done = packed(corpus, "--max-document-bytes", 1_000_000, *skipping)
    (reject,) = map(json.loads, (tmp_path / "o.pbin.rejects.jsonl").read_text().splitlines())
    assert (reject["line"], reject["offset_bytes"], reject["len_bytes"]) == (1, 0, corpus.stat().st_size - 1)
    assert done.peak_bytes <= LINE_BYTES


def test_memory_does_not_grow_with_the_input(tmp_path: Path) -> None:
    peaks = []
    for num_bytes in (SHORT_BYTES, LONG_BYTES):
        corpus = write_corpus(tmp_path / "c.jsonl", num_bytes)
        peaks.append(packed(corpus, "-j", 2).peak_bytes)
    print(f"peaks {[round(peak / 1e6) for peak in peaks]} MB")
    assert peaks[1] <= GROWTH * peaks[0]


def test_memory_does_not_grow_with_the_number_of_tiny_documents(tmp_path: Path) -> None:
    line = b'{"text": "so tiny"}\n'
    assert len(line) == 20
    peaks = []
    for num_bytes in (SHORT_TINY_BYTES, LONG_TINY_BYTES):
        num_documents = num_bytes // len(line)
        with (tmp_path / "c.jsonl").open("wb") as file:
            for _ in range(100):
                file.write(line * (num_documents // 100))
        peaks.append(packed(tmp_path / "c.jsonl", "-j", 2).peak_bytes)
        assert json.loads((tmp_path / "r.json").read_text())["documents"] == num_documents
    print(f"peaks {[round(peak / 1e6) for peak in peaks]} MB")
    assert peaks[1] <= GROWTH * peaks[0]
