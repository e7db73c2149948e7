"""Random streams: compared with a plain version of each step, and stopped and resumed at random places."""

from __future__ import annotations

import gzip
import itertools
import json
import random
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest

pytest.importorskip("torch", reason="needs torch (pip install '.[torch]')")
import pyarrow
import pyarrow.parquet
import reference_order
import torch
import zstandard
from extent import extent
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from stories import TOKENIZER, story

import packtok
from packtok.stream import CheckpointableDataset, concat_datasets, interleave_datasets, merge_states

Sample: TypeAlias = dict[str, Any]
Samples: TypeAlias = Iterator[Sample]


class Recipe(NamedTuple):
    """A step, its arguments, and its input steps."""

    step: str
    arguments: tuple[Any, ...] = ()
    inputs: tuple[Recipe, ...] = ()


LANES, GLOBAL_BATCH_SIZE, MAX_SAMPLES, MAX_ROWS = 8, 24, 60, 400
# After this many samples of a source, the test gives up a stream that keeps next to nothing.
MAX_READ = 3000
EOS = 0
OPTIONS = settings(deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
TOKENS = packtok.Tokenizer.from_file(TOKENIZER)
STORIES = [story(random.Random(seed)) for seed in range(150)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("properties")


class WithEos:
    """A tokenizer that only has special tokens."""

    bos_token_id = None
    eos_token_id = EOS


# --- functions of samples ---


def number_of(sample: Sample) -> int:
    return zlib.crc32(sample["text"].encode())


def changed(sample: Sample) -> Sample:
    return {**sample, "text": sample["text"] + "!"}


def is_kept(sample: Sample) -> bool:
    return number_of(sample) % 3 > 0


def changed_or_dropped(sample: Sample) -> Sample | None:
    return changed(sample) if number_of(sample) % 4 else None


FUNCTIONS: dict[str, Callable[[Sample], Any]] = {
    "map": changed,
    "filter": is_kept,
    "filter_map": changed_or_dropped,
}


# --- recipes ---


@st.composite
def sources(draw: st.DrawFn, least: int = 1) -> Recipe:
    """Draws files or a sequence, of at least this many samples in all."""
    repeat, shuffle = draw(st.booleans()), draw(st.booleans())
    seed = draw(st.integers(0, 3))
    if draw(st.booleans()):
        length = draw(st.integers(least, least + 20))
        return Recipe("sequence", (length, repeat, shuffle, seed))
    suffixes = draw(st.sampled_from([(".jsonl", ".jsonl.gz", ".jsonl.zst"), (".parquet",)]))
    lengths = [least, *draw(st.lists(st.integers(0, 6), max_size=4))]
    # The longest file is never compressed, so that lanes can divide it.
    names = [suffixes[0], *(draw(st.sampled_from(suffixes)) for _ in lengths[1:])]
    num_active = draw(st.integers(1, 4))
    return Recipe("files", (tuple(zip(names, lengths, strict=True)), repeat, shuffle, seed, num_active))


Step: TypeAlias = tuple[str, tuple[Any, ...]]


def steps(name: str, *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    return st.tuples(st.just(name), st.tuples(*arguments))


STRIDE = st.integers(1, 3).flatmap(
    lambda interval: steps("stride", st.just(interval), st.integers(0, interval - 1))
)
COUNTING = st.one_of(
    steps("take", st.integers(0, 80)), steps("skip", st.integers(0, 20)), STRIDE, steps("enumerate")
)
SHUFFLE = steps("shuffle", st.integers(1, 12), st.integers(0, 3))
NAME = st.sampled_from(sorted(FUNCTIONS))
CALLS = st.one_of(steps("call", NAME), steps("parallel", NAME, st.integers(1, 5)))
ROWS = st.one_of(
    steps("chunk", st.integers(1, 40), st.booleans()),
    steps("concat_chunk", st.integers(1, 40), st.booleans()),
    steps("pack_chunk", st.integers(20, 120), st.booleans()),
)
WEIGHTS = st.sampled_from([(1, 1), (3, 1), (1.5, 1), (1, 2)])


@st.composite
def texts(draw: st.DrawFn, least: int = 1) -> Recipe:
    """Draws a stream of texts."""
    recipe = draw(sources(least))
    if draw(st.integers(0, 2)) == 0:
        name, arguments = draw(st.one_of(steps("interleave", WEIGHTS), steps("concat")))
        recipe = Recipe(name, arguments, (recipe, draw(sources(least))))
    for name, arguments in draw(st.lists(st.one_of(CALLS, CALLS, SHUFFLE, COUNTING), max_size=3)):
        recipe = Recipe(name, arguments, (recipe,))
    return recipe


@st.composite
def recipes(draw: st.DrawFn, least: int = 1) -> Recipe:
    """Draws a stream of texts, documents of tokens or rows."""
    recipe = draw(texts(least))
    if draw(st.booleans()):
        return recipe
    recipe = Recipe("tokenize", (draw(st.booleans()),), (recipe,))
    if draw(st.integers(0, 3)):
        name, arguments = draw(ROWS)
        recipe = Recipe(name, arguments, (recipe,))
        if name == "pack_chunk" and draw(st.booleans()):
            recipe = Recipe("pad", arguments[:1], (recipe,))
    for name, arguments in draw(st.lists(st.one_of(SHUFFLE, COUNTING), max_size=2)):
        recipe = Recipe(name, arguments, (recipe,))
    return recipe


def has_equal_rows(recipe: Recipe) -> bool:
    """Returns whether samples can be stacked: texts, and rows of one length."""
    if recipe.step in ("shuffle", "take", "skip", "stride", "enumerate"):
        return has_equal_rows(recipe.inputs[0])
    if recipe.step in ("chunk", "concat_chunk"):
        return bool(recipe.arguments[1])
    return recipe.step not in ("tokenize", "pack_chunk")


def names_of(recipe: Recipe) -> set[str]:
    """Returns the names of all steps and functions."""
    names = {recipe.step, *recipe.arguments[:1]} if recipe.step in ("call", "parallel") else {recipe.step}
    return names.union(*map(names_of, recipe.inputs))


# Steps that may drop every sample.
DROPPING = frozenset({"filter", "filter_map", "stride", "chunk", "pack_chunk"})


def texts_of(seed: int, length: int) -> list[str]:
    rng = random.Random(seed)
    return [f"{seed}.{i} {rng.choice(STORIES)[: rng.randint(1, 200)]}" for i in range(length)]


# --- packtok ---


def path_of(folder: Path, number: int, suffix: str, length: int) -> str:
    """Returns a file with these texts, which is written once."""
    path = folder / f"{number}-{length}{suffix}"
    if path.exists():
        return str(path)
    documents = texts_of(number, length)
    if suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.table({"text": documents}), path, row_group_size=3)
        return str(path)
    # A blank line is no document.
    content = "".join(
        json.dumps({"text": text}) + "\n" * (1 + i % 2) for i, text in enumerate(documents)
    ).encode()
    if suffix.endswith(".gz"):
        content = gzip.compress(content)
    elif suffix.endswith(".zst"):
        content = zstandard.compress(content)
    path.write_bytes(content)
    return str(path)


def made(recipe: Recipe, folder: Path) -> CheckpointableDataset:
    """Returns packtok's stream."""
    inputs = [made(source, folder) for source in recipe.inputs]
    if recipe.step == "files":
        return made_of_files(folder, *recipe.arguments)
    if recipe.step in MAKERS:
        return MAKERS[recipe.step](*inputs, *recipe.arguments)
    return getattr(inputs[0], recipe.step)(*recipe.arguments)  # type: ignore[no-any-return]


def made_of_files(
    folder: Path, names: Sequence[tuple[str, int]], repeat: bool, shuffle: bool, seed: int, num_active: int
) -> CheckpointableDataset:
    paths = [path_of(folder, i, suffix, length) for i, (suffix, length) in enumerate(names)]
    return CheckpointableDataset.from_files(paths, repeat, shuffle, n_active_shards=num_active, seed=seed)


def made_of_sequence(length: int, repeat: bool, shuffle: bool, seed: int) -> CheckpointableDataset:
    samples = [{"text": text} for text in texts_of(length, length)]
    return CheckpointableDataset.from_sequence(samples, repeat, shuffle, seed)


def made_parallel(dataset: CheckpointableDataset, name: str, prefetch: int) -> CheckpointableDataset:
    call = getattr(dataset, f"parallel_{name}")
    return call(FUNCTIONS[name], 2, prefetch, executor_type="thread")  # type: ignore[no-any-return]


def made_of_tokens(dataset: CheckpointableDataset, has_eos: bool) -> CheckpointableDataset:
    tokens = dataset.tokenize(TOKENS)
    return tokens.ensure_bos_eos(WithEos()) if has_eos else tokens


# Makers for steps that are not methods.
MAKERS: dict[str, Callable[..., CheckpointableDataset]] = {
    "sequence": made_of_sequence,
    "interleave": lambda first, second, weights: interleave_datasets([first, second], weights),
    "concat": lambda first, second: concat_datasets([first, second]),
    "call": lambda dataset, name: getattr(dataset, name)(FUNCTIONS[name]),
    "parallel": made_parallel,
    "tokenize": made_of_tokens,
    "chunk": lambda dataset, length, drop: dataset.chunk(length, drop_remainder=drop),
    "concat_chunk": lambda dataset, length, drop: dataset.concat_chunk(length, drop_remainder=drop),
    "pack_chunk": lambda dataset, length, drop: dataset.pack_chunk(length, discard_long_samples=drop),
    "pad": lambda dataset, length: dataset.pad({"input_ids": -100}, length),
    "batch": lambda dataset, size, drop_last: dataset.batch(size, drop_last=drop_last),
}


def plain(sample: Any) -> Any:
    """Returns a sample without tensors, to compare it."""
    if isinstance(sample, torch.Tensor):
        return sample.tolist()
    return {name: plain(value) for name, value in sample.items()} if isinstance(sample, dict) else sample


# --- the plain version ---


@dataclass(frozen=True)
class Lane:
    """A lane; by default, the only one."""

    number: int = 0
    count: int = 1

    def seed(self, seed: int) -> int:
        """Returns the seed of this lane."""
        mixed = reference_order._mixed
        return seed if self.number == 0 else mixed(seed ^ mixed(self.number))


class TooLongError(Exception):
    """A stream without end yields too few samples."""


def expected(recipe: Recipe, lane: Lane = Lane()) -> Samples:
    """Yields the samples of a stream, or of a lane of it."""
    inputs = [expected(source, lane) for source in recipe.inputs]
    if not inputs:
        return source_samples(recipe, lane)
    if recipe.step == "shuffle":
        size, seed = recipe.arguments
        return shuffled(inputs[0], size, lane.seed(seed))
    return PLAIN[recipe.step](*inputs, *recipe.arguments)


def source_samples(recipe: Recipe, lane: Lane) -> Samples:
    repeat = recipe.arguments[1]
    num_read = 0
    for epoch in itertools.count():
        for text in epoch_texts(recipe, epoch, lane):
            num_read += 1
            if num_read > MAX_READ:
                raise TooLongError
            yield {"text": text}
        if not repeat:
            return


def epoch_texts(recipe: Recipe, epoch: int, lane: Lane) -> list[str]:
    """Returns the texts of a source in the order of an epoch."""
    if recipe.step == "sequence":
        length, _, shuffle, seed = recipe.arguments
        start, stop = (i * length // lane.count for i in (lane.number, lane.number + 1))
        documents = texts_of(length, length)[start:stop]
        seed += lane.number
        order = reference_order.shuffled(len(documents), seed, epoch) if shuffle else range(len(documents))
        return [documents[i] for i in order]
    names, _, shuffle, seed, num_active = recipe.arguments
    order = reference_order.shuffled(len(names), seed, epoch) if shuffle else range(len(names))
    waiting = deque(deque(texts_of(i, names[i][1])) for i in order)
    active = deque(waiting.popleft() for _ in range(min(num_active, len(waiting))))
    found = []
    while active:
        file = active.popleft()
        if file:
            found.append(file.popleft())
            active.append(file)
        elif waiting:
            active.append(waiting.popleft())
    return found


def called(samples: Samples, name: str, *_: int) -> Samples:
    results = ((sample, FUNCTIONS[name](sample)) for sample in samples)
    if name == "filter":
        return (sample for sample, is_wanted in results if is_wanted)
    return (result for _, result in results if result is not None)


def interleaved(first: Samples, second: Samples, weights: Sequence[float]) -> Samples:
    """Yields samples in the order of their middles, if a sample of a stream has the length 1 / weight."""
    shares, streams, counts = [Fraction(str(weight)) for weight in weights], (first, second), [0, 0]
    while True:
        middles = [(2 * count + 1) / share for count, share in zip(counts, shares, strict=True)]
        i = middles.index(min(middles))
        counts[i] += 1
        try:
            yield next(streams[i])
        except StopIteration:
            return


def tokenized(sample: Sample, has_eos: bool) -> Sample:
    ids = TOKENS.encode(sample["text"]).tolist()
    if has_eos and ids[-1:] != [EOS]:
        ids.append(EOS)
    return {**sample, "input_ids": ids, "attention_mask": [1] * len(ids)}


def chunks(documents: Iterator[list[int]], length: int, drop_remainder: bool) -> Iterator[list[int]]:
    for ids in documents:
        yield from concatenated(iter([ids]), length, drop_remainder)


def concatenated(documents: Iterator[list[int]], length: int, drop_remainder: bool) -> Iterator[list[int]]:
    pending: list[int] = []
    for ids in documents:
        pending += ids
        while len(pending) >= length:
            yield pending[:length]
            pending = pending[length:]
    if pending and not drop_remainder:
        yield pending


def packed(documents: Iterator[list[int]], length: int, discard_long: bool) -> Iterator[list[int]]:
    row: list[int] = []
    for ids in documents:
        if len(ids) > length and discard_long:
            continue
        if len(row) + len(ids[:length]) > length:
            yield row
            row = []
        row = row + ids[:length]
    if row:
        yield row


def rows(make: Callable[[Iterator[list[int]], int, bool], Iterator[list[int]]]) -> Callable[..., Samples]:
    """Returns a step that makes rows of the ids of documents."""

    def made_rows(samples: Samples, length: int, drops: bool) -> Samples:
        documents = (sample["input_ids"] for sample in samples)
        return ({"input_ids": row} for row in make(documents, length, drops))

    return made_rows


def padded(sample: Sample, length: int) -> Sample:
    ids = sample["input_ids"]
    return {**sample, "input_ids": ids + [-100] * (length - len(ids))}


def shuffled(samples: Samples, size: int, seed: int) -> Samples:
    buffer: list[Sample] = []
    mixed, gamma, mask = reference_order._mixed, reference_order._GAMMA, (1 << 64) - 1
    for num_drawn in itertools.count():
        buffer += itertools.islice(samples, size - len(buffer))
        if not buffer:
            return
        word = mixed(mixed(seed + num_drawn * gamma & mask) + gamma & mask)
        i = word * len(buffer) >> 64
        buffer[i], buffer[-1] = buffer[-1], buffer[i]
        yield buffer.pop()


def batches(samples: Samples, size: int, drop_last: bool) -> Samples:
    while rows := list(itertools.islice(samples, size)):
        if len(rows) == size or not drop_last:
            yield {name: [row[name] for row in rows] for name in rows[0]}


PLAIN: dict[str, Callable[..., Samples]] = {
    "interleave": interleaved,
    "concat": itertools.chain,
    "call": called,
    "parallel": called,
    "tokenize": lambda samples, has_eos: (tokenized(sample, has_eos) for sample in samples),
    "chunk": rows(chunks),
    "concat_chunk": rows(concatenated),
    "pack_chunk": rows(packed),
    "pad": lambda samples, length: (padded(sample, length) for sample in samples),
    "take": itertools.islice,
    "skip": lambda samples, count: itertools.islice(samples, count, None),
    "stride": lambda samples, interval, offset: itertools.islice(samples, offset, None, interval),
    "enumerate": lambda samples: ({**sample, "step": i} for i, sample in enumerate(samples)),
    "batch": batches,
}


# --- tests ---


def first_samples(samples: Iterator[Any], count: int) -> list[Any]:
    """Returns the first samples of a plain version; discards streams that would read without end."""
    try:
        return list(itertools.islice(samples, count))
    except TooLongError:
        assume(False)
        raise


STOPS = st.lists(st.tuples(st.integers(0, 15), st.sampled_from(["read", "read", "skip"])), max_size=4)


@settings(OPTIONS, max_examples=extent(5000, 150))
@given(recipe=recipes(), batch=st.none() | st.tuples(st.integers(1, 5), st.booleans()), stops=STOPS)
def test_streams_equal_the_plain_version_however_often_they_stop(
    folder: Path, recipe: Recipe, batch: tuple[int, bool] | None, stops: list[tuple[int, str]]
) -> None:
    if batch is not None and has_equal_rows(recipe):
        recipe = Recipe("batch", batch, (recipe,))
    whole = first_samples(expected(recipe), MAX_SAMPLES)
    with made(recipe, folder).iter() as iterator:
        assert [plain(sample) for sample in itertools.islice(iterator, MAX_SAMPLES)] == whole
    found: list[Any] = []
    state = None
    for stop, how in [*stops, (MAX_SAMPLES, "read")]:
        count = min(stop, MAX_SAMPLES - len(found))
        with made(recipe, folder).iter(json.loads(json.dumps(state))) as iterator:
            if how == "skip":
                iterator.skip(count)
                found += whole[len(found) : len(found) + count]
            else:
                found += [plain(sample) for sample in itertools.islice(iterator, count)]
            state = iterator.state_dict()
    assert found == whole


def joined(lanes: list[Samples]) -> Samples:
    """Yields a sample of each lane in turns; skips ended lanes."""
    turns = deque(lanes)
    while turns:
        lane = turns.popleft()
        for sample in itertools.islice(lane, 1):
            yield sample
            turns.append(lane)


def rows_of(sample: Any, is_batch: bool) -> list[Sample]:
    values = plain(sample)
    if not is_batch:
        return [values]
    return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]


def distributed(recipe: Recipe, folder: Path, rank: int, num_ranks: int) -> CheckpointableDataset:
    """Returns a rank's stream, in batches if rows have one length."""
    dataset = made(recipe, folder).distribute(LANES, rank, num_ranks)
    return dataset.batch(global_batch_size=GLOBAL_BATCH_SIZE) if has_equal_rows(recipe) else dataset


def rows_of_ranks(
    recipe: Recipe, folder: Path, num_ranks: int, num_batches: int, state: Any
) -> tuple[list[Sample], Any, bool]:
    """Returns the rows of all ranks in their order, the state after them, and whether the stream ended.

    Without batches, as many rows are read as global batches would have.
    """
    iterators = [distributed(recipe, folder, rank, num_ranks).iter(state) for rank in range(num_ranks)]
    found: list[Sample] = []
    is_batch = has_equal_rows(recipe)
    for _ in range(num_batches if is_batch else num_batches * GLOBAL_BATCH_SIZE // num_ranks):
        own = [list(itertools.islice(iterator, 1)) for iterator in iterators]
        if not any(own):
            return found, None, True
        # All ranks have equally many batches; the last ranks may have one row less than the first ones.
        assert all(own) or not is_batch
        steps = [rows_of(sample, is_batch) for samples in own for sample in samples]
        rounds = itertools.zip_longest(*steps)
        found += [row for rows in rounds for row in rows if row is not None]
    merged = json.loads(json.dumps(merge_states(iterator.state_dict() for iterator in iterators)))
    for iterator in iterators:
        iterator.close()
    return found, merged, False


CHAIN = st.lists(st.tuples(st.sampled_from([1, 2, 3, 4, 6, 8]), st.integers(0, 4)), min_size=1, max_size=4)


@settings(OPTIONS, max_examples=extent(1000, 25))
@given(recipe=recipes(least=24), chain=CHAIN)
def test_streams_of_any_number_of_ranks_are_one_stream(
    folder: Path, recipe: Recipe, chain: list[tuple[int, int]]
) -> None:
    if "files" in names_of(recipe):
        # If an endless stream keeps nothing, reading one of its lanes would not end.
        assume(not DROPPING & names_of(recipe))
        try:
            alone = made(recipe, folder).distribute(LANES, 0, 1).iter()
        except ValueError as error:
            assume("lane" not in str(error))
            raise
        whole = [plain(row) for row in itertools.islice(alone, MAX_ROWS)]
    else:
        lanes = [expected(recipe, Lane(number, LANES)) for number in range(LANES)]
        whole = first_samples(joined(lanes), MAX_ROWS)
    found: list[Sample] = []
    state = None
    for num_ranks, num_batches in chain:
        rows, state, has_ended = rows_of_ranks(recipe, folder, num_ranks, num_batches, state)
        found += rows
        assert found == whole[: len(found)]
        if has_ended:
            assert len(whole) == len(found)
            break
