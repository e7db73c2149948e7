"""Checks on a GPU what only a GPU can show of packtok's training half, with data that it packs itself.

    python scripts/gpu_check.py --output gpu_check.json    # one GPU with 80 GB, at most 8 minutes
    python scripts/gpu_check.py --small                    # all checks in small, also on a CPU: a minute

Needs packtok, torch and transformers; the check of the trainers also Lightning and accelerate. Prints one
line for each check and JSON at the end, and exits with 1 if a check failed. With ``--small``, speed and
memory are measured and not judged. What needs CUDA is "not run" on a CPU.

Each check runs in a process of its own with a time limit, so that a crash, a hang or an error that makes
CUDA unusable ends this check only. What it found until then is kept. The first process only forks the others
and never uses the GPU, because a process that has used it cannot be forked.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import importlib.metadata
import importlib.util
import inspect
import itertools
import json
import math
import multiprocessing
import os
import platform
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

import packtok
from packtok.stream import CheckpointableDataset

Batch = dict[str, Any]


@dataclass(frozen=True)
class Check:
    """A check: the function ``name`` of this file."""

    name: str
    title: str
    seconds: int
    """The time limit."""
    runs_with_others: bool = False
    """Whether the check measures nothing, so that other such checks may run at the same time."""


CHECKS = (
    Check("pinning", "batches are pinned, or one message says why not", 60, runs_with_others=True),
    Check("attention", "attention kernels keep documents apart", 120, runs_with_others=True),
    Check("resume", "a killed run resumes exactly", 150, runs_with_others=True),
    Check("trainers", "trainers resume with the same batches", 150, runs_with_others=True),
    Check("in_flight", "nothing is overwritten in flight", 60),
    Check("never_waits", "the GPU never waits", 240),
    Check("raw_feed", "the raw feed is near a memcpy", 60),
    Check("teacher_signals", "teacher signals are near the backbone", 120),
)
# Time limit of all checks and the data together. A CPU has more time.
TOTAL_SECONDS = 8 * 60
TIMES_ON_CPU = 5
# Ids of teacher signals for each position.
TOPK = 50
# GPT-2's 50,257 ids, rounded up to a multiple of 64; and the ids of the tokenizer of small checks.
NUM_IDS = 50_304
NUM_SMALL_IDS = 384


@dataclass(frozen=True)
class Shape:
    """The size of a GPT."""

    num_layers: int
    width: int
    num_heads: int
    vocab_size: int


@dataclass(frozen=True)
class Sizes:
    """How much is done."""

    # Bytes of each of the four sources; about 2.5 characters are a token of 2 bytes.
    text_bytes: int = 68_000_000
    least_token_bytes: int = 200_000_000
    # The feeds.
    gpt: Shape = Shape(12, 768, 12, NUM_IDS)  # 124 million parameters
    context_length: int = 1024
    batch_size: int = 32
    num_turns: int = 6
    steps_per_turn: int = 10
    raw_batches_per_turn: int = 200
    raw_turns: int = 5
    # Copies in flight.
    rounds: int = 100
    # Attention.
    attention_gpt: Shape = Shape(4, 256, 4, NUM_IDS)
    attention_rows: int = 8
    # Killed runs.
    trained_gpt: Shape = Shape(4, 256, 4, NUM_IDS)
    trained_context: int = 256
    trained_batch: int = 16
    steps: int = 60
    save_at: int = 30
    kill_at: int = 33
    trainer_steps: int = 50
    trainer_save_every: int = 10
    trainer_kill_at: int = 33
    # Teacher signals: a Llama of a billion parameters with 32,000 words.
    teacher: Mapping[str, int] = field(
        default_factory=lambda: {
            "vocab_size": 32_000,
            "hidden_size": 2048,
            "intermediate_size": 5632,
            "num_hidden_layers": 18,
            "num_attention_heads": 16,
        }
    )
    # With longer samples, a single one keeps the card busy, so that batches gain little.
    teacher_samples: int = 768
    teacher_positions: int = 256


SMALL = Sizes(
    text_bytes=120_000,
    least_token_bytes=0,
    gpt=Shape(1, 32, 2, NUM_SMALL_IDS),
    context_length=64,
    batch_size=4,
    num_turns=2,
    steps_per_turn=2,
    raw_batches_per_turn=20,
    raw_turns=2,
    rounds=3,
    attention_gpt=Shape(2, 32, 2, NUM_SMALL_IDS),
    attention_rows=4,
    trained_gpt=Shape(1, 32, 2, NUM_SMALL_IDS),
    trained_context=64,
    trained_batch=4,
    steps=12,
    save_at=6,
    kill_at=8,
    trainer_steps=12,
    trainer_save_every=4,
    trainer_kill_at=10,
    teacher={
        "vocab_size": 512,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
    },
    teacher_samples=8,
    teacher_positions=32,
)


@dataclass(frozen=True)
class Plan:
    """The state that the checks share. Processes receive it pickled."""

    folder: Path
    device: str
    """``cuda`` or ``cpu``."""
    is_small: bool

    @property
    def has_cuda(self) -> bool:
        """Whether the checks run on a GPU."""
        return self.device == "cuda"

    @property
    def sizes(self) -> Sizes:
        """How much is done."""
        return SMALL if self.is_small else Sizes()

    @property
    def tokenizer(self) -> str:
        """GPT-2's, which comes with packtok, or a small one."""
        return str(self.folder / "tokenizer.json") if self.is_small else "gpt2"

    @property
    def texts(self) -> list[str]:
        """The JSON lines of the four sources."""
        return [str(self.folder / f"source-{i}.jsonl") for i in range(4)]

    @property
    def pbins(self) -> list[str]:
        """Their tokens."""
        return [str(self.folder / f"source-{i}.pbin") for i in range(4)]

    def log(self, check: str) -> Path:
        """The file with the output of a check and its processes."""
        return self.folder / f"{check}.log"

    def result(self, check: str) -> Path:
        """The file with the result of a check."""
        return self.folder / f"{check}.json"


# Forking makes this cheap: the new process has all imports of this one.
_FORK = multiprocessing.get_context("fork")


def start(function: Callable[..., None], *arguments: Any) -> BaseProcess:
    """Starts ``function`` in a process forked from this one, which must not have used the GPU."""
    process: BaseProcess = _FORK.Process(target=function, args=arguments)
    process.start()
    return process


class Report:
    """The results of a check, part by part.

    Each part is written to a file at once, so that a kill loses none.
    """

    def __init__(self, path: Path, *, judges_speed: bool) -> None:
        self.path = path
        self.judges_speed = judges_speed
        self.parts: list[dict[str, Any]] = []

    def add(self, name: str, status: str, text: str = "", **figures: Any) -> None:
        """Adds a part. ``text`` is shown for it in the line of the check."""
        self.parts.append({"name": name, "status": status, **({"shown": text} if text else {}), **figures})
        unfinished = self.path.with_suffix(".tmp")
        unfinished.write_text(json.dumps(self.parts, default=str))
        unfinished.replace(self.path)

    def expect(self, name: str, holds: bool, text: str = "", **figures: Any) -> None:
        """Adds a part that passes if ``holds``."""
        self.add(name, "passed" if holds else "failed", text, **figures)

    def at_least(self, name: str, value: float, bar: float, text: str, **figures: Any) -> None:
        """Adds a part that passes if a speed or a ratio reaches its bar, where speed is judged."""
        self._judge(name, value >= bar, text, value=value, at_least=bar, **figures)

    def at_most(self, name: str, value: float, bar: float, text: str, **figures: Any) -> None:
        """Adds a part that passes if a size does not exceed its bar, where it is judged."""
        self._judge(name, value <= bar, text, value=value, at_most=bar, **figures)

    def _judge(self, name: str, holds: bool, text: str, **figures: Any) -> None:
        status = "measured" if not self.judges_speed else "passed" if holds else "failed"
        self.add(name, status, text, **figures)

    def measured(self, name: str, text: str, **figures: Any) -> None:
        """Adds a part that is not judged."""
        self.add(name, "measured", text, **figures)

    def not_run(self, name: str, reason: str) -> None:
        """Adds a part that this machine cannot run."""
        self.add(name, "not run", reason=reason)


# --- Data, a model, feeds, time ---


def write_documents(path: str, seed: int, num_bytes: int) -> None:
    """Writes documents of invented words, of very different lengths, as JSON lines."""
    rng = np.random.default_rng(seed)
    syllables = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
    words = ["".join(rng.choice(syllables, rng.integers(1, 4))) for _ in range(4096)]
    written = 0
    with open(path, "w", encoding="ascii") as file:
        while written < num_bytes:
            length = int(rng.lognormal(4.6, 1.0)) + 1
            # The square makes some words more frequent than others.
            chosen = (rng.random(length) ** 2 * len(words)).astype(int).tolist()
            written += file.write(json.dumps({"text": " ".join([words[i] for i in chosen])}) + "\n")


