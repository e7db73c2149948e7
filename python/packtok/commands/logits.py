"""Implements `packtok logits`: computes the teacher signals of samples, and merges the parts."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from packtok.distributed import MAX_SHARDS, find_shard
from packtok.errors import ConfigError
from packtok.extras import needing_logits
from packtok.progress import Progress
from packtok.remedies import entry_point

if TYPE_CHECKING:
    from packtok.logits.methods import Method
    from packtok.logits.signals import SignalsStart

# CEPE's, except for the draws.
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
        num_shards: Number of shards, if ``shard`` does not contain it.
        batch_tokens: Number of tokens that are computed at once, at most.
        dtype: Type of the weights and of the computation up to the logits.
        device: Default: ``"cuda"`` if there is a GPU, otherwise ``"cpu"``.
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
    number, count = find_part(shard, num_shards)
    check_counts(num_decoder_tokens=num_decoder_tokens, batch_tokens=batch_tokens)
    check_counts(at_least=0, num_encoder_tokens=num_encoder_tokens)
    passages = _passages(retrieval_input_dir, retrieval_k)
    with needing_logits("packtok logits"):
        from packtok.logits.inputs import Inputs
        from packtok.logits.models import load_teacher
        from packtok.logits.output import output_folder, part_folder
        from packtok.logits.signals import Shard, teacher_signals

    # Before the model is loaded, which takes longer.
    inputs = Inputs.open(
        Path(input_dir) / domain,
        num_decoder=num_decoder_tokens,
        num_encoder=num_encoder_tokens,
        retrieval=None if retrieval_input_dir is None else Path(retrieval_input_dir) / domain,
        num_passages=passages,
    )
    with needing_logits("packtok logits"):
        teacher = load_teacher(model_dir, dtype, device)
    output = output_folder(
        input_dir,
        teacher.name,
        num_encoder=num_encoder_tokens,
        num_decoder=num_decoder_tokens,
        retrieval=retrieval_input_dir,
        retrieval_k=passages,
    )
    return teacher_signals(
        teacher,
        inputs,
        chosen,
        part_folder(output, domain, number),
        Shard(number, count),
        batch_tokens=batch_tokens,
        dtype=dtype,
        yes=yes,
        on_start=on_start,
        on_progress=on_progress,
    )


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

    Raises:
        PacktokError: If parts are missing, unfinished, or do not belong together.
    """
    from packtok.logits.output import last_part, merge_parts, output_folder

    output = output_folder(
        input_dir,
        last_part(model_dir),
        num_encoder=num_encoder_tokens,
        num_decoder=num_decoder_tokens,
        retrieval=retrieval_input_dir,
        retrieval_k=_passages(retrieval_input_dir, retrieval_k),
    )
    return merge_parts(output, domain, num_shards)


def _method(
    name: Literal["topk", "sampled"], *, topk: int | None, draws: int | None, seed: int | None
) -> "Method":
    with needing_logits("packtok logits"):
        from packtok.logits.methods import Sampled, TopK
        from packtok.logits.targets import MAX_TOPK

    if name == "topk":
        for flag, value in (("draws", draws), ("seed", seed)):
            if value is not None:
                raise ConfigError(f"--{flag}: has no effect with --method topk; give --method sampled")
        k = DEFAULT_TOPK if topk is None else topk
        if not 1 <= k <= MAX_TOPK:
            raise ConfigError(f"--topk: is {k}, expected 1 to {MAX_TOPK}")
        return TopK(k)
    if topk is not None:
        raise ConfigError("--topk: has no effect with --method sampled; give --draws")
    number = DEFAULT_DRAWS if draws is None else draws
    check_counts(draws=number)
    check_counts(at_least=0, seed=seed or 0)
    return Sampled(number, seed or 0)


def find_part(shard: str | int | None, num_shards: int | None) -> tuple[int, int]:
    """Returns the number of a shard and how many there are.

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
