"""Types of the compiled module; the docstrings are in the Rust sources, where ``help()`` finds them."""

import builtins
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, SupportsIndex, final, overload

import numpy as np
import numpy.typing as npt

from packtok.plugins.plugin import Plugin
from packtok.tokenizer.callable import CallableTokenizer

__all__ = [
    "KEPT_NOTE",
    "OUTPUT_EXISTS",
    "PLAN_NAME",
    "PLAN_TOKENIZER_NAME",
    "PROFILE_TOKENS",
    "REJECTS_SUFFIX",
    "SHARD_PREFIX",
    "TOKENIZERS_VERSION",
    "TOKEN_FORMATS",
    "Blocks",
    "DocumentError",
    "DocumentTexts",
    "MdsReader",
    "MdsWriter",
    "Mixture",
    "Order",
    "Origin",
    "PacktokError",
    "PbinFilter",
    "PbinFormatError",
    "PbinReader",
    "Permutation",
    "Reshaper",
    "Stream",
    "Texts",
    "Tokenizer",
    "TokenizerError",
    "__version__",
    "_reopen_mds",
    "appended_id",
    "available_cpus",
    "builtin_tokenizer",
    "check_stream",
    "checked_reject_limit",
    "chunk_seed",
    "column_names",
    "compare_engines",
    "context_masks",
    "convert_tokens",
    "corpus_files",
    "count_tokens",
    "delete_object",
    "describe_corpus",
    "describe_stream",
    "download",
    "draw_samples",
    "fill_from",
    "find_marker",
    "find_or_plan",
    "find_or_split",
    "find_token_marker",
    "first_difference_of",
    "import_mds",
    "indexed_files",
    "is_corpus_name",
    "is_store_url",
    "is_url",
    "join_shards",
    "keeps_samples",
    "largest_ids",
    "list_objects",
    "list_shards",
    "listed_files",
    "loss_mask_path",
    "marker_name",
    "mask_of_item",
    "mds_marker",
    "merge",
    "natural_sorted",
    "npy_files",
    "object_bytes",
    "on_engine_check",
    "pack",
    "pack_samples",
    "pack_shard",
    "plan_difference",
    "plan_shards",
    "presence_of_tokens",
    "publish_bytes",
    "publish_mds_index",
    "raw_entries",
    "read_file_list",
    "read_plan",
    "read_tokenizer",
    "report_of_marker",
    "shard_name",
    "shuffle_files",
    "shuffled_order",
    "source_record",
    "source_rows",
    "split_tokens",
    "string_access",
    "token_facts",
    "token_plan",
    "upload",
    "user_cache",
    "verify",
    "verify_corpus",
    "verify_origins",
    "wait_for_stream_calls",
    "with_tokens",
    "write_manifest",
    "write_packed_rows",
    "write_raw_index",
    "written_list",
]
__version__: str
TOKENIZERS_VERSION: str
OUTPUT_EXISTS: str

class PacktokError(Exception): ...
class PbinFormatError(PacktokError): ...
class DocumentError(PacktokError, ValueError): ...
class TokenizerError(PacktokError): ...

_StrPath = str | PathLike[str]
_Tokens = npt.NDArray[np.uint8] | npt.NDArray[np.uint16] | npt.NDArray[np.uint32]

