"""Implements `packtok logits`: computes the teacher signals of samples, and merges the parts."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from packtok._packtok import mds_marker
from packtok.distributed import MAX_SHARDS, find_shard
from packtok.errors import ConfigError
from packtok.extras import needing_logits
from packtok.progress import Progress
from packtok.remedies import entry_point
from packtok.resuming import KEPT_NOTE, LOST_NOTE, explaining
from packtok.shard_folder import TaskFile, TaskFolder, planned_shards
from packtok.sources import StrPath

if TYPE_CHECKING:
    from packtok.logits.inputs import Inputs
    from packtok.logits.methods import Method
    from packtok.logits.signals import SignalsStart

# CEPE's defaults, except for the draws.
DEFAULT_TOKENS = 2048
DEFAULT_TOPK = 50
DEFAULT_DRAWS = 12
DEFAULT_RETRIEVAL_K = 8
DEFAULT_BATCH_TOKENS = 16384


@entry_point()
def logits(
    input_dir: str,
    model_dir: str,
    domain: str,
    *,
    method: Literal["topk", "sampled"] = "topk",
    num_decoder_tokens: int = DEFAULT_TOKENS,
    num_encoder_tokens: int = DEFAULT_TOKENS,
    topk: int | None = None,
    draws: int | None = None,
    seed: int | None = None,
    retrieval_input_dir: str | None = None,
    retrieval_k: int | None = None,
    shard: str | int | None = None,
    num_shards: int | None = None,
    batch_tokens: int = DEFAULT_BATCH_TOKENS,
    dtype: Literal["bf16", "fp32"] = "bf16",
    device: str | None = None,
    num_cpus: int | None = None,
    outdir: StrPath | None = None,
    yes: bool = False,
    on_start: "Callable[[SignalsStart], None] | None" = None,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Computes what a model predicts after each decoder token of samples, and returns the counts.

    Row i of the targets is the distribution after decoder token i. The same call resumes a run that was
    killed.

    Args:
        input_dir: A folder with a folder of samples for each domain.
        model_dir: A folder with a model of Transformers in safetensors files, or a name in the hub's local
            cache.
        domain: The name of the domain.
        method: ``"topk"``, the most probable ids and the mass of all others, or ``"sampled"``, ids drawn from
            the distribution.
        num_decoder_tokens: Number of decoder tokens, from the first one.
        num_encoder_tokens: Number of context tokens before them, up to the last one.
        topk: Number of ids, with ``"topk"``. Default: 50.
        draws: Number of draws for each position, with ``"sampled"``. Default: 12.
        seed: Seed of the draws. Default: 0.
        retrieval_input_dir: A folder with a folder of retrieved passages for each domain, which replace the
            context.
        retrieval_k: Number of passages, from the first one. Default: 8.
        shard: ``k/N``, ``k`` or ``"auto"``: the only shard to compute.
        num_shards: Number of shards, if neither ``shard`` nor a plan in ``outdir`` contains it.
        batch_tokens: Number of tokens that are computed at once, at most.
        dtype: Type of the weights and of the computation up to the logits.
        device: Default: ``"cuda"`` if there is a GPU, otherwise ``"cpu"``.
        num_cpus: Number of threads with which PyTorch computes on a CPU. Default: its own.
        outdir: A folder that all shards share, in which each leaves a marker for `packtok status`. Default:
            none.
        yes: Whether to start although the disk has too little space, or the model's tokenizer is another one
            than the samples'.
        on_start: Called with the sizes before the first sample is computed.
        on_progress: As in `packtok.pack`.

    Raises:
        ConfigError: If arguments contradict each other, the vocabulary does not fit, or the disk has too
            little space.
        PacktokError: If the model is not supported, or the output has signals of another kind.
    """
    chosen = _method(method, topk=topk, draws=draws, seed=seed)
    run = prepare_logits(
        input_dir,
        model_dir,
        domain,
        method=method,
        num_decoder_tokens=num_decoder_tokens,
        num_encoder_tokens=num_encoder_tokens,
        topk=topk,
        draws=draws,
        seed=seed,
        retrieval_input_dir=retrieval_input_dir,
        retrieval_k=retrieval_k,
        batch_tokens=batch_tokens,
        dtype=dtype,
        outdir=outdir,
    )
    number, count = find_part(shard, num_shards, run.outdir)
    with needing_logits("packtok logits"):
        import torch

        from packtok.logits.models import load_teacher
        from packtok.logits.output import keeps_files, part_folder
        from packtok.logits.signals import Shard, teacher_signals

    folder = None if run.outdir is None else run.write_plan(count)
    if num_cpus is not None:
        torch.set_num_threads(num_cpus)
    began = time.monotonic()
    part = part_folder(run.folder, domain, number)
    with explaining(lambda: KEPT_NOTE if keeps_files(part) else LOST_NOTE):
        with needing_logits("packtok logits"):
            teacher = load_teacher(model_dir, dtype, device)
        report = teacher_signals(
            teacher,
            run.inputs,
            chosen,
            part,
            Shard(number, count),
            batch_tokens=batch_tokens,
            dtype=dtype,
            yes=yes,
            on_start=on_start,
            on_progress=on_progress,
        )
    if folder is not None:
        folder.finish_task(
            number,
            _files_in(part),
            samples=report["samples"],
            tokens=report["tokens"],
            seconds=time.monotonic() - began,
        )
    return report


