"""The loop of CEPE's `tokenize_files.py` for one file, for `cepe_tokenize.py`: `CORPUS OUTPUT TOKENIZER`.

Buffers of ten documents, lists of Python integers for the whole file, and one `numpy.save`.
"""

import json
import sys

import numpy as np
from tokenizers import Tokenizer


def main(corpus: str, output: str, path: str) -> None:
    """Tokenizes the file."""
    tokenizer = Tokenizer.from_file(path)
    bos, eos = tokenizer.token_to_id("<s>"), tokenizer.token_to_id("</s>")
    all_ids: list[list[int]] = []
    buffer: list[str] = []

    def flush() -> None:
        encoded = tokenizer.encode_batch(buffer, add_special_tokens=False)
        all_ids.extend([bos, *encoding.ids, eos] for encoding in encoded)
        buffer.clear()

    with open(corpus, encoding="utf-8") as file:
        for line in file:
            buffer.append(json.loads(line.strip())["text"])
            if len(buffer) >= 10:
                flush()
    if buffer:
        flush()
    lengths = [len(ids) for ids in all_ids]
    np.save(output, np.concatenate([[len(lengths)], lengths, *all_ids]))


if __name__ == "__main__":
    main(*sys.argv[1:])
