"""Writes `tests/golden/arrow_rows` with datasets 5.2.0: folders of `save_to_disk`.

    python tests/golden/make_arrow_rows.py FOLDER

Writes into a new folder, because golden files never change.
"""

import json
import sys
from pathlib import Path

import datasets

DOCUMENTS = [[5, 40_000, 2], [], [7], [0, 1], [], [123_456, 9, 9, 3]]
FEATURES = {
    "int32": datasets.List(datasets.Value("int32")),
    "int64": datasets.LargeList(datasets.Value("int64")),
    "uint32": datasets.List(datasets.Value("uint32")),
}


def main(folder: Path) -> None:
    """Writes a folder of two files for each type, and the documents as JSON."""
    folder.mkdir(parents=True)
    for name, feature in FEATURES.items():
        # Columns of other layouts stand before the ids.
        features = {"text": datasets.Value("string"), "attention_mask": datasets.List(datasets.Value("int8"))}
        rows = {
            "text": [str(len(ids)) for ids in DOCUMENTS],
            "attention_mask": [[1] * len(ids) for ids in DOCUMENTS],
            "input_ids": DOCUMENTS,
        }
        features = datasets.Features({**features, "input_ids": feature})
        datasets.Dataset.from_dict(rows, features=features).save_to_disk(str(folder / name), num_shards=2)
    (folder / "documents.json").write_text(json.dumps(dict.fromkeys(FEATURES, DOCUMENTS)) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