def train_tokenizer(texts: list[str], path: str) -> None:
    """Writes a tokenizer of a few ids, with which a small model takes little time."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=NUM_SMALL_IDS,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train(texts[:1], trainer)
    tokenizer.save(path)


def prepare(plan: Plan) -> None:
    """Writes and packs the data of all checks, and a file with the amounts."""
    started = time.perf_counter()
    writing = [
        start(write_documents, path, seed, plan.sizes.text_bytes) for seed, path in enumerate(plan.texts)
    ]
    for process in writing:
        process.join()
    if plan.is_small:
        train_tokenizer(plan.texts, plan.tokenizer)
    reports = [
        packtok.pack(input=text, output=pbin, tokenizer=plan.tokenizer)
        for text, pbin in zip(plan.texts, plan.pbins, strict=True)
    ]
    packed = {
        "token_bytes": sum(report.data_bytes for report in reports),
        "documents": sum(report.documents for report in reports),
        "seconds": round(time.perf_counter() - started, 1),
    }
    if packed["token_bytes"] < plan.sizes.least_token_bytes:
        raise ValueError(f"{packed['token_bytes']:,} bytes of tokens are too few; raise text_bytes")
    plan.result("data").write_text(json.dumps(packed))


Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


def causal(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attends to all earlier positions of a row; queries, keys and values are (rows, heads, tokens, size)."""
    return functional.scaled_dot_product_attention(query, key, value, is_causal=True)


