"""Items of EncoderDecoderDataset against items of StreamingDataset, from the same folder.

    python benches/peers/encoder_decoder.py --mds-python ENV/bin/python

ENV has mosaicml-streaming 0.13.0. Both read every sample once, in a random order, on one core: packtok makes
items for training (contexts, labels), StreamingDataset returns the columns as they are. CPU time is measured
within the process, after the first 2,000 items: imports, opening the folder, and most of the shards, of which
packtok checks the hashes, are not counted for either. Runs of the two alternate. Tokens are compared first.
"""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cost import machine, run, spread

# Arguments: folder, tokens of the decoder. Prints the sum of the tokens of some items, for the comparison,
# and the CPU seconds and the number of the others.
ITEMS = """
order = np.random.default_rng(3).permutation(len(dataset)).tolist()
print(sum(int(dataset[i][ids].astype(np.int64) @ np.arange(tokens)) for i in order[:10]))
for i in order[:2000]:
    dataset[i]
started = time.process_time()
for i in order[2000:]:
    dataset[i]
print(time.process_time() - started, len(order) - 2000)
"""
PACKTOK = f"""
import sys, time
import numpy as np
from packtok.data import EncoderDecoderDataset
folder, tokens, ids = sys.argv[1], int(sys.argv[2]), "input_ids"
context = {{"num_context": 4, "context_size": tokens // 4}}
dataset = EncoderDecoderDataset(folder, domains="a", chunk_size=tokens, **context)
{ITEMS}"""
MDS = f"""
import sys, time
import numpy as np
from streaming import StreamingDataset
folder, tokens, ids = sys.argv[1], int(sys.argv[2]), "token_ids"
dataset = StreamingDataset(local=folder + "/a", batch_size=1)
{ITEMS}"""
# Arguments: folder, number of samples, tokens of a part.
WRITE = """
import sys
import numpy as np
from packtok._packtok import MdsWriter
folder, count, tokens = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rng = np.random.default_rng(5)
columns = {"token_ids": "ndarray:uint16", "prev_token_ids": "ndarray:uint16", "domain": "str"}
with MdsWriter(folder + "/a", columns) as writer:
    for _ in range(count):
        both = rng.integers(0, 32_000, (2, tokens), dtype=np.uint16)
        writer.write({"token_ids": both[0], "prev_token_ids": both[1], "domain": "a"})
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--mds-python", type=Path, required=True, help="python that has mosaicml-streaming")
    parser.add_argument("--samples", type=int, default=100_000, help="%(default)s")
    parser.add_argument("--tokens", type=int, nargs="*", default=[512, 2048], help="tokens of a decoder")
    parser.add_argument("--repetitions", type=int, default=5)
    arguments = parser.parse_args()
    print(machine())
    for tokens in arguments.tokens:
        with tempfile.TemporaryDirectory() as folder:
            run([sys.executable, "-c", WRITE, folder, str(arguments.samples), str(tokens)])
            compare(folder, tokens, arguments)


def compare(folder: str, tokens: int, arguments: argparse.Namespace) -> None:
    """Prints the cost of items of ``tokens`` tokens with both, after a comparison of their tokens."""
    programs = {"packtok": (sys.executable, PACKTOK), "StreamingDataset": (arguments.mds_python, MDS)}
    microseconds: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(arguments.repetitions):
        sums = set()
        for name, (python, program) in programs.items():
            output = run([python, "-c", program, folder, str(tokens)], cores="0").output
            sum_, seconds, count = output.split()[-3:]
            sums.add(sum_)
            microseconds[name].append(1e6 * float(seconds) / int(count))
        if len(sums) != 1:
            raise SystemExit(f"{tokens} tokens: the items differ")
    ratio = [b / a for a, b in zip(microseconds["packtok"], microseconds["StreamingDataset"], strict=True)]
    print(
        f"{tokens} + {tokens} tokens, {arguments.samples:,} samples: packtok "
        f"{spread(microseconds['packtok'])} µs, "
        f"StreamingDataset {spread(microseconds['StreamingDataset'])} µs, {spread(ratio)}x"
    )


if __name__ == "__main__":
    main()
