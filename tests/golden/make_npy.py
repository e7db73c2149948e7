"""Writes the golden NPY files with NumPy alone, as CEPE's `tokenize_files.py` saves documents.

    python tests/golden/make_npy.py FOLDER

Made with NumPy 2.4. `npy_object.npy` holds a pickle, which no test loads.
"""

import sys
from pathlib import Path

import numpy as np

DOCUMENTS = [[1, 17, 250, 2], [1, 2], [1, 31999, 300, 5, 2]]


def main(folder: Path) -> None:
    """Writes all files."""
    lengths = [len(document) for document in DOCUMENTS]
    # The script uses this statement, which gives float64 if there are no documents.
    numbers = np.concatenate([[len(lengths)], lengths, *DOCUMENTS])
    np.save(folder / "npy_int64.npy", numbers)
    np.save(folder / "npy_uint32.npy", numbers.astype(np.uint32))
    np.save(folder / "npy_empty_float64.npy", np.concatenate([[0], []]))
    np.save(folder / "npy_empty_int64.npy", np.array([0]))
    (folder / "npy_torn.npy").write_bytes((folder / "npy_int64.npy").read_bytes()[:-12])
    np.save(folder / "npy_object.npy", np.array([DOCUMENTS[0], None], dtype=object), allow_pickle=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