class Block(nn.Module):
    """One layer: attention with rotary positions and a feed-forward network, each added to its input."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.num_heads = shape.num_heads
        self.attention_norm = nn.LayerNorm(shape.width, bias=False)
        self.inputs = nn.Linear(shape.width, 3 * shape.width, bias=False)
        self.output = nn.Linear(shape.width, shape.width, bias=False)
        self.feed_forward_norm = nn.LayerNorm(shape.width, bias=False)
        self.widen = nn.Linear(shape.width, 4 * shape.width, bias=False)
        self.narrow = nn.Linear(4 * shape.width, shape.width, bias=False)

    def forward(self, x: Tensor, rotation: tuple[Tensor, Tensor], attend: Attend) -> Tensor:
        """Returns ``x``, (rows, tokens, width), with both outputs added."""
        rows, tokens, width = x.shape
        heads = self.inputs(self.attention_norm(x)).view(rows, tokens, 3 * self.num_heads, -1).transpose(1, 2)
        query, key, value = heads.chunk(3, dim=1)
        attended = attend(_rotated(query, *rotation), _rotated(key, *rotation), value)
        x = x + self.output(attended.transpose(1, 2).reshape(rows, tokens, width))
        return x + self.narrow(functional.gelu(self.widen(self.feed_forward_norm(x))))


def _rotated(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    rotated = torch.cat([first * cosines - second * sines, second * cosines + first * sines], dim=-1)
    return rotated.to(x.dtype)


class GPT(nn.Module):
    """A decoder with rotary positions; how it attends is an argument."""

    def __init__(self, shape: Shape, *, std: float = 0.02) -> None:
        super().__init__()
        self.head_size = shape.width // shape.num_heads
        self.tokens = nn.Embedding(shape.vocab_size, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.num_layers))
        self.norm = nn.LayerNorm(shape.width, bias=False)
        for parameter in self.parameters():
            if parameter.ndim > 1:
                nn.init.normal_(parameter, std=std)

    def forward(self, ids: Tensor, positions: Tensor | None = None, attend: Attend = causal) -> Tensor:
        """Returns logits (rows, tokens, ids) for ids (rows, tokens)."""
        if positions is None:
            positions = torch.arange(ids.shape[1], device=ids.device)[None]
        exponents = torch.arange(0, self.head_size, 2, device=ids.device) / self.head_size
        angles = (positions[..., None] * 10_000.0**-exponents)[:, None]
        rotation = angles.cos(), angles.sin()
        x = self.tokens(ids)
        for block in self.blocks:
            x = block(x, rotation, attend)
        return functional.linear(self.norm(x), self.tokens.weight)


def loss_sum(logits: Tensor, labels: Tensor) -> Tensor:
    """Returns the sum of the losses at all labels that are not -100."""
    return functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), reduction="sum")


def mixed(device: str, *, enabled: bool = True) -> AbstractContextManager[Any]:
    """Computes in bfloat16 on a GPU. All other numbers, and all numbers on a CPU, stay float32."""
    if device == "cuda" and enabled:
        return torch.autocast("cuda", dtype=torch.bfloat16)
    return nullcontext()


def on_card(batch: Batch, device: str, *, copied: bool = False) -> Batch:
    """Starts copying all tensors of a batch to the device."""
    return {
        name: value.to(device, non_blocking=True, copy=copied) if isinstance(value, Tensor) else value
        for name, value in batch.items()
    }


def synchronize(device: str) -> None:
    """Waits for the device."""
    if device == "cuda":
        torch.cuda.synchronize()


def loader_of(plan: Plan, dataset: Any, *, num_workers: int = 0, **options: Any) -> packtok.DataLoader:
    """Returns a loader, with workers that pin their batches if there is a GPU."""
    workers: dict[str, Any] = {}
    if num_workers:
        workers = {
            "num_workers": num_workers,
            # A process that uses the GPU has threads, and a forked process may inherit their locks.
            "multiprocessing_context": "spawn" if plan.has_cuda else "fork",
            "persistent_workers": True,
            "pin_memory": options.pop("pin_memory", plan.has_cuda),
        }
    options = {"batch_size": plan.sizes.batch_size, **options}
    return packtok.DataLoader(dataset, **workers, **options)


def endless(loader: packtok.DataLoader) -> Iterator[Batch]:
    """Yields the batches of all epochs."""
    while True:
        yield from loader


def feeds(plan: Plan) -> dict[str, Callable[[], Iterator[Batch]]]:
    """Returns each way of making batches for training; every call starts at the same first batch."""
    length, pin = plan.sizes.context_length, plan.has_cuda

    def dataset(**options: Any) -> packtok.TokenDataset:
        return packtok.TokenDataset(plan.pbins, length, **{"pin_memory": pin, **options})

    def mixture() -> packtok.Mixture:
        weights = dict(zip(plan.pbins, (0.4, 0.3, 0.2, 0.1), strict=True))
        return packtok.Mixture(weights, context_length=length, pin_memory=pin)

    def best_fit() -> packtok.TokenDataset:
        return dataset(packing="best_fit", position_ids=True, document_ids=True, cu_seqlens=True)

    def stream() -> Iterator[Batch]:
        files = CheckpointableDataset.from_files(plan.texts, repeat=True, shuffle_shards=True)
        documents = files.tokenize(plan.tokenizer).add_bos_eos(None, eod)
        rows = documents.concat_chunk(length, labels=True)
        return rows.shuffle(1000).batch(plan.sizes.batch_size, pin_memory=pin).iter()

    eod = (packtok.PbinReader(plan.pbins[0]).metadata or {})["eod"]["id"]
    shuffled: dict[str, Any] = {"shuffle": True, "seed": 1}
    return {
        "main process": lambda: endless(loader_of(plan, dataset(), **shuffled)),
        "2 workers": lambda: endless(loader_of(plan, dataset(pin_memory=False), num_workers=2, **shuffled)),
        "mixture of 4": lambda: endless(loader_of(plan, mixture())),
        "best fit": lambda: endless(loader_of(plan, best_fit(), **shuffled)),
        "live stream": stream,
    }


# --- The GPU never waits; the raw feed ---


def never_waits(report: Report, plan: Plan) -> None:
    """Trains on each feed and on the same batches, copied to the device in advance, in turns."""
    sizes = plan.sizes
    num_steps = sizes.num_turns * sizes.steps_per_turn
    makers = feeds(plan)
    resident = {
        name: [on_card(batch, plan.device) for batch in itertools.islice(make(), num_steps)]
        for name, make in makers.items()
    }
    take_step = _training_step(plan)
    started = time.perf_counter()
    for _ in range(3):
        take_step(resident["main process"][0])
    synchronize(plan.device)
    report.measured("first three steps, with compiling", "", seconds=time.perf_counter() - started)

    both = {name: (make(), itertools.cycle(resident[name])) for name, make in makers.items()}
    for batches in itertools.chain.from_iterable(both.values()):
        # The warm-up starts workers, fills shuffle buffers and allocates pinned memory before the first turn.
        take_step(on_card(next(batches), plan.device))
    seconds = {name: [0.0, 0.0] for name in both}
    waited = dict.fromkeys(both, 0.0)
    for number in range(sizes.num_turns):
        for name, pair in both.items():
            # The order alternates, so that a drift of the clocks favours neither.
            for which in (0, 1) if number % 2 else (1, 0):
                took, in_next = _turn(take_step, pair[which], plan)
                seconds[name][which] += took
                waited[name] += 0.0 if which else in_next
    for name, (fed, alone) in seconds.items():
        ratio = alone / fed
        report.at_least(
            name,
            ratio,
            0.97 if name == "live stream" else 0.99,
            f"{name} {ratio:.1%}",
            steps_per_second=num_steps / fed,
            steps_per_second_alone=num_steps / alone,
            tokens_per_second=num_steps * sizes.batch_size * sizes.context_length / fed,
            milliseconds_in_next=1000 * waited[name] / num_steps,
        )


def _training_step(plan: Plan) -> Callable[[Batch], None]:
    """Returns a function that trains a GPT, compiled on a GPU, on a batch."""
    torch.manual_seed(0)
    model = GPT(plan.sizes.gpt).to(plan.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=plan.has_cuda)

    def mean_loss(ids: Tensor, labels: Tensor) -> Tensor:
        return loss_sum(model(ids), labels) / labels.numel()

    compiled = torch.compile(mean_loss) if plan.has_cuda else mean_loss

    def take_step(batch: Batch) -> None:
        with mixed(plan.device):
            loss = compiled(batch["input_ids"], batch["labels"])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return take_step


def _turn(take_step: Callable[[Batch], None], batches: Iterator[Batch], plan: Plan) -> tuple[float, float]:
    """Returns the seconds of a turn, and the seconds in which this process waited for batches."""
    synchronize(plan.device)
    waited, started = 0.0, time.perf_counter()
    for _ in range(plan.sizes.steps_per_turn):
        requested_at = time.perf_counter()
        batch = next(batches)
        waited += time.perf_counter() - requested_at
        take_step(on_card(batch, plan.device))
    synchronize(plan.device)
    return time.perf_counter() - started, waited


def raw_feed(report: Report, plan: Plan) -> None:
    """Copies batches to the device without a model; compares with a memcpy and a copy of the same bytes."""
    sizes, device = plan.sizes, plan.device
    makers = feeds(plan)
    fed = {name: makers[name]() for name in ("main process", "2 workers")}
    kept = [next(fed["main process"]) for _ in range(64)]
    sources = [
        np.concatenate([field.flatten().numpy() for field in batch.values()]).view(np.uint8) for batch in kept
    ]
    batch_bytes = sources[0].nbytes
    buffers = [torch.empty(batch_bytes, dtype=torch.uint8, pin_memory=plan.has_cuda) for _ in range(2)]
    arrays = [buffer.numpy() for buffer in buffers]
    # ``None`` while the buffer is unused.
    copies: list[torch.cuda.Event | None] = [None, None]

    def copy_beside(number: int) -> None:
        slot = number % 2
        if (copied := copies[slot]) is not None:
            # The buffer must not be overwritten while it is copied.
            copied.synchronize()
        np.copyto(arrays[slot], sources[number % len(sources)])
        buffers[slot].to(device, non_blocking=True, copy=True)
        if plan.has_cuda:
            copies[slot] = torch.cuda.Event()
            copies[slot].record()  # type: ignore[union-attr]

    def seconds_of(step: Callable[[int], None]) -> float:
        synchronize(device)
        started = time.perf_counter()
        for number in range(sizes.raw_batches_per_turn):
            step(number)
        synchronize(device)
        return time.perf_counter() - started

    steps: dict[str, Callable[[int], None]] = {
        "memcpy": copy_beside,
        **{
            name: lambda _, batches=batches: on_card(next(batches), device, copied=not plan.has_cuda)  # type: ignore[misc]
            for name, batches in fed.items()
        },
    }
    for step in steps.values():
        seconds_of(step)
    seconds = dict.fromkeys(steps, 0.0)
    for _ in range(sizes.raw_turns):
        for name, step in steps.items():
            seconds[name] += seconds_of(step)
    moved = sizes.raw_turns * sizes.raw_batches_per_turn * batch_bytes
    rate = {name: moved / took / 1e6 for name, took in seconds.items()}
    figures = {"megabytes_per_second": rate["main process"], "batch_bytes": batch_bytes}
    ratio = rate["main process"] / rate["memcpy"]
    report.at_least("main process", ratio, 0.5, f"main process {ratio:.0%} of memcpy", **figures)
    report.measured("memcpy", f"memcpy {rate['memcpy']:,.0f} MB/s", megabytes_per_second=rate["memcpy"])
    report.measured("2 workers", "", megabytes_per_second=rate["2 workers"])


# --- Nothing is overwritten in flight ---


def in_flight(report: Report, plan: Plan) -> None:
    """Copies batches after a kernel that occupies the stream, drops them at once, and compares them."""
    length, size = plan.sizes.context_length, plan.sizes.batch_size

    def in_order(pin_memory: bool, num_workers: int) -> Iterator[Batch]:
        dataset = packtok.TokenDataset(
            plan.pbins, length, pin_memory=pin_memory and plan.has_cuda and not num_workers
        )
        options = {"pin_memory": pin_memory and plan.has_cuda} if num_workers else {}
        return iter(loader_of(plan, dataset, num_workers=num_workers, **options))

    rows = CheckpointableDataset.from_pbin(plan.pbins).concat_chunk(length, labels=True)
    # Batches of each feed that are copied in a round. A copy of pageable memory waits for the kernel, so such
    # copies come last.
    makers: dict[str, tuple[int, Iterator[Batch]]] = {
        "pinned, main process": (4, in_order(True, 0)),
        "pinned, 2 workers": (3, in_order(True, 2)),
        "pinned, stream": (3, rows.batch(size, pin_memory=plan.has_cuda).iter()),
        "pageable, main process": (1, in_order(False, 0)),
        "pageable, 2 workers": (1, in_order(False, 2)),
    }
    items = packtok.TokenDataset(plan.pbins, length)
    positions = dict.fromkeys(makers, 0)
    wrong = dict.fromkeys(makers, 0)
    occupy = _occupying(plan)
    num_in_flight = 0
    # The first round allocates memory, which may wait for the device.
    for number in range(1 + plan.sizes.rounds):
        is_busy = occupy()
        copies: list[tuple[str, Batch]] = []
        for name, (count, batches) in makers.items():
            if name.startswith("pageable") and len(copies) == 10:
                num_in_flight += number > 0 and is_busy()
            # The host batch has no other reference: its memory may be used again while it is copied.
            copies += [(name, on_card(next(batches), plan.device, copied=True)) for _ in range(count)]
        synchronize(plan.device)
        for name, batch in copies:
            expected = [items[i] for i in range(positions[name], positions[name] + size)]
            positions[name] += size
            wrong[name] += not all(
                torch.equal(batch[key].cpu(), torch.stack([item[key] for item in expected]))
                for key in ("input_ids", "labels")
            )
    for name in makers:
        report.expect(name, wrong[name] == 0, batches=positions[name] // size, wrong=wrong[name])
    if not plan.has_cuda:
        report.not_run("copies were in flight", "needs CUDA")
        report.not_run("a buffer that is overwritten in flight is noticed", "needs CUDA")
        return
    text = f"{num_in_flight} of {plan.sizes.rounds} rounds in flight"
    report.expect("copies were in flight", num_in_flight >= plan.sizes.rounds // 2, text)
    buffer = torch.zeros(1 << 20, dtype=torch.uint8, pin_memory=True)
    occupy()
    copied = buffer.to(plan.device, non_blocking=True)
    buffer.fill_(1)
    synchronize(plan.device)
    report.expect("a buffer that is overwritten in flight is noticed", int(copied.sum()) > 0)


def _occupying(plan: Plan) -> Callable[[], Callable[[], bool]]:
    """Returns a function that starts a kernel of 50 ms and returns whether it still runs."""
    if not plan.has_cuda:
        return lambda: lambda: False
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    cycles = 20_000_000
    for _ in range(2):
        first.record()
        torch.cuda._sleep(cycles)
        last.record()
        torch.cuda.synchronize()
    cycles = int(cycles * 50 / first.elapsed_time(last))

    def occupy() -> Callable[[], bool]:
        torch.cuda._sleep(cycles)
        done = torch.cuda.Event()
        done.record()
        return lambda: not done.query()

    return occupy


# --- A killed run resumes exactly ---


@dataclass(frozen=True)
class Training:
    """A training run, or the rest of one."""

    name: str
    folder: str
    pbins: list[str]
    device: str
    is_small: bool
    is_mixed: bool
    kills: bool = False
    """Whether the run kills itself at ``kill_at``."""
    resumes: str | None = None
    """The checkpoint from which the run resumes."""
    division: int = 1
    """The number of parts of each batch, whose gradients are accumulated."""

    @property
    def log(self) -> Path:
        """The file with a line for each step."""
        return Path(self.folder) / f"{self.name}.log"

    @property
    def checkpoint(self) -> Path:
        """The checkpoint of the step ``save_at``."""
        return Path(self.folder) / f"{self.name}.pt"

    def lines(self) -> list[dict[str, Any]]:
        """Returns what was logged."""
        text = self.log.read_text() if self.log.exists() else ""
        return [json.loads(line) for line in text.splitlines()]


def train(run: Training) -> None:
    """Trains deterministically, logging the loss and a digest of the ids of each step."""
    # cuBLAS reads this at its first use.
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    torch.use_deterministic_algorithms(True)
    # torch need not fill new memory, because packtok fills the memory that it allocates.
    deterministic: Any = torch.utils.deterministic
    deterministic.fill_uninitialized_memory = False
    if run.device == "cuda":
        # cuDNN's attention is not deterministic.
        torch.backends.cuda.enable_cudnn_sdp(False)
    is_launched = "TORCHELASTIC_RUN_ID" in os.environ
    if is_launched:
        dist.init_process_group("nccl" if run.device == "cuda" else "gloo")
    sizes = SMALL if run.is_small else Sizes()
    torch.manual_seed(1)
    model = GPT(sizes.trained_gpt).to(run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    dataset = packtok.TokenDataset(
        run.pbins, sizes.trained_context, position_ids=True, pin_memory=run.device == "cuda"
    )
    loader = packtok.DataLoader(dataset, global_batch_size=sizes.trained_batch, shuffle=True, seed=2)
    step = 0
    if run.resumes is not None:
        content = torch.load(run.resumes, map_location=run.device, weights_only=True)
        model.load_state_dict(content["model"])
        optimizer.load_state_dict(content["optimizer"])
        loader.load_state_dict(content["loader"])
        step = content["step"]
    trained: nn.Module = DistributedDataParallel(model) if is_launched else model
    with run.log.open("a", buffering=1) as log:
        for host_batch in loader:
            ids = digest_of(host_batch["input_ids"])
            batch = on_card(host_batch, run.device)
            loss = _accumulate(trained, batch, run)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            log.write(json.dumps({"step": step, "loss": loss, "ids": ids}) + "\n")
            if step == sizes.save_at:
                content = {
                    "step": step,
                    "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "loader": loader.state_dict(),
                }
                torch.save(content, run.checkpoint)
            if run.kills and step == sizes.kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            if step == sizes.steps:
                break
        weights = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
        log.write(json.dumps({"step": "end", "weights": digest_of(weights)}) + "\n")
    if is_launched:
        dist.destroy_process_group()


def _accumulate(model: nn.Module, batch: Batch, run: Training) -> float:
    """Adds the gradients of a batch, part by part; returns its loss."""
    num_labels = int((batch["labels"] != -100).sum())
    total = torch.zeros((), dtype=torch.float64, device=run.device)
    parts = [batch[name].chunk(run.division) for name in ("input_ids", "labels", "position_ids")]
    for ids, labels, positions in zip(*parts, strict=True):
        with mixed(run.device, enabled=run.is_mixed):
            loss = loss_sum(model(ids, positions), labels)
        (loss / num_labels).backward()
        total += loss.detach()
    return float(total / num_labels)


def digest_of(tensor: Tensor) -> str:
    """Returns a digest of the bytes of a tensor."""
    return hashlib.sha256(tensor.detach().cpu().contiguous().numpy().tobytes()).hexdigest()[:16]


def resume(report: Report, plan: Plan) -> None:
    """Trains without interruption, and with a SIGKILL and a second process; compares ids, losses, weights."""
    sizes = plan.sizes
    folder = plan.folder / "resume"
    folder.mkdir()

    def run(name: str, **options: Any) -> Training:
        fixed = {"folder": str(folder), "pbins": plan.pbins, "device": plan.device}
        return Training(name, **{**fixed, "is_small": plan.is_small, "is_mixed": plan.has_cuda, **options})

    whole, killed = run("whole"), run("killed", kills=True)
    # Computes in float32, where the rounding of parts is small.
    exact = run("float32", is_mixed=False) if plan.has_cuda else whole
    resumed = run("resumed", resumes=str(killed.checkpoint))
    divided = run("divided", resumes=str(exact.checkpoint), is_mixed=False, division=2)
    first = [start(train, settings) for settings in {whole.name: whole, exact.name: exact}.values()]
    dying = start(train, killed)
    launched = [run("launched whole"), run("launched killed", kills=True)] if plan.has_cuda else []
    launchers = [_launch(training) for training in launched]
    for process in (*first, dying):
        process.join()
    second = [start(train, training) for training in (resumed, divided)]
    for process in second:
        process.join()
    report.expect("the run was killed", dying.exitcode == -signal.SIGKILL, exitcode=dying.exitcode)
    _compare_resumed(report, "resumed", whole, killed, resumed, sizes)

    expected, rows = exact.lines()[sizes.save_at : sizes.steps], divided.lines()[:-1]
    errors = [abs(b["loss"] / a["loss"] - 1) for a, b in zip(expected, rows, strict=False)]
    has_same_ids = [line["ids"] for line in expected] == [line["ids"] for line in rows]
    report.expect(
        "divided batches",
        has_same_ids and max(errors, default=math.inf) < 1e-3,
        f"divided within {max(errors, default=math.inf):.1e}",
        same_ids=has_same_ids,
        largest_relative_error=max(errors, default=None),
    )
    if not launched:
        report.not_run("torchrun with NCCL", "needs CUDA")
        return
    codes = [launcher.wait() for launcher in launchers]
    rest = run("launched resumed", resumes=str(launched[1].checkpoint))
    codes.append(_launch(rest).wait())
    report.expect(
        "torchrun ended as expected", [code != 0 for code in codes] == [False, True, False], codes=codes
    )
    _compare_resumed(report, "torchrun with NCCL", launched[0], launched[1], rest, sizes)
    same = launched[0].lines() == whole.lines()
    report.measured("torchrun computes what one process does", "", same=same)


def _launch(run: Training) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=1"]
    return subprocess.Popen([*command, __file__, "--train", json.dumps(asdict(run))])


def _compare_resumed(
    report: Report, name: str, whole: Training, killed: Training, resumed: Training, sizes: Sizes
) -> None:
    expected, before, after = whole.lines(), killed.lines(), resumed.lines()
    has_all = len(expected) == sizes.steps + 1
    is_same = before == expected[: sizes.kill_at] and after == expected[sizes.save_at :]
    report.expect(
        name,
        has_all and is_same,
        f"{name}: bit for bit" if has_all and is_same else "",
        steps=len(expected) - 1,
        last_losses=[lines[-2].get("loss") if len(lines) > 1 else None for lines in (expected, after)],
    )


# --- Attention kernels ---


@dataclass(frozen=True)
class Document:
    """A document's part of a row."""

    row: int
    start: int
    ids: Tensor
    labels: Tensor