@final
class Tokenizer:
    def __new__(
        cls,
        json: bytes,
        name: str = "tokenizer.json",
        eos_token: str | None = None,
        remarks: Sequence[str] = ...,
        bos_token: str | None = None,
        special_tokens_in_text: str | None = None,
    ) -> Tokenizer: ...
    @staticmethod
    def from_file(
        path: _StrPath, *, name: str | None = None, add_special_tokens_from_config: bool = False
    ) -> Tokenizer: ...
    @staticmethod
    def from_pretrained(name: _StrPath, *, add_special_tokens_from_config: bool = False) -> Tokenizer: ...
    @staticmethod
    def builtin(name: str) -> Tokenizer: ...
    @staticmethod
    def builtin_names() -> list[str]: ...
    @property
    def name(self) -> str: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def vocab_size(self) -> int: ...
    @property
    def token_bytes(self) -> int: ...
    @property
    def engine(self) -> str: ...
    @property
    def engine_reason(self) -> str: ...
    @property
    def is_linear(self) -> bool: ...
    @property
    def eos_token(self) -> str | None: ...
    @property
    def bos_token(self) -> str | None: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def special_tokens(self) -> list[tuple[str, int]]: ...
    @property
    def special_tokens_in_text(self) -> str: ...
    @property
    def added_tokens(self) -> list[tuple[str, int]]: ...
    def token_to_id(self, token: str) -> int | None: ...
    def id_to_token(self, id: int) -> str | None: ...
    def components(self) -> list[dict[str, Any]]: ...
    def measured_speeds(self) -> list[dict[str, Any]]: ...
    def encode(
        self, text: str, *, add_special_tokens: bool = True, special_tokens_in_text: str | None = None
    ) -> npt.NDArray[np.uint32]: ...
    def encode_batch(
        self,
        texts: Iterable[str],
        *,
        add_special_tokens: bool = True,
        special_tokens_in_text: str | None = None,
        threads: int | None = None,
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]: ...
    def count(
        self,
        texts: Iterable[str],
        *,
        add_special_tokens: bool = True,
        special_tokens_in_text: str | None = None,
        threads: int | None = None,
    ) -> npt.NDArray[np.int64]: ...
    def decode(self, ids: npt.ArrayLike, *, skip_special_tokens: bool = False) -> str: ...
    def pieces(self, ids: npt.ArrayLike) -> list[bytes]: ...
    def count_kinds(self, ids: npt.ArrayLike) -> dict[str, int]: ...
    def decode_batch(
        self,
        ids: npt.ArrayLike,
        offsets: npt.ArrayLike,
        *,
        skip_special_tokens: bool = False,
        threads: int | None = None,
    ) -> list[str]: ...
    def as_hf(self) -> CallableTokenizer: ...
    def to_json(self) -> bytes: ...
    def __reduce__(self) -> tuple[type[Tokenizer], tuple[bytes, str, str | None, list[str]]]: ...

def builtin_tokenizer(name: str) -> Tokenizer: ...
def read_tokenizer(path: _StrPath, name: str) -> Tokenizer: ...
def presence_of_tokens(tokenizer: Tokenizer, tokens: str) -> list[str]: ...
def with_tokens(tokenizer: Tokenizer, tokens: str) -> Tokenizer: ...
def appended_id(name: str, json: str) -> int | None: ...