def _files_in(folder: Path) -> list[TaskFile]:
    """Returns the files of a finished folder; those that a merge has moved are left out."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return [TaskFile([path], path.stat().st_size) for path in files]


@dataclass(frozen=True)
class LogitsRun:
    """Teacher signals that are ready to be computed: the arguments are checked and the samples are open."""

    inputs: "Inputs"
    folder: Path
    """The folder of all domains."""
    domain: str
    facts: Mapping[str, Any]
    """The facts that distinguish these signals from others."""
    outdir: Path | None
    """The folder of the markers of shards."""

    @property
    def output(self) -> Path:
        """The folder of all shards together."""
        return self.folder / self.domain

    def check_model(self, *, yes: bool) -> tuple[str, ...]:
        """Checks the model as far as its files show without their content, and returns remarks.

        Args:
            yes: As in `logits`.

        Raises:
            ConfigError: If there is no such model, or its vocabulary does not fit.
            PacktokError: If the model is not supported.
        """
        from packtok.logits.model_files import check_files, model_folder
        from packtok.logits.vocabulary import check_topk, checked_vocabulary

        with needing_logits("packtok logits"):
            model = model_folder(self.facts["model_dir"])
        num_ids = check_files(model)
        if num_ids is None:
            return ()
        vocabulary = checked_vocabulary(model, num_ids, mds_marker(self.inputs.folder), yes=yes)
        if "topk" in self.facts:
            check_topk(self.facts["topk"], vocabulary.size)
        return vocabulary.warnings

    def write_plan(self, num_shards: int) -> TaskFolder:
        """Writes the plan of the shards if it is missing, and returns their folder.

        Raises:
            PacktokError: If the folder has the plan of another run.
        """
        if self.outdir is None:
            raise ValueError("there is no folder for the plan")
        index = json.loads((self.inputs.folder / "index.json").read_bytes())
        total_bytes = sum(file["raw_data"]["bytes"] for file in index["shards"])
        return TaskFolder.create(self.outdir, self.facts, num_shards, total_bytes)


def prepare_logits(
    input_dir: str,
    model_dir: str,
    domain: str,
    *,
    method: Literal["topk", "sampled"] = "topk",
    num_decoder_tokens: int = DEFAULT_TOKENS,
    num_encoder_tokens: int = DEFAULT_TOKENS,
    topk: int | None = None,
    draws: int | None = None,
    seed: int | None = None,
    retrieval_input_dir: str | None = None,
    retrieval_k: int | None = None,
    batch_tokens: int = DEFAULT_BATCH_TOKENS,
    dtype: Literal["bf16", "fp32"] = "bf16",
    outdir: StrPath | None = None,
) -> LogitsRun:
    """Checks the arguments of `logits` and opens the samples, without the model."""
    from packtok.logits.inputs import Inputs
    from packtok.logits.output import last_part, output_folder

    check_counts(num_decoder_tokens=num_decoder_tokens, batch_tokens=batch_tokens)
    check_counts(at_least=0, num_encoder_tokens=num_encoder_tokens)
    passages = _passages(retrieval_input_dir, retrieval_k)
    inputs = Inputs.open(
        Path(input_dir) / domain,
        num_decoder=num_decoder_tokens,
        num_encoder=num_encoder_tokens,
        retrieval=None if retrieval_input_dir is None else Path(retrieval_input_dir) / domain,
        num_passages=passages,
    )
    folder = output_folder(
        input_dir,
        last_part(model_dir),
        num_encoder=num_encoder_tokens,
        num_decoder=num_decoder_tokens,
        retrieval=retrieval_input_dir,
        retrieval_k=passages,
    )
    facts = {
        "command": "logits",
        "output": str(folder / domain),
        "model_dir": model_dir,
        "method": method,
        **_numbers_of_method(method, topk=topk, draws=draws, seed=seed),
        "batch_tokens": batch_tokens,
        "dtype": dtype,
        "samples": inputs.fingerprint,
    }
    return LogitsRun(inputs, folder, domain, facts, None if outdir is None else Path(outdir))


@entry_point()
def merge_logits(
    input_dir: str,
    model_dir: str,
    domain: str,
    *,
    num_decoder_tokens: int = DEFAULT_TOKENS,
    num_encoder_tokens: int = DEFAULT_TOKENS,
    retrieval_input_dir: str | None = None,
    retrieval_k: int | None = None,
    num_shards: int | None = None,
    outdir: StrPath | None = None,
) -> dict[str, Any]:
    """Makes one folder of the parts that `logits` wrote, without rewriting samples, and returns the counts.

    Args:
        input_dir: As in `logits`; the arguments name the folder of the parts.
        model_dir: As in `logits`. The model itself is not read.
        domain: As in `logits`.
        num_decoder_tokens: As in `logits`.
        num_encoder_tokens: As in `logits`.
        retrieval_input_dir: As in `logits`.
        retrieval_k: As in `logits`.
        num_shards: Number of parts. Default: what the parts record.
        outdir: As in `logits`. Only the marker of a finished merge is written there.

    Raises:
        PacktokError: If parts are missing, unfinished, or do not belong together.
    """
    from packtok.logits.output import last_part, merge_parts, output_folder

    folder = None if outdir is None else TaskFolder.open(Path(outdir))
    if folder is not None and (report := folder.report()) is not None:
        return report
    output = output_folder(
        input_dir,
        last_part(model_dir),
        num_encoder=num_encoder_tokens,
        num_decoder=num_decoder_tokens,
        retrieval=retrieval_input_dir,
        retrieval_k=_passages(retrieval_input_dir, retrieval_k),
    )
    report = merge_parts(output, domain, num_shards)
    if folder is not None:
        folder.finish_join(_files_in(output / domain), report)
    return report


def _method(
    name: Literal["topk", "sampled"], *, topk: int | None, draws: int | None, seed: int | None
) -> "Method":
    with needing_logits("packtok logits"):
        from packtok.logits.methods import Sampled, TopK

    numbers = _numbers_of_method(name, topk=topk, draws=draws, seed=seed)
    if name == "sampled":
        return Sampled(numbers["draws"], numbers["seed"])
    return TopK(numbers["topk"])


def _numbers_of_method(
    name: Literal["topk", "sampled"], *, topk: int | None, draws: int | None, seed: int | None
) -> dict[str, int]:
    from packtok.logits.vocabulary import check_topk

    if name == "topk":
        for flag, value in (("draws", draws), ("seed", seed)):
            if value is not None:
                raise ConfigError(f"--{flag}: has no effect with --method topk; give --method sampled")
        number = DEFAULT_TOPK if topk is None else topk
        check_topk(number)
        return {"topk": number}
    if topk is not None:
        raise ConfigError("--topk: has no effect with --method sampled; give --draws")
    number = DEFAULT_DRAWS if draws is None else draws
    check_counts(draws=number)
    check_counts(at_least=0, seed=seed or 0)
    return {"draws": number, "seed": seed or 0}


def find_part(shard: str | int | None, num_shards: int | None, outdir: Path | None = None) -> tuple[int, int]:
    """Returns the number of a shard and how many there are; a plan in ``outdir`` may say it.

    Raises:
        ConfigError: If the arguments do not determine them.
    """
    if num_shards is not None:
        check_counts(num_shards=num_shards)
    if shard is None:
        if num_shards not in (None, 1):
            raise ConfigError(
                f"--num-shards: is {num_shards}, but --shard is not given; give --shard k/{num_shards}"
            )
        return 0, 1
    choice = find_shard(shard)
    counts = {number for number in (choice.num_shards, num_shards) if number is not None}
    if len(counts) > 1:
        raise ConfigError(
            f"--shard: is {shard}, but --num-shards is {num_shards}; give only one of the numbers"
        )
    count = counts.pop() if counts else choice.default_num_shards
    if count is None:
        count = planned_shards(outdir)
    if count is None:
        raise ConfigError(f"--shard: is {shard}, but the number of shards is missing; give --shard k/N")
    if not choice.shard_index < count <= MAX_SHARDS:
        raise ConfigError(f"--shard: is {choice.shard_index}, expected 0 to {count - 1}")
    return choice.shard_index, count


def _passages(retrieval_input_dir: str | None, retrieval_k: int | None) -> int:
    if retrieval_k is not None and retrieval_input_dir is None:
        raise ConfigError("--retrieval-k: has no effect without --retrieval-input-dir; give both")
    number = DEFAULT_RETRIEVAL_K if retrieval_k is None else retrieval_k
    check_counts(retrieval_k=number)
    return number


def check_counts(*, at_least: int = 1, **counts: int) -> None:
    """Checks numbers, by keyword.

    Raises:
        ConfigError: If one is less than ``at_least``.
    """
    for name, count in counts.items():
        if count < at_least:
            raise ConfigError(f"--{name.replace('_', '-')}: is {count}, expected at least {at_least}")