def attention(report: Report, plan: Plan) -> None:
    """Compares packed rows, through each attention kernel, with every document alone, padded."""
    sizes, device = plan.sizes, plan.device
    length, rows = sizes.context_length, sizes.attention_rows
    dataset = packtok.TokenDataset(
        plan.pbins,
        length,
        packing="best_fit",
        position_ids=True,
        document_ids=True,
        cu_seqlens=True,
        pin_memory=plan.has_cuda,
    )
    loader = packtok.DataLoader(dataset, rows, shuffle=True, seed=3)
    host_batch = next(iter(loader))
    documents = _documents_of(loader, length)
    _check_fields(report, host_batch, documents, length)
    batch = on_card(host_batch, device)

    torch.manual_seed(4)
    # With this deviation, queries and keys are large enough for attention to depend on the positions.
    model = GPT(sizes.attention_gpt, std=sizes.attention_gpt.width**-0.5).to(device).eval()
    alone = _Alone(documents, device)
    compare = _Comparison(report, alone, model, plan)
    cu_seqlens, positions = batch["cu_seqlens"], batch["position_ids"]

    def packed(attend: Attend) -> Callable[[], Tensor]:
        return lambda: model(batch["input_ids"], positions, attend)

    compare("segments of cu_seqlens", packed(lambda *heads: _by_segments(cu_seqlens.tolist(), *heads)))
    variable = _variable_length(cu_seqlens, batch["max_seqlen"])
    if not plan.has_cuda:
        report.not_run("variable length by cu_seqlens", "needs CUDA")
    elif variable is None:
        report.not_run("variable length by cu_seqlens", "needs torch.nn.attention.varlen or flash_attn")
    else:
        compare("variable length by cu_seqlens", packed(variable))
    flexible = _flexible(batch["document_ids"], plan)
    if flexible is None:
        report.not_run("flex_attention by document_ids", "this torch has none")
    else:
        compare("flex_attention by document_ids", packed(flexible))
    compare("attention across documents is noticed", packed(causal), differs=True)
    compare.llama("position_ids in a Llama of transformers", batch)


def _documents_of(loader: packtok.DataLoader, length: int) -> list[Document]:
    """Returns the documents of the first batch, as the files have them."""
    documents = []
    readers: dict[str, packtok.PbinReader] = {}
    for entry in loader.locate(0):
        offset = 0
        for path, number, start, stop in entry["documents"]:
            reader = readers.setdefault(path, packtok.PbinReader(path))
            tokens = torch.from_numpy(np.array(reader[number], np.int64))
            labels = torch.full((stop - start,), -100)
            # The last token of a document has no label.
            labels[: len(tokens) - 1 - start] = tokens[start + 1 : stop + 1]
            documents.append(Document(entry["row"], offset, tokens[start:stop], labels))
            offset += stop - start
        if offset > length:
            raise ValueError(f"row {entry['row']} has {offset} tokens, expected at most {length}")
    return documents