@final
class Origin:
    def __new__(cls, source: str, source_index: int, offset: int, unit: str) -> Origin: ...
    def __getnewargs__(self) -> tuple[str, int, int, str]: ...
    @property
    def source(self) -> str: ...
    @property
    def source_index(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def unit(self) -> str: ...
    def to_dict(self) -> dict[str, Any]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Texts:
    # Options are JSON; see `PackConfig.spec`. With a key, the texts are in dicts.
    def __new__(cls, spec: str, key: str | None = None) -> Texts: ...
    def __iter__(self) -> Texts: ...
    def __next__(self) -> str | dict[str, str]: ...

@final
class MdsWriter:
    def __new__(
        cls,
        folder: _StrPath,
        columns: dict[str, str],
        *,
        size_limit: int | None = ...,
        hashes: Sequence[str] = ...,
        compression: str | None = None,
        first_shard: int = 0,
    ) -> MdsWriter: ...
    def write(self, sample: dict[str, Any]) -> None: ...
    @property
    def num_samples(self) -> int: ...
    def finish(
        self, *, marker: dict[str, Any] | None = None, publish_index: bool = True
    ) -> list[dict[str, Any]]: ...
    def discard(self) -> None: ...
    def __enter__(self) -> MdsWriter: ...
    def __exit__(self, kind: object, _error: object, _traceback: object, /) -> None: ...

@final
class MdsReader:
    def __new__(cls, folder: _StrPath, *, verify: bool = True) -> MdsReader: ...
    def __len__(self) -> int: ...
    def __getitem__(self, i: int, /) -> dict[str, Any]: ...
    @property
    def columns(self) -> dict[str, str]: ...
    @property
    def shards(self) -> list[dict[str, Any]]: ...
    @property
    def marker(self) -> dict[str, Any] | None: ...
    @property
    def folder(self) -> Path: ...
    def verify(self) -> None: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class PbinReader:
    def __new__(
        cls,
        path: _StrPath,
        format: str | None = None,
        input_dtype: str | None = None,
        boundaries: str | None = None,
    ) -> PbinReader: ...
    def __len__(self) -> int: ...
    def __getitem__(self, i: int, /) -> _Tokens: ...
    def tokens(self, start: int, stop: int) -> _Tokens: ...
    @property
    def path(self) -> Path: ...
    @property
    def num_tokens(self) -> int: ...
    @property
    def trailer_crc32c(self) -> int | None: ...
    @property
    def data_bytes(self) -> int: ...
    @property
    def file_bytes(self) -> int: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def dialect(self) -> str: ...
    @property
    def metadata(self) -> dict[str, Any] | None: ...
    @property
    def sources(self) -> list[dict[str, Any]]: ...
    def origin(self, i: int) -> Origin | None: ...
    @property
    def has_loss_mask(self) -> bool: ...
    def loss_mask(self, i: int) -> npt.NDArray[np.bool_] | None: ...
    def documents_of_source(self, source_index: int) -> tuple[int, int] | None: ...
    def document_lengths(self) -> npt.NDArray[np.uint64]: ...
    def document_lengths_histogram(self) -> list[tuple[int, int, int]]: ...
    def __reduce__(self) -> tuple[type[PbinReader], tuple[Path]]: ...

_Ids = npt.NDArray[np.int64] | npt.NDArray[np.int32] | npt.NDArray[np.uint32] | npt.NDArray[np.uint16]
_ReadAs = tuple[str | None, str | None, str | None]
_Entry = tuple[_StrPath, int, int, int, int, int | None, int | None, str]

@final
class Blocks:
    def __new__(
        cls,
        paths: Sequence[_StrPath] | None = None,
        *,
        manifest: _StrPath | None = None,
        packing: str,
        block_size: int | None = None,
        context_length: int | None = None,
        overlap: int = 0,
        by_file: bool = False,
        plan_path: _StrPath | None = None,
        split_path: _StrPath | None = None,
        side: str | None = None,
        separator: int | None = None,
        dtype: npt.DTypeLike | None = None,
        verify: bool = False,
        entries: Sequence[_Entry] | None = None,
        fingerprint: str | None = None,
        read_as: _ReadAs | None = None,
    ) -> Blocks: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, item: SupportsIndex, /) -> npt.NDArray[Any]: ...
    @overload
    def __getitem__(self, item: slice, /) -> list[npt.NDArray[Any]]: ...
    def fill(
        self,
        items: Iterable[SupportsIndex],
        *,
        input_ids: _Ids,
        labels: _Ids | None = None,
        position_ids: _Ids | None = None,
        document_ids: _Ids | None = None,
        loss_mask: npt.NDArray[np.bool_] | None = None,
        pad_token_id: int = 0,
        ignore_index: int = ...,
        aligned: bool = False,
        segments: bool = False,
        number_padding: bool = False,
        loss_markers: tuple[int, int] | None = None,
    ) -> tuple[npt.NDArray[np.int32], int] | None: ...
    def check_loss_columns(self) -> None: ...
    def locate(self, item: int) -> list[tuple[str, int, int, int]]: ...
    def advise(self, pattern: str) -> None: ...
    def prefetch(self, items: Iterable[SupportsIndex]) -> None: ...
    @property
    def context_length(self) -> int: ...
    @property
    def num_tokens(self) -> int: ...
    @property
    def num_documents(self) -> int: ...
    @property
    def num_dropped_tokens(self) -> int: ...
    @property
    def num_padding_tokens(self) -> int: ...
    @property
    def token_bytes(self) -> int: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def eod_id(self) -> int | None: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def paths(self) -> list[Path]: ...
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...

