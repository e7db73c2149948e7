"""`packtok logits` against the loop that CEPE's script runs: batch size 1, softmax, and a sort of the
vocabulary.

    python benches/logits.py [--samples 32] [--positions 256] [--vocab 32000] [--threads 1]

A random model of 2 layers and width 128 reads ENC = DEC tokens a sample. Each variant runs in a process of
its own, which reports CPU seconds of the computation, without loading, and its peak memory. `backbone` runs
the model without its head, in our batches. First, the ids of the loop and of packtok are compared.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

TOPK = 50
VARIANTS = ("loop", "backbone", "topk", "sampled")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=32)
    parser.add_argument("--positions", type=int, default=256, help="ENC and DEC")
    parser.add_argument("--vocab", type=int, default=32_000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--variant", choices=VARIANTS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.variant is not None:
        import torch

        torch.set_num_threads(arguments.threads)
        print(json.dumps(run(arguments.variant, arguments.folder, arguments.positions)))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, arguments.samples, arguments.positions, arguments.vocab)
        report(arguments, {variant: measure(variant, folder, arguments) for variant in VARIANTS}, folder)


def prepare(folder: Path, num_samples: int, positions: int, vocab: int) -> None:
    import torch
    import transformers

    from packtok._packtok import MdsWriter

    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=vocab,
        hidden_size=128,
        intermediate_size=344,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=2 * positions,
        tie_word_embeddings=False,
        initializer_range=0.2,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder / "model")
    rng = np.random.default_rng(0)
    columns = {"token_ids": "ndarray:uint16", "prev_token_ids": "ndarray:uint16", "domain": "str"}
    with MdsWriter(folder / "data" / "d", columns) as writer:
        for _ in range(num_samples):
            ids = rng.integers(0, vocab, (2, positions)).astype(np.uint16)
            writer.write({"token_ids": ids[0], "prev_token_ids": ids[1], "domain": "d"})
    # The name of the output contains the name of the input.
    for method in ("topk", "sampled"):
        (folder / f"data-{method}").symlink_to("data")


def measure(variant: str, folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    command = [sys.executable, __file__, "--variant", variant, "--folder", str(folder)]
    command += ["--positions", str(arguments.positions), "--threads", str(arguments.threads)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def run(variant: str, folder: Path, positions: int) -> dict[str, Any]:
    import torch

    # Excludes the time to load the model.
    if variant in ("topk", "sampled"):
        from packtok.commands.logits import logits

        start: list[float] = []
        logits(
            str(folder / f"data-{variant}"),
            str(folder / "model"),
            "d",
            method=variant,
            num_encoder_tokens=positions,
            num_decoder_tokens=positions,
            dtype="fp32",
            device="cpu",
            on_start=lambda _: start.append(time.process_time()),
        )
        seconds = time.process_time() - start[0]
    else:
        import transformers

        from packtok._packtok import MdsReader

        model = transformers.LlamaForCausalLM.from_pretrained(folder / "model", dtype=torch.float32).eval()
        reader = MdsReader(folder / "data" / "d")
        began = time.process_time()
        with torch.inference_mode():
            (loop if variant == "loop" else backbone)(model, reader, positions, folder)
        seconds = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"seconds": seconds, "peak": peak}


def loop(model: Any, reader: Any, positions: int, folder: Path) -> None:
    """Runs the loop of the script, in the same number format as packtok."""
    import torch

    indexes = []
    for i in range(len(reader)):
        sample = reader[i]
        ids = np.concatenate([sample["prev_token_ids"], sample["token_ids"]]).astype(np.int64)
        rows = model(input_ids=torch.from_numpy(ids)[None]).logits[0][-positions:]
        prob, index = torch.sort(rows.softmax(-1), descending=True, dim=-1)
        prob = torch.cat([prob[:, :TOPK], prob[:, TOPK:].sum(1, keepdim=True)], 1).half().numpy()
        indexes.append(index[:, :TOPK].int().numpy())
    np.save(folder / "loop.npy", np.stack(indexes))


def backbone(model: Any, reader: Any, positions: int, folder: Path) -> None:
    import torch

    from packtok.commands.logits import DEFAULT_BATCH_TOKENS

    size = max(1, DEFAULT_BATCH_TOKENS // (2 * positions))
    for start in range(0, len(reader), size):
        batch = [reader[i] for i in range(start, min(start + size, len(reader)))]
        ids = np.stack([np.concatenate([sample["prev_token_ids"], sample["token_ids"]]) for sample in batch])
        model.base_model(input_ids=torch.from_numpy(ids.astype(np.int64)), use_cache=False)


def report(arguments: argparse.Namespace, results: dict[str, dict[str, Any]], folder: Path) -> None:
    from packtok._packtok import MdsReader

    output = folder / f"data-topk-logits-enc{arguments.positions}-dec{arguments.positions}-model"
    reader = MdsReader(output / "d-0")
    ours = np.stack([reader[i]["target_index"] for i in range(len(reader))])
    same = (ours == np.load(folder / "loop.npy")).mean()
    if same < 0.999:
        sys.exit(f"only {same:.2%} of the ids are those of the loop")
    tokens = arguments.samples * arguments.positions
    print(
        f"{tokens:,} positions, {arguments.vocab:,} ids, {arguments.threads} threads; "
        f"{same:.3%} of the ids are equal"
    )
    for variant, result in results.items():
        print(
            f"{variant:<9} {result['seconds']:7.2f} CPU s  {tokens / result['seconds']:9,.0f} positions/s  "
            f"{results['loop']['seconds'] / result['seconds']:5.1f}x  peak {result['peak'] / 1e6:7,.0f} MB  "
            f"({(result['peak'] - results['backbone']['peak']) / 1e6:+,.0f} MB)"
        )


if __name__ == "__main__":
    main()