def _check_fields(report: Report, batch: Batch, documents: Sequence[Document], length: int) -> None:
    """Compares the fields of a batch with the documents, token by token."""
    ids_, labels, positions = batch["input_ids"], batch["labels"], batch["position_ids"]
    shape = labels.shape
    expected_labels, expected_numbers = torch.full(shape, -100), torch.full(shape, -1, dtype=torch.int32)
    ends, are_same = {0}, True
    numbers = dict.fromkeys(range(shape[0]), 0)
    for document in documents:
        place = (document.row, slice(document.start, document.start + len(document.ids)))
        expected_labels[place] = document.labels
        expected_numbers[place] = numbers[document.row]
        numbers[document.row] += 1
        are_same &= torch.equal(ids_[place], document.ids)
        are_same &= torch.equal(positions[place], torch.arange(len(document.ids)))
        ends |= {document.row * length + place[1].start, document.row * length + place[1].stop}
    ends |= {row * length for row in range(shape[0] + 1)}
    report.expect("ids and position_ids", are_same, documents=len(documents))
    report.expect("labels at boundaries", torch.equal(labels, expected_labels))
    report.expect("document_ids", torch.equal(batch["document_ids"], expected_numbers))
    report.expect("cu_seqlens", batch["cu_seqlens"].tolist() == sorted(ends))


class _Alone:
    """Each document in a row of its own, padded on the right, where a causal model does not see it."""

    def __init__(self, documents: Sequence[Document], device: str) -> None:
        width = max(len(document.ids) for document in documents)
        self.documents = documents
        self.ids = torch.zeros(len(documents), width, dtype=torch.int64)
        self.labels = torch.full_like(self.ids, -100)
        for i, document in enumerate(documents):
            self.ids[i, : len(document.ids)] = document.ids
            self.labels[i, : len(document.ids)] = document.labels
        self.ids, self.labels = self.ids.to(device), self.labels.to(device)

    def of_packed(self, logits: Tensor) -> list[Tensor]:
        """Returns the logits of each document from those of packed rows."""
        return [
            logits[document.row, document.start : document.start + len(document.ids)].float()
            for document in self.documents
        ]

    def of_padded(self, logits: Tensor) -> list[Tensor]:
        """Returns the logits of each document from those of the padded rows."""
        return [
            row[: len(document.ids)].float() for row, document in zip(logits, self.documents, strict=True)
        ]

    def losses(self, logits: Sequence[Tensor]) -> Tensor:
        """Returns the mean loss of each document."""
        device = self.labels.device
        sums = [
            functional.cross_entropy(of_document, document.labels.to(device), reduction="sum")
            / max(1, int((document.labels != -100).sum()))
            for of_document, document in zip(logits, self.documents, strict=True)
        ]
        return torch.stack(sums)


class _Comparison:
    """Compares logits and losses with those of documents alone, within the rounding of bfloat16."""

    def __init__(self, report: Report, alone: _Alone, model: nn.Module, plan: Plan) -> None:
        self.report, self.alone, self.plan = report, alone, plan
        self.exact, self.noise = self._reference(model, lambda: model(alone.ids))

    def _reference(self, model: nn.Module, padded: Callable[[], Tensor]) -> tuple[list[Tensor], list[float]]:
        """Returns the logits of each document in float32, and the difference of bfloat16 from them."""
        with torch.no_grad():
            exact = self.alone.of_padded(padded())
            with mixed(self.plan.device):
                rounded = self.alone.of_padded(padded())
        return exact, self._differences(rounded, exact)

    def _differences(self, logits: Sequence[Tensor], exact: Sequence[Tensor]) -> list[float]:
        """Returns the largest and the mean difference of logits, and the largest of losses."""
        difference = torch.cat([(a - b).abs().flatten() for a, b in zip(logits, exact, strict=True)])
        losses = (self.alone.losses(logits) - self.alone.losses(exact)).abs()
        return [float(difference.max()), float(difference.mean()), float(losses.max())]

    def __call__(self, name: str, packed: Callable[[], Tensor], *, differs: bool = False) -> None:
        """Adds a part for the logits of packed rows; with ``differs``, they must not be equal."""
        try:
            with torch.no_grad(), mixed(self.plan.device):
                logits = self.alone.of_packed(packed())
        except Exception as error:
            # A kernel that fails does not stop the other kernels.
            self.report.expect(name, False, error=f"{type(error).__name__}: {error}")
            return
        self._add(name, logits, self.exact, self.noise, differs=differs)

    def _add(
        self,
        name: str,
        logits: Sequence[Tensor],
        exact: Sequence[Tensor],
        noise: Sequence[float],
        *,
        differs: bool = False,
    ) -> None:
        differences = self._differences(logits, exact)
        # The largest of many rounding errors varies more than their mean; float32 has a limit of its own.
        allowed = [max(2.5 * noise[0], 1e-3), max(1.5 * noise[1], 1e-4), max(2.5 * noise[2], 1e-4)]
        is_within = all(a <= b for a, b in zip(differences, allowed, strict=True))
        names = ("largest_logit", "mean_logit", "largest_loss")
        self.report.expect(
            name,
            not is_within if differs else is_within,
            errors=dict(zip(names, differences, strict=True)),
            allowed=dict(zip(names, allowed, strict=True)),
        )

    def llama(self, name: str, batch: Batch) -> None:
        """Adds a part for packed rows in a model of transformers, which is only given ``position_ids``."""
        from transformers import LlamaConfig, LlamaForCausalLM

        torch.manual_seed(5)
        config = LlamaConfig(
            vocab_size=self.plan.sizes.attention_gpt.vocab_size,
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=2,
            max_position_embeddings=self.plan.sizes.context_length,
            initializer_range=0.125,
        )
        model: Any = LlamaForCausalLM(config)
        model = model.to(self.plan.device).eval()
        exact, noise = self._reference(model, lambda: model(input_ids=self.alone.ids).logits)
        options = {"position_ids": batch["position_ids"], "use_cache": False}
        with torch.no_grad(), mixed(self.plan.device):
            logits = self.alone.of_packed(model(input_ids=batch["input_ids"], **options).logits)
        self._add(name, logits, exact, noise)