@final
class Permutation:
    def __new__(cls, num_items: int, seed: int, epoch: int) -> Permutation: ...
    def __len__(self) -> int: ...
    def __getitem__(self, i: int, /) -> int: ...
    def fill(self, start: int, step: int, num: int) -> npt.NDArray[np.int64]: ...
    def __getnewargs__(self) -> tuple[int, int, int]: ...

@final
class Order:
    def __new__(
        cls, num_items: int, *, seed: int | None, global_batch_size: int, at_epoch_end: str
    ) -> Order: ...
    def num_positions(self, epoch: int, skip: int) -> int: ...
    def epoch_of(self, step: int) -> tuple[int, int]: ...
    def items(self, epoch: int, start: int, step: int, num: int) -> npt.NDArray[np.int64]: ...

def fill_from(
    blocks: Sequence[Blocks],
    sources: npt.NDArray[np.int64],
    items: npt.NDArray[np.int64],
    *,
    input_ids: _Ids,
    labels: _Ids | None = None,
    position_ids: _Ids | None = None,
    document_ids: _Ids | None = None,
    loss_mask: npt.NDArray[np.bool_] | None = None,
    pad_token_id: int = 0,
    ignore_index: int = ...,
    aligned: bool = False,
    segments: bool = False,
    loss_markers: tuple[int, int] | None = None,
) -> tuple[npt.NDArray[np.int32], int] | None: ...

@final
class Mixture:
    def __new__(cls, weights: Sequence[int], *, lengths: Sequence[int], seed: int | None) -> Mixture: ...
    def draws(
        self, items: Sequence[SupportsIndex]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]: ...
    def counts(self, num_items: int) -> list[int]: ...

_Progress = Callable[[dict[str, int]], None]

KEPT_NOTE: str
PLAN_NAME: str
PLAN_TOKENIZER_NAME: str
SHARD_PREFIX: str
PROFILE_TOKENS: int
REJECTS_SUFFIX: str

def shard_name(shard_index: int, num_shards: int) -> str: ...
def marker_name(name: _StrPath) -> str: ...
def is_corpus_name(name: str) -> bool: ...
def natural_sorted(paths: Sequence[str]) -> list[str]: ...
def loss_mask_path(prefix: _StrPath) -> Path: ...
def indexed_files(folder: _StrPath) -> tuple[str, list[str]] | None: ...
def user_cache() -> str | None: ...

@final
class Stream:
    def __new__(
        cls,
        spec: str,
        objects: Sequence[Any],
        *,
        num_threads: int,
        state: tuple[bytes, dict[int, bytes]] | None = None,
    ) -> Stream: ...
    def next(
        self, allocate: Callable[[list[tuple[str, int, int | None]]], list[tuple[Any, Any]]] | None = None
    ) -> Any: ...
    def fail(self, reason: str) -> None: ...
    def skip(self, count: int) -> int: ...
    def state(self) -> tuple[bytes, dict[int, bytes]]: ...
    def located(self) -> list[list[tuple[tuple[str, int, str] | None, tuple[int, int] | None]]]: ...
    def report(self) -> dict[str, Any]: ...
    def close(self) -> None: ...

def wait_for_stream_calls() -> None: ...
def check_stream(spec: str) -> Any: ...
def describe_stream(spec: str) -> list[dict[str, Any]]: ...
def corpus_files(
    inputs: Sequence[str],
    format: str | None = None,
    foreign: Any = None,
    ignore: Sequence[str] | None = None,
    split: str | None = None,
) -> list[tuple[str, int]]: ...
def available_cpus() -> int: ...
def string_access() -> tuple[str, str | None]: ...
def on_engine_check(callback: _Progress | None) -> None: ...
def checked_reject_limit(value: str) -> str: ...
def publish_bytes(path: _StrPath, data: bytes) -> None: ...
def is_url(text: str) -> bool: ...
def is_store_url(url: str) -> bool: ...
def object_bytes(url: str) -> int | None: ...
def list_objects(url: str) -> list[tuple[str, int]]: ...
def download(url: str, path: _StrPath) -> None: ...
def upload(path: _StrPath, url: str, replace: bool) -> None: ...
def delete_object(url: str) -> None: ...

