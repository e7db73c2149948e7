"""Writes MDS folders with pickles, which packtok reads but does not write."""

from pathlib import Path

from packtok._packtok import MdsWriter


def write_pickles(folder: Path, pickles: list[bytes], column: str = "token_ids") -> Path:
    """Writes samples with a column of pickles. packtok's writer refuses pickles, so the column is written as
    bytes and renamed.
    """
    with MdsWriter(folder, {column: "bytes", "domain": "str"}, hashes=()) as writer:
        for content in pickles:
            writer.write({column: content, "domain": "x"})
    path = folder / "index.json"
    path.write_text(
        path.read_text().replace('"bytes", "str"', '"pkl", "str"').replace('"str", "bytes"', '"str", "pkl"')
    )
    return folder