def _by_segments(ends: Sequence[int], query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attends within each segment by itself."""
    rows = query.shape[0]
    flat = [heads.transpose(0, 1).flatten(1, 2)[None] for heads in (query, key, value)]
    parts = [causal(*(heads[:, :, start:stop] for heads in flat)) for start, stop in itertools.pairwise(ends)]
    return torch.cat(parts, dim=2)[0].unflatten(1, (rows, -1)).transpose(0, 1)


def _variable_length(cu_seqlens: Tensor, max_seqlen: int) -> Attend | None:
    """Returns attention of variable length by torch or flash_attn, or ``None`` if neither has it."""
    try:
        function: Any = importlib.import_module("torch.nn.attention.varlen").varlen_attn
        # torch 2.10 has a flag, later versions a window.
        has_flag = "is_causal" in inspect.signature(function).parameters
        options: dict[str, Any] = {"is_causal": True} if has_flag else {"window_size": (-1, 0)}
    except ImportError:
        try:
            function = importlib.import_module("flash_attn").flash_attn_varlen_func
        except ImportError:
            return None
        options = {"causal": True}

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        rows = query.shape[0]
        flat = [heads.transpose(1, 2).flatten(0, 1).contiguous() for heads in (query, key, value)]
        attended = function(*flat, cu_seqlens, cu_seqlens, max_seqlen, max_seqlen, **options)
        output: Tensor = attended[0] if isinstance(attended, tuple) else attended
        return output.unflatten(0, (rows, -1)).transpose(1, 2)

    return attend


def _flexible(document_ids: Tensor, plan: Plan) -> Attend | None:
    """Returns flex_attention within documents, or ``None`` if this torch has none."""
    try:
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    except ImportError:
        return None

    def within_document(row: Tensor, _head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return (document_ids[row, query] == document_ids[row, key]) & (query >= key)

    rows, length = document_ids.shape
    mask = create_block_mask(within_document, rows, None, length, length, device=plan.device)
    # Without a compiler, as on a CPU, flex_attention computes the whole matrix.
    function = torch.compile(flex_attention) if plan.has_cuda else flex_attention

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            output: Tensor = function(query, key, value, block_mask=mask)
        return output

    return attend


# --- Trainers ---


@dataclass(frozen=True)
class TrainerRun:
    """A run with a trainer, or the rest of one."""

    name: str
    folder: str
    pbin: str
    device: str
    is_small: bool
    kills: bool = False
    resumes: str | None = None

    @property
    def sizes(self) -> Sizes:
        """How much is done."""
        return SMALL if self.is_small else Sizes()

    @property
    def log(self) -> Path:
        """The file with a digest of the ids of each step."""
        return Path(self.folder) / f"{self.name}.log"

    def lines(self) -> list[str]:
        """Returns what was logged."""
        return self.log.read_text().splitlines() if self.log.exists() else []

    def note(self, step: int, ids: Tensor) -> None:
        """Logs a step, or dies before the step if this run is the one to be killed."""
        if self.kills and step == self.sizes.trainer_kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        with self.log.open("a") as log:
            log.write(f"{step + 1} {digest_of(ids)}\n")


def trainers(report: Report, plan: Plan) -> None:
    """Trains with Lightning and with Transformers' Trainer, kills both and resumes from a checkpoint."""
    sizes = plan.sizes
    last = sizes.trainer_kill_at // sizes.trainer_save_every * sizes.trainer_save_every
    recipes: list[tuple[str, str, Callable[[TrainerRun], None], str]] = [
        ("Lightning", "lightning", lightning_run, f"step={last}.ckpt"),
        ("Trainer", "accelerate", hugging_face_run, f"checkpoint-{last}"),
    ]
    running: list[tuple[str, Callable[[TrainerRun], None], str, list[TrainerRun], list[BaseProcess]]] = []
    for title, module, function, checkpoint in recipes:
        if importlib.util.find_spec(module) is None:
            report.not_run(title, f"{module} is not installed")
            continue
        folder = plan.folder / f"trainers-{module}"
        folder.mkdir()
        shared: dict[str, Any] = {
            "folder": str(folder),
            "pbin": plan.pbins[0],
            "device": plan.device,
            "is_small": plan.is_small,
        }
        runs = [TrainerRun("whole", **shared), TrainerRun("killed", kills=True, **shared)]
        runs.append(TrainerRun("resumed", resumes=str(folder / "killed" / checkpoint), **shared))
        running.append((title, function, checkpoint, runs, [start(function, run) for run in runs[:2]]))
    for title, function, _, runs, processes in running:
        for process in processes:
            process.join()
        codes = [process.exitcode for process in processes]
        rest = start(function, runs[2])
        rest.join()
        whole, killed, resumed = (run.lines() for run in runs)
        has_all = len(whole) == sizes.trainer_steps
        is_same = killed == whole[: sizes.trainer_kill_at] and resumed == whole[last:]
        report.expect(
            title,
            has_all and is_same and codes == [0, -signal.SIGKILL] and rest.exitcode == 0,
            f"{title}: {len(resumed)} batches after the kill" if has_all and is_same else "",
            steps=len(whole),
            exitcodes=[*codes, rest.exitcode],
        )


def lightning_run(run: TrainerRun) -> None:
    """Trains as ``examples/loaders/lightning_trainer.py`` does."""
    import lightning
    from lightning.pytorch.callbacks import ModelCheckpoint

    num_ids = run.sizes.trained_gpt.vocab_size

    class Model(lightning.LightningModule):
        """Predicts each token from the one before."""

        def __init__(self) -> None:
            super().__init__()
            self.model = nn.Sequential(nn.Embedding(num_ids, 32), nn.Linear(32, num_ids))

        def train_dataloader(self) -> packtok.DataLoader:
            """Creates the loader, whose state is in the checkpoints."""
            dataset = packtok.TokenDataset(run.pbin, context_length=64, pin_memory=run.device == "cuda")
            return packtok.DataLoader(dataset, global_batch_size=4, shuffle=True, seed=1)

        def training_step(self, batch: Batch, _: int) -> Tensor:
            """Returns the loss of a batch."""
            run.note(self.global_step, batch["input_ids"])
            return loss_sum(self.model(batch["input_ids"]), batch["labels"]) / batch["labels"].numel()

        def configure_optimizers(self) -> torch.optim.Optimizer:
            """Returns plain Adam."""
            return torch.optim.Adam(self.parameters(), lr=1e-2)

    torch.manual_seed(0)
    folder = Path(run.folder) / run.name
    checkpoints = ModelCheckpoint(
        folder,
        "{step}",
        every_n_train_steps=run.sizes.trainer_save_every,
        save_top_k=-1,
        enable_version_counter=False,
    )
    trainer = lightning.Trainer(
        accelerator="gpu" if run.device == "cuda" else "cpu",
        devices=1,
        max_steps=run.sizes.trainer_steps,
        max_epochs=-1,
        use_distributed_sampler=False,
        callbacks=[checkpoints],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Model(), ckpt_path=run.resumes, weights_only=True)


def hugging_face_run(run: TrainerRun) -> None:
    """Trains as ``examples/loaders/hf_trainer.py`` does."""
    from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments

    class PacktokTrainer(Trainer):
        """A Trainer whose training batches come from packtok."""

        def get_train_dataloader(self) -> packtok.DataLoader:
            """Returns the batches, from the position of the checkpoint."""
            self.loader = packtok.DataLoader(
                self.train_dataset,
                batch_size=self.args.per_device_train_batch_size,
                shuffle=True,
                seed=self.args.seed,
            )
            return self.loader

        def training_step(self, model: nn.Module, inputs: Any, *arguments: Any) -> Tensor:
            """Logs the batch."""
            run.note(self.state.global_step, inputs["input_ids"])
            return super().training_step(model, inputs, *arguments)

    class LoaderState(TrainerCallback):
        """Keeps the loader's state in the checkpoints."""

        def __init__(self, trainer: PacktokTrainer) -> None:
            self.trainer = trainer

        def on_save(self, args: TrainingArguments, state: Any, *_: Any, **__: Any) -> None:
            """Saves the state in the checkpoint that was just written."""
            path = Path(args.output_dir or "") / f"checkpoint-{state.global_step}" / "packtok_loader.json"
            path.write_text(json.dumps(self.trainer.loader.state_dict()))

        def on_train_begin(self, args: TrainingArguments, *_: Any, **__: Any) -> None:
            """Restores the state from the checkpoint."""
            if run.resumes is not None:
                text = (Path(run.resumes) / "packtok_loader.json").read_text()
                self.trainer.loader.load_state_dict(json.loads(text))

    config = LlamaConfig(
        vocab_size=run.sizes.trained_gpt.vocab_size,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=64,
    )
    arguments = TrainingArguments(
        output_dir=str(Path(run.folder) / run.name),
        max_steps=run.sizes.trainer_steps,
        per_device_train_batch_size=4,
        learning_rate=1e-2,
        lr_scheduler_type="constant",
        save_steps=run.sizes.trainer_save_every,
        report_to=[],
        use_cpu=run.device != "cuda",
        disable_tqdm=True,
        ignore_data_skip=True,
    )
    dataset = packtok.TokenDataset(
        run.pbin, context_length=64, labels="aligned", pin_memory=run.device == "cuda"
    )
    trainer = PacktokTrainer(
        model_init=lambda: LlamaForCausalLM(config), args=arguments, train_dataset=dataset
    )
    trainer.add_callback(LoaderState(trainer))
    trainer.train(resume_from_checkpoint=run.resumes)


# --- Teacher signals ---


def teacher_signals(report: Report, plan: Plan) -> None:
    """Runs ``packtok logits`` against the backbone of the model, and against batch 1 with a full sort."""
    folder = plan.folder / "teacher"
    ids = _teacher_files(folder, plan)
    costs, expected = _model_costs(folder, ids, plan)
    outputs = {}
    for method in ("topk", "sampled"):
        _signals(folder, "warm", method, plan)
        costs[method], outputs[method] = _signals(folder, "all", method, plan)
    num_tokens = plan.sizes.teacher_samples * plan.sizes.teacher_positions
    for name, cost in costs.items():
        figures = {"positions_per_second": num_tokens / cost.seconds, "peak_gigabytes": cost.peak_bytes / 1e9}
        report.measured(name, "", **figures)
    for method in ("topk", "sampled"):
        cost = costs[method]
        ratio = costs["backbone"].seconds / cost.seconds
        gain = costs["batch 1 and sort"].seconds / cost.seconds
        report.at_least(
            f"{method}, speed of the backbone's", ratio, 0.75, f"{method} {ratio:.0%} of backbone"
        )
        report.at_least(f"{method}, speed of batch 1's", gain, 2.0, f"{gain:.1f}x batch 1")
        more = (cost.peak_bytes - costs["backbone"].peak_bytes) / 1e9
        report.at_most(f"{method}, gigabytes beyond the backbone's", more, 2.0, f"{more:+.2f} GB")
    _compare_signals(report, outputs, expected, plan)


@dataclass(frozen=True)
class Cost:
    """The cost of a computation, without loading the model."""

    seconds: float
    peak_bytes: float
    """Peak memory of the GPU; without one, of the process so far."""


def _model_costs(folder: Path, ids: Tensor, plan: Plan) -> tuple[dict[str, Cost], list[Tensor]]:
    """Returns the costs of the backbone and of batch 1, and the log-probabilities of the first samples."""
    from transformers import LlamaForCausalLM

    from packtok.commands.logits import DEFAULT_BATCH_TOKENS

    positions = plan.sizes.teacher_positions
    batch_size = max(1, DEFAULT_BATCH_TOKENS // (2 * positions))
    dtype = torch.bfloat16 if plan.has_cuda else torch.float32
    model: Any = LlamaForCausalLM.from_pretrained(folder / "model", dtype=dtype)
    model = model.to(plan.device).eval()

    def logits_of(sample: Tensor) -> Tensor:
        logits: Tensor = model(input_ids=sample[None].to(plan.device)).logits[0][-positions:]
        return logits

    def backbone(samples: Tensor) -> None:
        for batch in samples.split(batch_size):
            model.base_model(input_ids=batch.to(plan.device), use_cache=False)

    def batch_of_one(samples: Tensor) -> None:
        """Computes as CEPE's script does."""
        for sample in samples:
            prob, index = torch.sort(logits_of(sample).softmax(-1), descending=True, dim=-1)
            rest = prob[:, TOPK:].sum(1, keepdim=True)
            torch.cat([prob[:, :TOPK], rest], 1).half().cpu()
            index[:, :TOPK].int().cpu()

    costs: dict[str, Cost] = {}
    with torch.inference_mode():
        for name, function in (("backbone", backbone), ("batch 1 and sort", batch_of_one)):
            function(ids[:batch_size])
            if plan.has_cuda:
                torch.cuda.reset_peak_memory_stats()
            synchronize(plan.device)
            started = time.perf_counter()
            function(ids)
            synchronize(plan.device)
            costs[name] = Cost(time.perf_counter() - started, _peak(plan.device))
        expected = [logits_of(sample).float().log_softmax(-1).cpu() for sample in ids[:2]]
    model = None
    gc.collect()
    if plan.has_cuda:
        torch.cuda.empty_cache()
    return costs, expected


def _teacher_files(folder: Path, plan: Plan) -> Tensor:
    """Writes a random model and two folders of samples; returns the ids of all samples."""
    from transformers import LlamaConfig, LlamaForCausalLM

    from packtok._packtok import MdsWriter

    sizes = plan.sizes
    torch.manual_seed(0)
    positions, vocab_size = sizes.teacher_positions, sizes.teacher["vocab_size"]
    shape: dict[str, Any] = dict(sizes.teacher)
    config = LlamaConfig(
        **shape,
        max_position_embeddings=2 * positions,
        tie_word_embeddings=False,
        initializer_range=0.05,
    )
    with torch.device(plan.device):
        model: Any = LlamaForCausalLM(config)
    model.to(torch.bfloat16 if plan.has_cuda else torch.float32).save_pretrained(folder / "model")
    ids = np.random.default_rng(0).integers(0, vocab_size, (sizes.teacher_samples, 2 * positions))
    columns = {"token_ids": "ndarray:uint16", "prev_token_ids": "ndarray:uint16", "domain": "str"}
    for name, samples in (("all", ids), ("warm", ids[:16])):
        for method in ("topk", "sampled"):
            with MdsWriter(folder / f"{name}-{method}" / "d", columns) as writer:
                for sample in samples.astype(np.uint16):
                    context, decoder = sample[:positions], sample[positions:]
                    writer.write({"token_ids": decoder, "prev_token_ids": context, "domain": "d"})
    return torch.from_numpy(ids)


def _peak(device: str) -> float:
    if device == "cuda":
        return torch.cuda.max_memory_allocated()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _signals(folder: Path, name: str, method: str, plan: Plan) -> tuple[Cost, Path]:
    """Runs ``packtok logits``; returns its cost and its output."""
    from packtok.commands.logits import logits

    if plan.has_cuda:
        torch.cuda.reset_peak_memory_stats()
    started: list[float] = []
    report = logits(
        str(folder / f"{name}-{method}"),
        str(folder / "model"),
        "d",
        method=method,  # type: ignore[arg-type]
        num_encoder_tokens=plan.sizes.teacher_positions,
        num_decoder_tokens=plan.sizes.teacher_positions,
        dtype="bf16" if plan.has_cuda else "fp32",
        device=plan.device,
        yes=True,
        on_start=lambda _: started.append(time.perf_counter()),
    )
    synchronize(plan.device)
    cost = Cost(time.perf_counter() - started[0], _peak(plan.device))
    gc.collect()
    return cost, Path(report["output"])


def _compare_signals(
    report: Report, outputs: Mapping[str, Path], expected: Sequence[Tensor], plan: Plan
) -> None:
    """Compares the signals of the first samples with log-probabilities (positions, ids) of the plain loop."""
    from packtok._packtok import MdsReader

    def column(reader: Any, i: int, name: str) -> Tensor:
        values = np.array(reader[i][name])
        return torch.from_numpy(values.astype(np.float32 if values.dtype.kind == "f" else np.int64))

    top, sampled = MdsReader(outputs["topk"]), MdsReader(outputs["sampled"])
    samples = MdsReader(plan.folder / "teacher" / "all-sampled" / "d")
    errors: dict[str, list[Tensor]] = {"topk": [], "sampled": []}
    shares, surprises = [], []
    for i, logprobs in enumerate(expected):
        index, prob = column(top, i, "target_index"), column(top, i, "target_prob")[:, :-1]
        errors["topk"].append((prob.log() - logprobs.gather(1, index)).abs().flatten())
        shares.append((index == logprobs.topk(TOPK).indices).float().mean())
        # The last position has no label.
        labels = column(samples, i, "token_ids")[1:, None]
        label_logprobs = column(sampled, i, "label_logprob")[:-1]
        errors["sampled"].append((label_logprobs - logprobs[:-1].gather(1, labels)[:, 0]).abs())
        drawn = column(sampled, i, "draw_index").view(len(logprobs), -1)
        # The mean is the entropy if ids are drawn with their probabilities.
        entropy = -(logprobs.exp() * logprobs).sum(-1).mean()
        surprises.append(-logprobs.gather(1, drawn).mean() / entropy)
    # Logits are about 2 to 10 in size here. bfloat16 keeps 8 bits of them, float16 keeps 11 bits of a
    # probability.
    mean, largest = (0.04, 0.4) if plan.has_cuda else (1e-3, 1e-2)
    for method, parts in errors.items():
        error = torch.cat(parts)
        is_within = bool(error.mean() <= mean and error.max() <= largest)
        figures: dict[str, Any] = {"mean_error": float(error.mean()), "largest_error": float(error.max())}
        report.expect(f"{method} has the loop's probabilities", is_within, **figures)
    report.measured("share of ids at the loop's place", "", share=float(torch.stack(shares).mean()))
    ratio = float(torch.stack(surprises).mean())
    report.expect("draws follow the loop's distribution", abs(ratio - 1) < 0.05, surprise_of_entropy=ratio)


# --- Pinning ---


def pinning(report: Report, plan: Plan) -> None:
    """Checks that every tensor is pinned; and the messages where there is no CUDA."""
    answers = plan.folder / "no-cuda.json"
    process = start(_without_cuda, plan, answers)
    process.join()
    texts = json.loads(answers.read_text()) if answers.exists() else {}
    messages = {texts.get(name) for name in ("TokenDataset", "stream")}
    (message,) = messages if len(messages) == 1 else (None,)
    expected = isinstance(message, str) and message.startswith("pin_memory is True, but ")
    report.expect("one message without CUDA", expected, messages=sorted(map(str, messages)))
    warned = texts.get("DataLoader warns")
    report.expect(
        "DataLoader warns without CUDA as torch's does",
        bool(warned) and warned == texts.get("torch's DataLoader warns"),
        warnings=warned,
    )
    names = ("main process", "2 workers", "torch's DataLoader", "stream")
    if not plan.has_cuda:
        for name in names:
            report.not_run(name, "needs CUDA")
        return
    fields: dict[str, Any] = {"position_ids": True, "cu_seqlens": True}
    length, size = plan.sizes.context_length, plan.sizes.batch_size
    pinned = packtok.TokenDataset(
        plan.pbins, length, packing="best_fit", document_mask="compact", pin_memory=True, **fields
    )
    plain = packtok.TokenDataset(plan.pbins, length, **fields)
    rows = CheckpointableDataset.from_pbin(plan.pbins).concat_chunk(length, labels=True, **fields)
    batches: dict[str, Callable[[], Batch]] = {
        "main process": lambda: next(iter(packtok.DataLoader(pinned, size))),
        "2 workers": lambda: next(iter(loader_of(plan, plain, num_workers=2))),
        "torch's DataLoader": lambda: next(iter(torch.utils.data.DataLoader(pinned, size))),
        "stream": lambda: next(rows.batch(size, pin_memory=True).iter()),
    }
    for name in names:
        batch = batches[name]()
        tensors = {key: value for key, value in batch.items() if isinstance(value, Tensor)}
        missing = [key for key, value in tensors.items() if not value.is_pinned()]
        report.expect(name, not missing, fields=sorted(tensors), not_pinned=missing)


def _without_cuda(plan: Plan, answers: Path) -> None:
    """Writes the messages of packtok and torch if there is no device."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    length = plan.sizes.context_length
    rows = CheckpointableDataset.from_pbin(plan.pbins).concat_chunk(length, labels=True)
    makers: dict[str, Callable[[], Any]] = {
        "TokenDataset": lambda: packtok.TokenDataset(plan.pbins, length, pin_memory=True)[0],
        "stream": lambda: next(rows.batch(4, pin_memory=True).iter()),
    }
    texts: dict[str, Any] = {}
    for name, make in makers.items():
        try:
            make()
        except Exception as error:
            texts[name] = str(error)
    dataset = packtok.TokenDataset(plan.pbins, length)
    loaders: dict[str, Any] = {
        "DataLoader warns": packtok.DataLoader,
        "torch's DataLoader warns": torch.utils.data.DataLoader,
    }
    for name, loader in loaders.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            next(iter(loader(dataset, batch_size=4, pin_memory=True)))
        texts[name] = [str(warning.message) for warning in caught]
    answers.write_text(json.dumps(texts))


# --- Running the checks ---


def run_check(check: Check, plan: Plan) -> None:
    """Runs a check in this process, which becomes the first of a new process group."""
    os.setpgid(0, 0)
    with plan.log(check.name).open("a") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    report = Report(plan.result(check.name), judges_speed=plan.has_cuda and not plan.is_small)
    try:
        globals()[check.name](report, plan)
    except Exception as error:
        traceback.print_exc()
        report.add("error", "failed", error=f"{type(error).__name__}: {error}")


class Running:
    """A check in its process."""

    def __init__(self, check: Check, plan: Plan, ends_at: float) -> None:
        self.check, self.plan = check, plan
        self.started = time.monotonic()
        limit = check.seconds * (1 if plan.has_cuda else TIMES_ON_CPU)
        self.ends_at = min(self.started + limit, ends_at)
        self.process = start(run_check, check, plan) if self.ends_at > self.started + 5 else None

    def wait(self) -> None:
        """Waits until the check has ended, or until its time limit."""
        if self.process is not None:
            self.process.join(max(0.0, self.ends_at - time.monotonic()))

    def has_ended(self) -> bool:
        """Returns whether the check has ended, or is past its time limit."""
        return self.process is None or not self.process.is_alive() or time.monotonic() >= self.ends_at

    def result(self) -> dict[str, Any]:
        """Returns the result of the check; ends the check if it still runs."""
        path, log = self.plan.result(self.check.name), self.plan.log(self.check.name)
        if self.process is None:
            parts = [{"name": "all", "status": "not run", "reason": "the time is used up"}]
        else:
            is_late = self.process.is_alive()
            _end_group(self.process, is_late=is_late)
            parts = json.loads(path.read_text()) if path.exists() else []
            seconds = self.ends_at - self.started
            if is_late:
                parts.append({"name": "time limit", "status": "failed", "error": f"{seconds:.0f} s are over"})
            elif self.process.exitcode != 0 or not parts:
                error = f"the process ended with {self.process.exitcode}"
                parts.append({"name": "process", "status": "failed", "error": error})
        statuses = {part["status"] for part in parts}
        known = [status for status in ("failed", "passed", "measured", "not run") if status in statuses]
        result = {
            "name": self.check.name,
            "title": self.check.title,
            "status": known[0],
            "seconds": round(time.monotonic() - self.started, 1),
            "parts": parts,
        }
        if known[0] == "failed" and log.exists():
            result["log"] = log.read_text(errors="replace").splitlines()[-60:]
        return result


def _end_group(process: BaseProcess, *, is_late: bool) -> None:
    """Ends all processes that a check started."""
    group = process.pid or 0
    with suppress(ProcessLookupError):
        if is_late:
            # torchrun ends its processes, which are in other groups, if it gets the time.
            os.killpg(group, signal.SIGTERM)
            waits_until = time.monotonic() + 5
            while time.monotonic() < waits_until:
                os.killpg(group, 0)
                process.join(0.1)
        os.killpg(group, signal.SIGKILL)
    process.kill()
    process.join()


def line_of(result: Mapping[str, Any]) -> str:
    """Returns the line of a check."""
    texts: list[str] = []
    left_out: list[str] = []
    for part in result["parts"]:
        text = part.get("shown") or part.get("error")
        if part["status"] == "failed":
            texts.insert(0, f"FAILED: {part['name']}" + (f" ({text})" if text else ""))
        elif part["status"] == "not run":
            left_out.append(f"{part['name']} ({part['reason']})")
        elif text:
            texts.append(text)
    if left_out:
        texts.append(f"not run: {', '.join(left_out)}")
    start = f"{result['status']:<8}  {result['title']:<48} {result['seconds']:6.1f} s  "
    return start + "; ".join(texts)


def _describe_gpu(path: Path) -> None:
    """Writes the properties of the GPU, if one works."""
    if torch.cuda.is_available():
        torch.ones(1, device="cuda").sum().item()
        free_bytes, total_bytes = torch.cuda.mem_get_info()
        card = {
            "device": torch.cuda.get_device_name(),
            "free_gigabytes": round(free_bytes / 1e9, 1),
            "total_gigabytes": round(total_bytes / 1e9, 1),
        }
        path.write_text(json.dumps(card))


def planned(folder: Path, *, is_small: bool) -> tuple[Plan, dict[str, Any]]:
    """Returns the plan, and the versions and the machine that the figures depend on."""
    gpu = folder / "gpu.json"
    start(_describe_gpu, gpu).join(120)
    has_cuda = gpu.exists()
    if not has_cuda and not is_small:
        raise SystemExit("there is no CUDA device; add --small to run the checks in small on the CPU")
    if not has_cuda:
        # Imported once for all processes. With a GPU, each process imports these modules itself: a module
        # that uses the GPU at import would keep all processes from using it.
        for name in ("torch._dynamo", "transformers.trainer", "lightning.pytorch"):
            with suppress(ImportError):
                importlib.import_module(name)
    plan = Plan(folder, "cuda" if has_cuda else "cpu", is_small)
    machine: dict[str, Any] = json.loads(gpu.read_text()) if has_cuda else {"device": "cpu"}
    machine |= {
        "cpus": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "packtok": packtok.__version__,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
    }
    for name in ("transformers", "lightning", "accelerate", "flash_attn"):
        with suppress(importlib.metadata.PackageNotFoundError):
            machine[name] = importlib.metadata.version(name)
    return plan, machine


def run_all(names: Sequence[str], plan: Plan, ends_at: float, save: Callable[[list[Any]], None]) -> list[Any]:
    """Runs checks, prints a line for each, and calls ``save`` after each."""
    chosen = [check for check in CHECKS if check.name in names]
    groups = [[check for check in chosen if check.runs_with_others]]
    groups += [[check] for check in chosen if not check.runs_with_others]
    results: list[dict[str, Any]] = []
    for group in groups:
        running = [Running(check, plan, ends_at) for check in group]
        while running:
            min(running, key=lambda run: run.ends_at).wait() if len(running) == 1 else time.sleep(0.1)
            for ended in [run for run in running if run.has_ended()]:
                running.remove(ended)
                results.append(ended.result())
                print(line_of(results[-1]), flush=True)
                save(results)
    return results


def main() -> int:
    """Runs the checks that the command line chooses; returns the exit status."""
    names = [check.name for check in CHECKS]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true", help="do little, and do not judge speed and memory")
    parser.add_argument(
        "--only", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names)
    )
    parser.add_argument("--output", type=Path, help="where the JSON is written, after each check")
    parser.add_argument(
        "--folder", type=Path, help="for the data, 5 GB; it is kept (default: a temporary one)"
    )
    parser.add_argument("--train", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.train is not None:
        train(Training(**json.loads(arguments.train)))
        return 0

    started = time.monotonic()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="gpu_check."))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        plan, machine = planned(folder, is_small=arguments.small)
        factor = 1 if plan.has_cuda else TIMES_ON_CPU
        summary: dict[str, Any] = {"status": "failed", "small": plan.is_small, "machine": machine}
        # Packs in a process of its own: this process is forked later, and must not have the threads of
        # packing.
        start(prepare, plan).join()
        if not plan.result("data").exists():
            raise SystemExit("the data could not be packed, so no check was run")
        summary["data"] = json.loads(plan.result("data").read_text())

        def save(results: list[Any]) -> None:
            summary["seconds"] = round(time.monotonic() - started, 1)
            order = [check.name for check in CHECKS]
            summary["checks"] = sorted(results, key=lambda result: order.index(result["name"]))
            if arguments.output is not None:
                arguments.output.write_text(json.dumps(summary, indent=1) + "\n")

        results = run_all(arguments.only, plan, started + TOTAL_SECONDS * factor, save)
        has_failed = any(result["status"] == "failed" for result in results)
        summary["status"] = "failed" if has_failed else "passed"
        save(results)
    finally:
        if arguments.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(summary, indent=1))
    return 1 if has_failed else 0


if __name__ == "__main__":
    sys.exit(main())