# Options are JSON; see `PackConfig.spec`.
def count_tokens(
    spec: str,
    tokenizers: Sequence[Tokenizer],
    on_progress: _Progress | None,
    plugin: Plugin | None = None,
    *,
    as_each_file: bool = False,
) -> dict[str, Any]: ...
def column_names(pattern: str) -> list[str] | None: ...
def describe_corpus(
    inputs: Sequence[str], format: str | None = None, ignore: Sequence[str] | None = None
) -> dict[str, Any]: ...
def source_record(
    path: _StrPath,
    format: str,
    *,
    offset: int,
    text_separator: str | None,
    max_columns: int,
    max_bytes: int,
    max_record_bytes: int,
    seconds: float,
) -> dict[str, Any] | None: ...
def source_rows(
    path: _StrPath,
    name: str,
    *,
    first: int,
    num_rows: int,
    max_columns: int,
    max_bytes: int,
    max_record_bytes: int,
    seconds: float,
) -> dict[str, Any]: ...
def compare_engines(spec: str, tokenizer: Tokenizer, on_progress: _Progress | None) -> dict[str, Any]: ...
def pack(
    spec: str, tokenizer: Tokenizer, on_progress: _Progress | None, plugin: Plugin | None = None
) -> dict[str, Any]: ...
def plan_shards(
    spec: str,
    tokenizer: Tokenizer,
    on_progress: _Progress | None,
    plugin: Plugin | None = None,
    *,
    num_shards: int,
) -> dict[str, Any]: ...
def pack_shard(
    spec: str,
    tokenizer: Tokenizer,
    on_progress: _Progress | None,
    plugin: Plugin | None = None,
    *,
    shard_index: int,
    num_shards: int | None,
    default_num_shards: int | None,
) -> dict[str, Any]: ...
def report_of_marker(spec: str, tokenizer: Tokenizer, marker: str) -> dict[str, Any]: ...
def join_shards(
    *,
    folder: str,
    output: str,
    existing: str,
    max_rejects: str | None,
    on_progress: _Progress | None,
) -> dict[str, Any]: ...
def read_plan(folder: _StrPath) -> tuple[str, int, int] | None: ...
def find_marker(path: _StrPath) -> dict[str, Any] | None: ...
def list_shards(folder: str, max_rejects: str | None) -> list[Path]: ...
def verify_corpus(
    spec: str,
    tokenizer: Tokenizer,
    on_progress: _Progress | None,
    plugin: Plugin | None = None,
    *,
    sample: float,
) -> dict[str, Any]: ...
def verify_origins(
    tokenizer: Tokenizer,
    on_progress: _Progress | None,
    *,
    path: _StrPath,
    folder: _StrPath,
    sample: float,
    num_cpus: int,
    zstd_window_log: int,
) -> dict[str, Any]: ...
def write_raw_index(
    *,
    src: str,
    index_path: str,
    on_bad_document: str,
    existing: str,
    max_document_bytes: int,
    on_progress: _Progress | None,
) -> dict[str, Any]: ...
def shuffle_files(
    *,
    kind: str,
    inputs: Sequence[str],
    output: str,
    existing: str,
    generator: str,
    seed: str,
    is_seed_given: bool,
    chunk: tuple[int, int] | None,
    on_progress: _Progress | None,
    memory: tuple[int, int] | None = None,
) -> dict[str, Any]: ...
def read_file_list(list: str, root: str, extension: str) -> list[Path]: ...
def shuffled_order(generator: str, seed: str, len: int) -> list[int]: ...
def chunk_seed(global_seed: str, chunk_id: int) -> str: ...

@final
class DocumentTexts:
    def __new__(
        cls,
        paths: Sequence[_StrPath] | None = None,
        *,
        tokenizer: Tokenizer | None,
        manifest: _StrPath | None = None,
        entries: Sequence[_Entry] | None = None,
        read_as: _ReadAs | None = None,
    ) -> DocumentTexts: ...
    @property
    def paths(self) -> list[Path]: ...
    def profile(self, *, sample_tokens: int, on_progress: _Progress | None) -> dict[str, Any]: ...
    def search(
        self, text: str, *, ignore_case: bool, document: int, token: int, max_hits: int, seconds: float
    ) -> dict[str, Any]: ...

