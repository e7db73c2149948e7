"""Encodes a corpus several times with a tool that is called from Python.

Does the same as `engines/src/main.rs`, and prints the same JSON:

    python engine_passes.py ENGINE TOKENIZER.json CORPUS.jsonl PASSES [BATCH]

ENGINE is packtok, fastokens, gigatoken, snaptokens, tiktoken, tokenizers, or sentencepiece for a .model. Run
by a Python that has the tool. Uses one thread and batches of BATCH documents (256; 0 means all in one call)
if the tool has a batch call, because calls are expensive in Python. The time to load includes the imports,
but not that of NumPy, which all corpora are made with.

With batches, it also prints the seconds and bytes of each slice of 50 MB of the first pass.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

Encode = Callable[[Sequence[str]], int]

SLICE_BYTES = 50_000_000


def of_packtok(path: str) -> Encode:
    import packtok

    tokenizer = packtok.Tokenizer.from_file(path)

    def encode(texts: Sequence[str]) -> int:
        return len(tokenizer.encode_batch(texts, add_special_tokens=False, threads=1)[0])

    return encode


def of_fastokens(path: str) -> Encode:
    import fastokens

    tokenizer = fastokens.Tokenizer.from_file(path)

    def encode(texts: Sequence[str]) -> int:
        return len(tokenizer.encode_batch_flat(texts)[0]) // 4

    return encode


def of_gigatoken(path: str) -> Encode:
    import gigatoken

    tokenizer = gigatoken.Tokenizer(path)

    def encode(texts: Sequence[str]) -> int:
        return sum(map(len, tokenizer.encode_batch(texts, parallel=False)))

    return encode


def of_snaptokens(path: str) -> Encode:
    import snaptokens

    tokenizer = snaptokens.Tokenizer.from_file(path)

    def encode(texts: Sequence[str]) -> int:
        return len(tokenizer.encode_batch_flat(texts)[0]) // 4

    return encode


def of_tiktoken(path: str) -> Encode:
    import tiktoken
    from tokenizers.pre_tokenizers import ByteLevel

    file = json.loads(Path(path).read_text(encoding="utf-8"))
    letters = sorted(ByteLevel.alphabet())
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in printable]
    byte_of = {chr(byte): byte for byte in printable} | {
        chr(0x100 + i): byte for i, byte in enumerate(others)
    }
    assert sorted(byte_of) == letters
    special = {token["content"]: token["id"] for token in file["added_tokens"]}
    ranks = {
        bytes(byte_of[letter] for letter in token): id
        for token, id in file["model"]["vocab"].items()
        if token not in special
    }
    split = file["pre_tokenizer"]
    pattern = (
        split["pretokenizers"][0]["pattern"]["Regex"]
        if "pretokenizers" in split
        else r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    )
    encoding = tiktoken.Encoding("here", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)

    def encode(texts: Sequence[str]) -> int:
        return sum(len(encoding.encode_to_numpy(text, allowed_special="all")) for text in texts)

    return encode


def of_tokenizers(path: str) -> Encode:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def encode(texts: Sequence[str]) -> int:
        return sum(map(len, tokenizer.encode_batch_fast(texts, add_special_tokens=False)))

    return encode


def of_sentencepiece(path: str) -> Encode:
    import sentencepiece

    model = sentencepiece.SentencePieceProcessor(model_file=path)

    def encode(texts: Sequence[str]) -> int:
        return sum(map(len, map(model.encode, texts)))

    return encode


ENGINES = {
    "packtok": of_packtok,
    "fastokens": of_fastokens,
    "gigatoken": of_gigatoken,
    "sentencepiece": of_sentencepiece,
    "snaptokens": of_snaptokens,
    "tiktoken": of_tiktoken,
    "tokenizers": of_tokenizers,
}


def main(engine: str, tokenizer: str, corpus: str, passes: int, batch: int) -> None:
    with open(corpus, encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    lengths = [len(text.encode()) for text in texts]
    loading = time.process_time()
    encode = ENGINES[engine](tokenizer)
    load_seconds = time.process_time() - loading
    text_bytes = sum(lengths)
    seconds, slices, last_fifth, num_ids = [], [], (0.0, 0), 0
    for run in range(passes):
        num_ids, done, fifth = 0, 0, None
        begin = time.process_time()
        slice_begin, slice_done = begin, 0
        for at in range(0, len(texts), batch or len(texts)):
            if run == 0 and fifth is None and done >= text_bytes // 5 * 4:
                fifth = (time.process_time(), done)
            stop = at + (batch or len(texts))
            num_ids += encode(texts[at:stop])
            done += sum(lengths[at:stop])
            if run == 0 and done - slice_done >= SLICE_BYTES:
                now = time.process_time()
                slices.append((done - slice_done, now - slice_begin))
                slice_begin, slice_done = now, done
        end = time.process_time()
        seconds.append(end - begin)
        if fifth is not None:
            last_fifth = (end - fifth[0], text_bytes - fifth[1])
    printed = {"load_seconds": load_seconds, "seconds": seconds, "text_bytes": text_bytes, "num_ids": num_ids}
    printed |= {"slices": slices}
    printed |= {"last_fifth_seconds": last_fifth[0], "last_fifth_bytes": last_fifth[1]}
    print(json.dumps(printed))


if __name__ == "__main__":
    batch = int(sys.argv[5]) if len(sys.argv) > 5 else 256
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), batch)
