"""Implements `packtok convert`: writes the documents of token files in another format."""

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from packtok import _packtok
from packtok.commands.npy_folder import checked_dtype
from packtok.commands.through_stores import through_stores
from packtok.data.loss_markers import marker_ids
from packtok.data.token_sources import padded_files
from packtok.distributed import find_shard
from packtok.errors import ConfigError
from packtok.integers import checked_integer
from packtok.progress import Progress
from packtok.remedies import entry_point, worded_here
from packtok.resuming import KEPT_NOTE, LOST_NOTE, explaining
from packtok.sources import FORMAT_SUFFIXES, SIDECAR_FOLDER, StrPath, token_files_at, token_files_below
from packtok.tokenizer.find import TOKENIZER_FILE, find_tokenizer, tokenizer_next_to
from packtok.tokenizer.neighbours import CONFIG_FILE

# Formats that are written as a folder of shards.
FOLDERS = ("litdata", "mds", "npy", "parquet")
# Formats whose ids can be uint16 or uint32, as the caller likes.
OF_ANY_WIDTH = ("dolma", "litdata", "llm-c", "mds", "npy", "raw")
# Formats whose files of tokens can be links to those of the input.
LINKED = ("megatron", "datatrove", "dolma", "raw")
# Describes a folder of NPY shards, as KempnerForge reads it.
METADATA_FILE = "metadata.yaml"
# Describes a folder of Parquet files, as Hugging Face's `load_dataset` reads it.
CARD_FILE = "README.md"
# Rows of several documents, for Megatron-Bridge. They are not read again as these documents.
PACKED = "packed-parquet"
CARD = """---
configs:
- config_name: default
  data_files:
  - split: train
    path: "*.parquet"
---

# {name}

{rows} The column `input_ids` has their ids, BOS and EOS included. The
tokenizer is {tokenizer}.

```python
from datasets import load_dataset

dataset = load_dataset("FOLDER", split="train")
```
"""
DOCUMENT_ROWS = "Tokenized documents, one in each row."
PACKED_ROWS = (
    "Tokenized documents, several in each row, as Megatron-Bridge reads them. `seq_start_id` is where each\n"
    "of them starts, `loss_mask` whether the label of each id, which is the id after it, counts in the loss."
)
# The note on an error if some files of the folder exist already.
KEPT_FILES_NOTE = "finished files are kept; set --existing (existing) to skip to resume"