@final
class Reshaper:
    def __new__(
        cls,
        inputs: Sequence[str],
        *,
        format: str | None,
        input_dtype: str | None,
        boundaries: str | None,
        tokenizer: Tokenizer | None,
    ) -> Reshaper: ...
    @property
    def num_documents(self) -> int: ...
    @property
    def num_used(self) -> int: ...
    @property
    def source_names(self) -> list[str]: ...
    @property
    def meaning(self) -> dict[str, Any]: ...
    def batch(self, first: int) -> npt.NDArray[np.uint64] | None: ...
    def lengths(self, numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]: ...
    def hashes(self, numbers: npt.NDArray[np.uint64], seed: int) -> npt.NDArray[np.uint64]: ...
    def counts(self, numbers: npt.NDArray[np.uint64], id: int) -> npt.NDArray[np.uint64]: ...
    def origins(
        self, numbers: npt.NDArray[np.uint64]
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]: ...
    def ids(self, number: int) -> npt.NDArray[np.uint32]: ...
    def start_filter(self, value: str | None) -> None: ...
    def decide(self, numbers: npt.NDArray[np.uint64], flags: npt.NDArray[np.bool_]) -> None: ...
    def chunk(self, index: int, count: int) -> None: ...
    def remove(self, lists: Sequence[str], tokenizer: Tokenizer | None, num_threads: int) -> None: ...
    def split_by_hash(self, side: str, fraction: float, seed: int) -> None: ...
    def split_last(self, side: str, num_validation: int) -> None: ...
    def sample_documents(self, num_documents: int, seed: int) -> None: ...
    def sample_tokens(self, max_tokens: int, seed: int) -> None: ...
    def sample_by_weight(self, weights: Sequence[float], seed: int, described: str) -> None: ...
    def write(
        self,
        *,
        inputs: Sequence[str],
        output: str,
        to: str,
        sharding: tuple[int | None, int | None] | None,
        accept_loss: Sequence[str],
        dtype: str | None,
        existing: str,
        truncate_to: int | None,
        retokenize: tuple[Tokenizer, Tokenizer, tuple[str, int], tuple[str, int] | None] | None,
        shuffle: tuple[int, int | None] | None,
        row_tokens: int | None,
        num_threads: int,
        on_start: Callable[[dict[str, list[str]]], None] | None,
        on_progress: _Progress | None,
        memory: tuple[int, int] | None = None,
    ) -> dict[str, Any]: ...

@final
class PbinFilter:
    def __new__(cls, input: str, output: str, *, existing: str) -> PbinFilter: ...
    def decide(self, flags: bytes) -> None: ...
    @property
    def num_taken(self) -> int: ...
    def finish(self) -> dict[str, Any]: ...

def draw_samples(
    recipe: str,
    tokenizer: Tokenizer | None,
    *,
    shard: tuple[int, int] | None,
    join: bool,
    num_threads: int,
    on_progress: _Progress | None,
) -> dict[str, Any]: ...
def pack_samples(
    recipe: str,
    *,
    shard: tuple[int, int] | None,
    join: bool,
    num_threads: int,
    on_progress: _Progress | None,
) -> dict[str, Any]: ...
def keeps_samples(output: PathLike[str] | str) -> bool: ...
def merge(
    *,
    parts: Sequence[str],
    output: str,
    existing: str,
    tokenizer: Tokenizer | None,
    on_progress: _Progress | None,
) -> dict[str, Any]: ...

TOKEN_FORMATS: list[str]

