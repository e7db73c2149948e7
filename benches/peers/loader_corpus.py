"""The data of `loaders.py`: a corpus of the benches as a pbin, and one in ten thousand files."""

import shutil
import sys
from pathlib import Path

from cost import run
from programs import compiled, packtok_pack

from packtok.commands.manifest import write_manifest

TOKENIZER = "gpt2"
MANY_FILES = 10_000
LINES_PER_FILE = 30


def packed(corpus: str, path: Path) -> Path:
    """Returns the corpus as a pbin: a file as it is, or one of the benches' corpora, packed."""
    if Path(corpus).is_file():
        return Path(corpus).resolve()
    lines = path.with_suffix(".jsonl")
    run(compiled("write_corpus", corpus, lines, "0"))
    run(packtok_pack([lines], path, TOKENIZER, 1))
    lines.unlink()
    return path


def many_files(work: Path) -> Path:
    """Writes a small pbin ten thousand times, a manifest, and one file with all of it; returns its path."""
    lines, small, single = work / "small.jsonl", work / "small.pbin", work / "one.pbin"
    run(compiled("write_corpus", "prose", lines, "0"))
    with lines.open("rb") as file:
        some = b"".join(line for line, _ in zip(file, range(LINES_PER_FILE), strict=False))
    lines.write_bytes(some)
    run(packtok_pack([lines], small, TOKENIZER, 1))
    folder = work / "many"
    folder.mkdir()
    for i in range(MANY_FILES):
        shutil.copyfile(small, folder / f"{i}.pbin")
    write_manifest([folder], work / "many.manifest")
    packtok = Path(sys.executable).with_name("packtok")
    run([packtok, "merge", "--quiet", folder, single])
    return single
