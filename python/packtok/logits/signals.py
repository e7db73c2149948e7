"""Computes the teacher signals of a shard of samples."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from packtok._packtok import mds_marker
from packtok.errors import ConfigError, PacktokError
from packtok.logits.batches import Batches
from packtok.logits.inputs import Inputs
from packtok.logits.methods import Method, Targets, TopK, targets_of
from packtok.logits.models import Teacher
from packtok.logits.output import Arrays, Part, free_bytes
from packtok.logits.vocabulary import check_topk, checked_vocabulary
from packtok.progress import Progress

__all__ = ["Shard", "SignalsStart", "teacher_signals"]

# Approximate size of a file. After a kill, a run computes less than a file again.
_FILE_BYTES = 64 << 20


@dataclass(frozen=True)
class SignalsStart:
    """The state of a shard before its first sample is computed."""

    bytes_per_token: int
    total_bytes: int
    """Bytes of the samples that are left to compute."""
    free_bytes: int
    num_samples: int
    """Number of samples of the shard."""
    kept_samples: int
    """Samples in files of an earlier run."""
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Shard:
    """The part of the samples that is computed."""

    number: int
    num_shards: int


def teacher_signals(
    teacher: Teacher,
    inputs: Inputs,
    method: Method,
    folder: Path,
    shard: Shard,
    *,
    batch_tokens: int,
    dtype: str,
    yes: bool,
    on_start: Callable[[SignalsStart], None] | None = None,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Computes the signals of a shard, or what an earlier run left of it, and returns the counts.

    Args:
        teacher: The model.
        inputs: The samples of all shards.
        method: The kind of targets.
        folder: The folder of the part.
        shard: Which shard.
        batch_tokens: Tokens that are computed at once, at most, except that each batch has a sample.
        dtype: The type of the computation, as in `load_teacher`.
        yes: Whether to start although the disk has too little space or the vocabulary is in doubt.
        on_start: Called before the first sample.
        on_progress: Called after each batch.

    Raises:
        ConfigError: If the vocabulary does not fit, or there is too little space.
        PacktokError: If the folder has other signals, or a sample cannot be used.
    """
    began = time.monotonic()
    samples_marker = mds_marker(inputs.folder)
    vocabulary = checked_vocabulary(teacher.folder, teacher.head_size, samples_marker, yes=yes)
    if isinstance(method, TopK):
        check_topk(method.k, vocabulary.size)
    batches = Batches.of_budget(len(inputs), inputs.tokens_per_sample, batch_tokens)
    own = batches.shard(shard.number, shard.num_shards)
    marker = _marker(teacher, inputs, method, samples_marker, own, shard)
    marker["details"] |= {"vocab_size": vocabulary.size, "batch_tokens": batch_tokens, "dtype": dtype}
    bytes_per_token = method.bytes_per_token(vocabulary.size)
    sample_bytes = bytes_per_token * inputs.num_decoder
    with Part.open(folder, marker) as part:
        num_kept = len(own) if part.is_finished else part.num_samples
        start = SignalsStart(
            bytes_per_token,
            (len(own) - num_kept) * sample_bytes,
            free_bytes(folder),
            len(own),
            num_kept,
            vocabulary.warnings,
        )
        if on_start is not None:
            on_start(start)
        _check_space(folder, start, yes=yes)
        if not part.is_finished:
            columns = method.columns(inputs.num_decoder, vocabulary.size)
            files = batches.files(own, max(1, _FILE_BYTES // sample_bytes))
            work = _Work(teacher, inputs, method, batches, vocabulary.size, on_progress)
            done = num_kept * sample_bytes
            for file in files[len(part.entries) :]:
                part.write(columns, work.file(file, done, len(own) * sample_bytes))
                done += len(file) * sample_bytes
            part.finish()
    return {
        "output": str(folder),
        "shard": shard.number,
        "num_shards": shard.num_shards,
        "start": own.start,
        "stop": own.stop,
        "samples": len(own),
        "kept_samples": num_kept,
        "tokens": len(own) * inputs.num_decoder,
        "bytes_per_token": bytes_per_token,
        "bytes": len(own) * sample_bytes,
        "device": str(teacher.device),
        "seconds": time.monotonic() - began,
    }


@dataclass(frozen=True)
class _Work:
    teacher: Teacher
    inputs: Inputs
    method: Method
    batches: Batches
    vocab_size: int
    on_progress: Progress | None

    def file(self, samples: range, done_bytes: int, total_bytes: int) -> Iterator[Arrays]:
        """Yields the targets of each sample of a file."""
        tokens = 0
        for numbers, targets in self._ahead(samples):
            yield from targets.of_samples()
            num_tokens = len(numbers) * self.inputs.num_decoder
            tokens += num_tokens
            done_bytes += num_tokens * self.method.bytes_per_token(self.vocab_size)
            if self.on_progress is not None:
                self.on_progress({"bytes_read": done_bytes, "total_bytes": total_bytes, "tokens": tokens})

    def _ahead(self, samples: range) -> Iterator[tuple[range, Targets]]:
        """Yields the targets of each batch of a file once the next batch is started.

        A GPU computes while the host writes.
        """
        before: tuple[range, Targets] | None = None
        for numbers in self.batches.within(samples):
            started = numbers, self._start(numbers)
            if before is not None:
                yield before
            before = started
        if before is not None:
            yield before

    def _start(self, numbers: range) -> Targets:
        inputs = [self.inputs.sample(i, self.teacher.num_embeddings) for i in numbers]
        try:
            return targets_of(self.teacher, self.method, inputs, numbers, self.vocab_size)
        except torch.OutOfMemoryError as error:
            raise PacktokError(
                f"{self.teacher.device}: {len(inputs)} samples of {self.inputs.tokens_per_sample:,} "
                "tokens do not fit in memory at once; give a smaller --batch-tokens"
            ) from error


def _check_space(folder: Path, start: SignalsStart, *, yes: bool) -> None:
    if start.total_bytes > start.free_bytes and not yes:
        raise ConfigError(
            f"{folder}: the signals take {start.total_bytes:,} bytes, but only {start.free_bytes:,} are "
            "free; give --method sampled, which takes a tenth, another --input-dir, or --yes to start anyway"
        )


def _marker(
    teacher: Teacher,
    inputs: Inputs,
    method: Method,
    samples: dict[str, Any] | None,
    own: range,
    shard: Shard,
) -> dict[str, Any]:
    """Returns the marker of a part.

    Samples without a marker are identified by the hashes in their index.
    """
    fingerprint = inputs.fingerprint
    first = samples["start"] if samples else 0
    return {
        "kind": "logits",
        "plan": samples["plan"] if samples else f"index:{fingerprint}",
        "side": samples["side"] if samples else inputs.folder.parent.name,
        "domain": samples["domain"] if samples else inputs.folder.name,
        "start": first + own.start,
        "stop": first + own.stop,
        "details": {
            "teacher": teacher.name,
            "model": teacher.fingerprint,
            "method": method.facts,
            "num_encoder_tokens": None if inputs.passages is not None else inputs.num_encoder,
            "num_decoder_tokens": inputs.num_decoder,
            "retrieval_k": inputs.num_passages if inputs.passages is not None else None,
            "inputs": fingerprint,
            "start": first,
            "num_samples": len(inputs),
            "shard": shard.number,
            "num_shards": shard.num_shards,
        },
    }