def convert_tokens(
    *,
    inputs: Sequence[_StrPath],
    format: str | None,
    input_dtype: str | None,
    boundaries: str | None,
    output: _StrPath,
    to: str,
    link: bool,
    sharding: tuple[int | None, int | None] | None,
    part: tuple[int, int] | None,
    completes_parts: bool,
    accept_loss: Sequence[str],
    dtype: str | None,
    tokenizer: Tokenizer | None,
    existing: str,
    num_threads: int,
    on_start: Callable[[dict[str, list[str]]], None] | None,
    on_progress: _Progress | None,
) -> dict[str, Any]: ...
def write_packed_rows(
    blocks: Blocks,
    *,
    output: _StrPath,
    max_tokens: int | None,
    loss_markers: tuple[int, int] | None,
    accept_loss: Sequence[str],
    tokenizer: Tokenizer | None,
    existing: str,
    on_progress: _Progress | None,
) -> dict[str, Any]: ...
def find_token_marker(path: _StrPath) -> dict[str, Any] | None: ...
def first_difference_of(
    first: Sequence[_StrPath],
    second: Sequence[_StrPath],
    first_as: _ReadAs,
    second_as: _ReadAs,
    on_progress: _Progress | None = None,
) -> dict[str, Any] | None: ...
def plan_difference(actual: str, expected: str) -> tuple[str, str, str] | None: ...
def npy_files(
    inputs: Sequence[str],
    *,
    format: str | None,
    ignore: Sequence[str],
    split: str | None,
    root: _StrPath | None,
) -> list[dict[str, Any]]: ...
def listed_files(list: _StrPath, *, root: _StrPath | None) -> builtins.list[tuple[int, str]]: ...
def written_list(paths: Sequence[_StrPath]) -> str: ...
def token_plan(spec: str, tokenizer: Tokenizer, dtype: str) -> dict[str, Any]: ...
def token_facts(path: _StrPath, *, chunk_tokens: int, has_crc32c: bool) -> dict[str, Any]: ...
def split_tokens(
    *,
    pbin: _StrPath,
    targets: Sequence[tuple[int, str, _StrPath | None]],
    dtype: str,
    replace: bool,
    plan_json: str,
    on_progress: _Progress | None,
) -> dict[str, Any]: ...
def verify(
    *,
    path: _StrPath,
    format: str | None = None,
    input_dtype: str | None = None,
    boundaries: str | None = None,
    tokenizer: Tokenizer | None,
    on_progress: _Progress | None,
) -> dict[str, Any]: ...
def raw_entries(paths: Sequence[_StrPath], token_bytes: int) -> list[_Entry]: ...
def largest_ids(entries: Sequence[_Entry], on_progress: _Progress | None) -> tuple[int, int, int]: ...
def mask_of_item(document_ids: _Ids) -> npt.NDArray[np.bool_]: ...
def context_masks(
    *,
    seed: int,
    epoch: int,
    sample: int,
    num_contexts: int,
    mask_prob: float,
    mask_seq_prob: float,
    context_size: int,
) -> list[int | None]: ...
def import_mds(
    old: _StrPath,
    new: _StrPath,
    *,
    dtype: str | None = None,
    size_limit: int | None = ...,
    compression: str | None = None,
    on_progress: _Progress | None = None,
) -> list[dict[str, Any]]: ...
def _reopen_mds(folder: _StrPath, verify: bool) -> MdsReader: ...
def mds_marker(folder: _StrPath) -> dict[str, Any] | None: ...
def publish_mds_index(
    folder: _StrPath, shards: Sequence[dict[str, Any]], *, marker: dict[str, Any] | None = None
) -> None: ...
def find_or_plan(
    blocks: Blocks,
    *,
    planner: str,
    block_size: int,
    folders: Sequence[_StrPath],
    on_progress: _Progress | None = None,
) -> Path: ...
def find_or_split(
    blocks: Blocks,
    *,
    fraction: float | None = None,
    seed: int | None = None,
    last: int | float | None = None,
    first_document: int | None = None,
    folders: Sequence[_StrPath],
    on_progress: _Progress | None = None,
) -> Path: ...
def write_manifest(
    *,
    paths: Sequence[_StrPath],
    names: Sequence[_StrPath],
    output: _StrPath,
    replace: bool,
    read_as: _ReadAs,
) -> tuple[int, int, int]: ...