@entry_point()
@through_stores
def convert(
    input: StrPath | Sequence[StrPath],
    output: StrPath,
    *,
    to: str,
    format: str | None = None,
    input_dtype: str | None = None,
    boundaries: str | None = None,
    link: bool = False,
    max_tokens: int | None = None,
    multiple_of: int | None = None,
    accept_loss: str | Sequence[str] = (),
    dtype: str | None = None,
    tokenizer: str | None = None,
    add_special_tokens_from_config: bool = False,
    context_length: int | None = None,
    loss_markers: tuple[int | str, int | str] | None = None,
    shard: str | None = None,
    join: bool = False,
    existing: Literal["error", "skip", "replace"] = "error",
    threads: int | None = None,
    on_start: Callable[[dict[str, list[str]]], None] | None = None,
    on_written: Callable[[Path], None] | None = None,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Writes the documents of token files, or of all files below a folder, in another format.

    Documents and ids stay as they are, BOS and EOD included; converting back gives the same bytes.

    Args:
        input: A token file; several, whose documents are joined; or a folder, also one of tatm, whose
            metadata say how its files are read. Inputs and output may be URLs of an object store.
        output: The file to write; of a format with several files, the name that they share; for
            ``"litdata"``, ``"mds"``, ``"npy"`` and both kinds of Parquet, a folder of shards; for a folder,
            the folder in which its tree is mirrored.
        to: The format to write, one of `packtok convert --help`. ``"packed-parquet"`` is a folder of rows of
            several documents, the items of `TokenDataset` with ``packing="best_fit"``.
        format: The format to read. Default: the one that the content has; of a folder, pbins, or with
            ``to="pbin"`` the only other format that is in it.
        input_dtype: The type of the ids of files that do not record it, such as ``"uint16"``.
        boundaries: Where documents start in files that do not record it: ``"eos=ID"``, ``"bos=ID"`` or
            ``"file=PATH"``, a file of the ends of documents, one u64 each. Default: one document.
        link: Copy nothing. The file of the tokens becomes a link to that of the input: for ``"megatron"`` to
            any, whose tokens the index finds after the header; for ``"datatrove"``, ``"dolma"`` and ``"raw"``
            to one without a header.
        max_tokens: Divides the output into shards of at most so many tokens, between documents. Default:
            2^30 for ``"npy"``, 2^27 for ``"parquet"``, 2^24 for ``"litdata"`` and ``"mds"``; otherwise one
            output.
        multiple_of: Cuts shards at multiples of so many tokens instead of between documents, because some
            trainers drop the rest of each file.
        accept_loss: What the input records and the output cannot hold: ``"sequences"``, ``"modes"``,
            ``"loss_mask"``, a column, and ``"origins"``, which only one output from one input keeps.
        dtype: The type of the ids to write: for ``"cepe-npy"``, ``"int64"`` or ``"uint32"``; for ``"dolma"``,
            ``"litdata"``, ``"llm-c"``, ``"mds"``, ``"npy"`` and ``"raw"``, ``"uint16"`` or ``"uint32"``.
            Default: ``"int64"``, and what the vocabulary needs.
        tokenizer: The tokenizer of the ids. Default: what the trailer or the marker records.
        add_special_tokens_from_config: As in `packtok.pack`, for ``tokenizer``.
        context_length: With ``"packed-parquet"``, the most inputs of a row. A row has one id more for each
            document, because the last one is only a label.
        loss_markers: With ``"packed-parquet"``, as in `TokenDataset`.
        shard: ``"k/N"``: writes every Nth of the outputs, from k on, so that N calls at once write all. With
            ``"auto"``, k and N are those of a task of Slurm.
        join: Completes what calls with ``shard`` have written, by the index of ``"litdata"`` and ``"mds"``.
        existing: ``"error"``; ``"skip"``, which keeps a file after comparing its documents; ``"replace"``.
        threads: Shards that are written at once, at most 8. Default: the CPUs that the process may use.
        on_start: Called with ``kept_in_files``, ``kept_beside`` and ``lost`` of each output before it is
            written, but not with ``"packed-parquet"``.
        on_written: Called with each file of tokens when all are written; with its URL in a store.
        on_progress: As in `packtok.pack`.

    Returns:
        ``output``, ``files``, ``documents``, ``tokens`` and ``file_bytes``; ``kept_in_files``,
        ``kept_beside`` and ``lost``, the names of what the input records, by where the output has it; and
        ``warnings``.

    Raises:
        ConfigError: If an argument is invalid.
        FileExistsError: If the output exists and ``existing`` is ``"error"``.
        PbinFormatError: If the input is damaged, or has ids that the tokenizer lacks.
    """
    check_formats("parquet" if to == PACKED else to, format)
    if to == PACKED:
        unused: dict[str, object] = {
            "--format (format)": format,
            "--input-dtype (input_dtype)": input_dtype,
            "--boundaries (boundaries)": boundaries,
            "--link (link)": link or None,
            "--multiple-of (multiple_of)": multiple_of,
            "--dtype (dtype)": dtype,
            "--threads (threads)": threads,
            "--shard (shard)": shard,
            "--join (join)": join or None,
            "--existing (existing) skip": existing if existing == "skip" else None,
        }
        _check_unused(unused, to)
        return _write_packed(
            input,
            Path(output),
            context_length=context_length,
            loss_markers=loss_markers,
            max_tokens=max_tokens,
            accept_loss=accept_loss,
            tokenizer=tokenizer,
            add_special_tokens_from_config=add_special_tokens_from_config,
            existing=existing,
            on_written=on_written,
            on_progress=on_progress,
        )
    of_packed: dict[str, object] = {
        "--context-length (context_length)": context_length,
        "--loss-markers (loss_markers)": loss_markers,
    }
    _check_unused(of_packed, to)
    checked = checked_id_type(dtype, to)
    _check_target(to, Path(output), link=link)
    sharding = sharding_of(to, max_tokens, multiple_of, link=link)
    inputs = paths_of(input)
    warnings: list[str] = []
    is_folder = len(inputs) == 1 and inputs[0].is_dir()
    inputs, reading, tokenizer = with_description(
        inputs, Reading(format, input_dtype, boundaries), tokenizer, warnings.append
    )
    loaded_tokenizer = None
    if tokenizer is not None:
        loaded_tokenizer = find_tokenizer(tokenizer, add_special_tokens_from_config).tokenizer
    jobs = _jobs(inputs, Path(output), to, format, is_joined=sharding is not None, is_folder=is_folder)
    part = _part_of(shard, join=join)
    if part is not None and sharding is None:
        # Each job has one output.
        jobs, part = jobs[part[0] :: part[1]], None
    num_threads = threads_or_cpus(threads)
    reports: list[dict[str, Any]] = []

    def note() -> str:
        if not reports and sharding is None:
            return LOST_NOTE
        return KEPT_NOTE if existing == "skip" else worded_here(KEPT_FILES_NOTE)

    with explaining(note):
        for sources, target in jobs:
            report = _packtok.convert_tokens(
                inputs=sources,
                **asdict(reading),
                output=target,
                to=to,
                link=link,
                sharding=sharding,
                part=part,
                completes_parts=join,
                accept_loss=accepted_losses(accept_loss),
                dtype=checked,
                tokenizer=loaded_tokenizer,
                existing=existing,
                num_threads=num_threads,
                on_start=kept_of_output(on_start),
                on_progress=on_progress,
            )
            warnings += report["notes"]
            warnings += describe_output(sources, target, report, loaded_tokenizer, existing)
            reports.append(report)
    name_files((file for report in reports for file in report["files"]), on_written)
    return {
        "output": os.fspath(output),
        "files": sum(len(report["files"]) for report in reports),
        **{name: sum(report[name] for report in reports) for name in ("documents", "tokens", "file_bytes")},
        **kept_in([report["kept"] for report in reports]),
        "warnings": warnings,
    }


def name_files(files: Iterable[str], on_written: Callable[[Path], None] | None) -> None:
    """Calls ``on_written`` with each file."""
    if on_written is not None:
        for file in files:
            on_written(Path(file))


def paths_of(input: StrPath | Sequence[StrPath]) -> list[Path]:
    """Returns the inputs, which are at least one."""
    paths = [Path(input)] if isinstance(input, str | os.PathLike) else list(map(Path, input))
    if not paths:
        raise ConfigError("the list of token files is empty; give at least one")
    return paths


def accepted_losses(accept_loss: str | Sequence[str]) -> list[str]:
    """Returns what may be lost, as a list."""
    return [accept_loss] if isinstance(accept_loss, str) else list(accept_loss)


def threads_or_cpus(threads: int | None) -> int:
    """Returns the number of threads; by default the CPUs that the process may use."""
    if threads is None:
        return _packtok.available_cpus()
    return checked_integer("--threads (threads)", threads, least=1)


def _check_target(to: str, output: Path, *, link: bool) -> None:
    if link and to not in LINKED:
        raise ConfigError(f"--link: has no effect with --to {to}; links can be {', '.join(LINKED)}")
    suffix = FORMAT_SUFFIXES["parquet" if to == PACKED else to]
    if to in (*FOLDERS, PACKED) and output.suffix == suffix:
        raise ConfigError(f"--output: is {output}; expected the name of a folder, which gets shards")


def _part_of(shard: str | None, *, join: bool) -> tuple[int, int] | None:
    """Returns which part of how many a shard is; None for all."""
    if shard is None:
        return None
    if join:
        raise ConfigError("--join (join): cannot be combined with --shard (shard)")
    chosen = find_shard(shard)
    count = chosen.num_shards or chosen.default_num_shards
    if count is None or not chosen.shard_index < count:
        raise ConfigError(f"--shard (shard): is {shard}; expected k/N with k below N")
    return chosen.shard_index, count


def kept_in(kept: Iterable[dict[str, list[str]]]) -> dict[str, list[str]]:
    """Returns the names of what the inputs record, by where the outputs have it."""
    places = (("kept_in_files", "in_files"), ("kept_beside", "beside"), ("lost", "lost"))
    outputs = list(kept)
    return {shown: sorted({name for output in outputs for name in output[place]}) for shown, place in places}


def kept_of_output(
    on_start: Callable[[dict[str, list[str]]], None] | None,
) -> Callable[[dict[str, list[str]]], None] | None:
    """Returns a function that the compiled module calls with what an output keeps."""
    return None if on_start is None else lambda kept: on_start(kept_in([kept]))


def _write_packed(
    input: StrPath | Sequence[StrPath],
    output: Path,
    *,
    context_length: int | None,
    loss_markers: tuple[int | str, int | str] | None,
    max_tokens: int | None,
    accept_loss: str | Sequence[str],
    tokenizer: str | None,
    add_special_tokens_from_config: bool,
    existing: str,
    on_written: Callable[[Path], None] | None,
    on_progress: Progress | None,
) -> dict[str, Any]:
    """Implements `convert` to packed rows."""
    if context_length is None:
        raise ConfigError(f"--context-length (context_length): is missing; --to {PACKED} needs it")
    context_length = checked_integer(
        "--context-length (context_length)", context_length, least=1, below=1 << 31
    )
    if max_tokens is not None:
        max_tokens = checked_integer("--max-tokens (max_tokens)", max_tokens, least=1)
    _check_target(PACKED, output, link=False)
    inputs = paths_of(input)
    files = [file for path in inputs for file in token_files_at(path)]
    loaded_tokenizer = None
    if tokenizer is not None:
        loaded_tokenizer = find_tokenizer(tokenizer, add_special_tokens_from_config).tokenizer
    markers = None if loss_markers is None else marker_ids(loss_markers, files[0])
    whole = _packtok.Blocks(files, packing="whole")
    with tempfile.TemporaryDirectory() as folder:
        plan = _packtok.find_or_plan(
            whole, planner="best_fit", block_size=context_length, folders=[folder], on_progress=on_progress
        )
        blocks = _packtok.Blocks(files, packing="planned", plan_path=plan)
        report = _packtok.write_packed_rows(
            blocks,
            output=output,
            max_tokens=max_tokens,
            loss_markers=markers,
            accept_loss=accepted_losses(accept_loss),
            tokenizer=loaded_tokenizer,
            existing=existing,
            on_progress=on_progress,
        )
    report["to"] = "parquet"
    sources = map(Path, files)
    warnings: list[str] = report["notes"]
    warnings += describe_output(sources, output, report, loaded_tokenizer, existing, rows=PACKED_ROWS)
    name_files(report["files"], on_written)
    counts = ("rows", "documents", "left_out_documents", "tokens", "file_bytes", "lost")
    return {
        "output": os.fspath(output),
        "files": len(report["files"]),
        **{name: report[name] for name in counts},
        "warnings": warnings,
    }


def _check_unused(options: dict[str, object], to: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise ConfigError(f"{name}: has no effect with --to {to}")


def check_formats(to: str, format: str | None) -> None:
    """Raises a `ConfigError` unless both are names of formats."""
    for name, value in (("--to", to), ("--format", format)):
        if value is not None and value not in _packtok.TOKEN_FORMATS:
            raise ConfigError(f"{name}: is {value}; expected one of {', '.join(_packtok.TOKEN_FORMATS)}")


def checked_id_type(dtype: str | None, to: str) -> str | None:
    """Returns the dtype to write, None for what the vocabulary needs."""
    if to == "cepe-npy":
        return checked_dtype(dtype)
    if dtype is not None and to not in OF_ANY_WIDTH:
        raise ConfigError(f"--dtype: has no effect with --to {to}, whose width follows from the tokenizer")
    if dtype not in (None, "uint16", "uint32"):
        raise ConfigError(f"--dtype: is {dtype}; expected uint16 or uint32")
    return dtype


def sharding_of(
    to: str, max_tokens: int | None, multiple_of: int | None, *, link: bool
) -> tuple[int | None, int | None] | None:
    """Returns how the output is divided; None for one output."""
    options = {"--max-tokens": max_tokens, "--multiple-of": multiple_of}
    for name, value in options.items():
        if value is None:
            continue
        if value < 1:
            raise ConfigError(f"{name}: is {value}; expected at least 1")
        if to in ("pbin", "cepe-npy") or link:
            reason = "--link, which copies nothing" if link else f"--to {to}"
            raise ConfigError(f"{name}: has no effect with {reason}")
    if to in FOLDERS or max_tokens is not None or multiple_of is not None:
        return max_tokens, multiple_of
    return None


@dataclass(frozen=True)
class Reading:
    """What is said about token files that they do not record, as in `convert`."""

    format: str | None = None
    input_dtype: str | None = None
    boundaries: str | None = None


def with_description(
    inputs: list[Path], reading: Reading, tokenizer: str | None, remark: Callable[[str], None]
) -> tuple[list[Path], Reading, str | None]:
    """Returns the files of a folder of tatm, how they are read and their tokenizer; other inputs as given."""
    is_tatm = len(inputs) == 1 and reading.format in (None, "tatm")
    files = padded_files(os.fspath(inputs[0]), remark) if is_tatm else None
    if files is None:
        return inputs, reading, tokenizer
    boundaries = reading.boundaries
    if boundaries is None and files.eos_token is not None:
        boundaries = f"eos={files.eos_token}"
    if boundaries is None:
        remark(f"{inputs[0]}: nothing says which id ends a document, so each file is one document")
    if files.num_padding:
        remark(f"{inputs[0]}: {files.num_padding:,} zeros at the ends of files are padding and left out")
    known = Reading("tatm", reading.input_dtype or files.dtype, boundaries)
    return list(map(Path, files.paths)), known, tokenizer or files.tokenizer


def described_files(
    path: StrPath, remark: Callable[[str], None], given: Reading | None = None
) -> tuple[list[str], Reading]:
    """Returns the token files at a path or in a folder, and how they are read; also of a folder of tatm."""
    given = given or Reading()
    files, reading, _ = with_description([Path(path)], given, None, remark)
    if reading != given:
        return list(map(os.fspath, files)), reading
    return token_files_at(Path(path), given.format), given


def _jobs(
    sources: list[Path], target: Path, to: str, format: str | None, *, is_joined: bool, is_folder: bool
) -> list[tuple[list[Path], Path]]:
    """Returns the files of each conversion, with its output.

    Files are joined; so are those of a folder if the output is divided anyway, and otherwise each becomes a
    file of the same name.
    """
    folders = [source for source in sources if source.is_dir()]
    if not folders and (is_joined or not is_folder):
        return [(sources, target)]
    if folders and len(sources) > 1:
        raise ConfigError(
            f"{folders[0]}: a folder is converted by itself; name its files, or leave out the others"
        )
    if folders:
        (folder,) = folders
        names = token_files_below(folder, format, reads_pbins=to != "pbin")
    else:
        folder, names = sources[0].parent, [source.name for source in sources]
    if is_joined:
        return [([folder / name for name in names], target)]
    ending = FORMAT_SUFFIXES[to] if to in ("pbin", "cepe-npy", "raw") else ""
    return [([folder / name], target / Path(name).with_suffix(ending)) for name in names]


def describe_output(
    sources: Iterable[Path],
    target: Path,
    report: dict[str, Any],
    tokenizer: _packtok.Tokenizer | None,
    existing: str,
    *,
    rows: str = DOCUMENT_ROWS,
) -> list[str]:
    """Writes what belongs to an output beside its tokens; returns warnings.

    That is the tokenizer, and for some formats a file in which other tools find what the tokens are.

    Args:
        sources: The token files that were read.
        target: The output.
        report: The report of the conversion: ``to``, ``output`` and ``meaning``; for NPY also ``files``
            and ``dtype``.
        tokenizer: The tokenizer of the output; without one, that beside a source is copied.
        existing: What happens to files that exist.
        rows: What a row of a table is.
    """
    replaces = existing == "replace"
    warnings = _write_tokenizer(sources, target, report, tokenizer, replaces=replaces)
    if report["to"] == "npy" and report["files"]:
        _write_metadata(target, report)
    elif report["to"] == "parquet":
        _write_card(target, report, rows, replaces=replaces)
    return warnings


def _write_tokenizer(
    sources: Iterable[Path],
    target: Path,
    report: dict[str, Any],
    tokenizer: _packtok.Tokenizer | None,
    *,
    replaces: bool,
) -> list[str]:
    """Writes the tokenizer near the output, so that data and tokenizer stay together; returns warnings.

    Transformers' ``AutoTokenizer`` opens its folder, and finds EOS and BOS there.
    """
    content = None if tokenizer is None else tokenizer.to_json()
    if content is None and (file := next(filter(None, map(tokenizer_beside, sources)), None)) is not None:
        content = Path(file).read_bytes()
    if content is None:
        return []
    to = report["to"]
    if to == "pbin":
        name = Path(f"{target}.{TOKENIZER_FILE}")
    else:
        folder = target.parent if to == "cepe-npy" else target.parent / SIDECAR_FOLDER
        folder = target if to in FOLDERS else folder
        name = folder / TOKENIZER_FILE
    # Other datasets of a folder can have the same sidecar folder.
    is_own = to == "pbin" or to in FOLDERS
    if (replaces and is_own) or not os.path.lexists(name):
        _packtok.publish_bytes(name, content)
    elif name.read_bytes() != content:
        return [f"{name}: is another tokenizer; that of {report['output']} is not kept"]
    if to not in ("pbin", "cepe-npy"):
        config = {"tokenizer_class": "PreTrainedTokenizerFast"}
        for key, token in (("bos_token", "bos"), ("eos_token", "eod")):
            if (named := report["meaning"][token]) is not None:
                config[key] = named["token"]
        text = json.dumps(config, indent=2, ensure_ascii=False) + "\n"
        if (replaces and is_own) or not os.path.lexists(name.with_name(CONFIG_FILE)):
            _packtok.publish_bytes(name.with_name(CONFIG_FILE), text.encode())
    return []


def _write_metadata(folder: Path, report: dict[str, Any]) -> None:
    """Writes what describes a folder of NPY shards to KempnerForge and to catalogues."""
    tokenizer = report["meaning"]["tokenizer"] or {}
    info = {
        # A catalogue needs the key, also if it is not known.
        "tokenizer": tokenizer.get("name", ""),
        "file_prefix": "shard",
        "dtype": report["dtype"],
        "file_extension": "npy",
        "vocab_size": tokenizer.get("vocab_size"),
    }
    required = dict.fromkeys(("description", "date_downloaded", "download_source"), "")
    values = {"name": folder.name, **required, "data_content": "text", "tokenized_info": info}
    text = yaml.safe_dump(values, sort_keys=False, allow_unicode=True)
    path = folder / METADATA_FILE
    if not os.path.lexists(path) or path.read_text(encoding="utf-8") != text:
        _packtok.publish_bytes(path, text.encode())


def _write_card(folder: Path, report: dict[str, Any], rows: str, *, replaces: bool) -> None:
    """Writes what tells `load_dataset` which files of a folder have the data."""
    tokenizer = (report["meaning"]["tokenizer"] or {}).get("name", "that is not known")
    if replaces or not os.path.lexists(folder / CARD_FILE):
        text = CARD.format(name=folder.name, tokenizer=tokenizer, rows=rows)
        _packtok.publish_bytes(folder / CARD_FILE, text.encode())


def tokenizer_beside(path: StrPath) -> str | None:
    """Returns the tokenizer file of a token file, or None.

    It is next to a pbin; in the folder of shards; in the sidecar folder of other formats; for CEPE's NPY
    file with a marker, in a folder above it.

    Args:
        path: The token file.
    """
    file = Path(path)
    if (tokenizer := tokenizer_next_to(path)) is not None:
        return tokenizer
    marker = _packtok.find_token_marker(file)
    if marker is None:
        return None
    fingerprint = (marker["plan"].get("tokenizer") or {}).get("fingerprint")
    levels = Path(marker["source"]["path"]).parts
    folders = list(Path(os.path.abspath(file)).parents)[: len(levels)]
    if marker["format"] in FOLDERS:
        folders = [file.parent]
    elif marker["format"] != "cepe-npy":
        folders = [file.parent / SIDECAR_FOLDER]
    for folder in folders:
        candidate = folder / TOKENIZER_FILE
        if candidate.is_file() and find_tokenizer(os.fspath(candidate)).tokenizer.fingerprint == fingerprint:
            return os.fspath(candidate)
    return None
