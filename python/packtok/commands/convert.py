"""Implements `packtok convert`: writes the documents of token files in another format."""

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from packtok import _packtok
from packtok.commands.merge import beside
from packtok.commands.tokenize_npy import checked_dtype
from packtok.data.token_sources import padded_files
from packtok.errors import ConfigError
from packtok.progress import Progress
from packtok.remedies import entry_point, worded_here
from packtok.resuming import KEPT_NOTE, LOST_NOTE, explaining
from packtok.sources import FORMAT_SUFFIXES, StrPath, token_files_below
from packtok.tokenizer.find import TOKENIZER_FILE, find_tokenizer

# Formats that are written as a folder of shards.
FOLDERS = ("litdata", "npy", "parquet")
# Formats whose ids can be uint16 or uint32, as the caller likes.
OF_ANY_WIDTH = ("dolma", "litdata", "llm-c", "npy", "raw")
# Formats whose files of tokens can be links to those of the input.
LINKED = ("megatron", "datatrove", "dolma", "raw")
# What other formats do not know is kept in this folder beside their files.
SIDECAR_FOLDER = ".packtok"
TOKENIZER_CONFIG_FILE = "tokenizer_config.json"
# Describes a folder of NPY shards, as KempnerForge reads it.
METADATA_FILE = "metadata.yaml"
# Describes a folder of Parquet files, as Hugging Face's `load_dataset` reads it.
CARD_FILE = "README.md"
CARD = """---
configs:
- config_name: default
  data_files:
  - split: train
    path: "*.parquet"
---

# {name}

Tokenized documents, one in each row. The column `input_ids` has their ids, BOS and EOS included. The
tokenizer is {tokenizer}.

```python
from datasets import load_dataset

dataset = load_dataset("FOLDER", split="train")
```
"""
# The note on an error if some files of the folder exist already.
KEPT_FILES_NOTE = "finished files are kept; set --existing (existing) to skip to resume"


@entry_point()
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
    existing: Literal["error", "skip", "replace"] = "error",
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Writes the documents of token files, or of all files below a folder, in another format.

    Documents and ids stay as they are, BOS and EOD included; converting back gives the same bytes.

    Args:
        input: A token file; several, whose documents are joined; or a folder, also one of tatm, whose
            metadata say how its files are read.
        output: The file to write; of a format with several files, the name that they share; for
            ``"litdata"``, ``"npy"`` and ``"parquet"``, a folder of shards; for a folder, the folder in which
            its tree is mirrored.
        to: The format to write, one of `packtok convert --help`.
        format: The format to read. Default: the one that the content has; of a folder, pbins, or with
            ``to="pbin"`` the only other format that is in it.
        input_dtype: The type of the ids of files that do not record it, such as ``"uint16"``.
        boundaries: Where documents start in files that do not record it: ``"eos=ID"``, ``"bos=ID"`` or
            ``"file=PATH"``, a file of the ends of documents, one u64 each. Default: one document.
        link: Copy nothing. The file of the tokens becomes a link to that of the input: for ``"megatron"`` to
            any, whose tokens the index finds after the header; for ``"datatrove"``, ``"dolma"`` and ``"raw"``
            to one without a header.
        max_tokens: Divides the output into shards of at most so many tokens, between documents. Default:
            2^30 for ``"npy"``, 2^27 for ``"parquet"``, 2^24 for ``"litdata"``; otherwise one output.
        multiple_of: Cuts shards at multiples of so many tokens instead of between documents, because some
            trainers drop the rest of each file.
        accept_loss: What the input records and the output cannot hold: ``"sequences"``, ``"modes"``, and
            ``"origins"``, which only one output from one input keeps.
        dtype: The type of the ids to write: for ``"cepe-npy"``, ``"int64"`` or ``"uint32"``; for ``"dolma"``,
            ``"litdata"``, ``"llm-c"``, ``"npy"`` and ``"raw"``, ``"uint16"`` or ``"uint32"``. Default:
            ``"int64"``, and what the vocabulary needs.
        tokenizer: The tokenizer of the ids. Default: what the trailer or the marker records.
        add_special_tokens_from_config: As in `packtok.pack`, for ``tokenizer``.
        existing: ``"error"``; ``"skip"``, which keeps a file after comparing its documents; ``"replace"``.
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
    check_formats(to, format)
    checked = checked_id_type(dtype, to)
    if link and to not in LINKED:
        raise ConfigError(f"--link: has no effect with --to {to}; links can be {', '.join(LINKED)}")
    sharding = sharding_of(to, max_tokens, multiple_of, link=link)
    inputs = [Path(input)] if isinstance(input, str | os.PathLike) else list(map(Path, input))
    warnings: list[str] = []
    is_folder = len(inputs) == 1 and inputs[0].is_dir()
    inputs, reading, tokenizer = with_description(
        inputs, Reading(format, input_dtype, boundaries), tokenizer, warnings.append
    )
    loaded_tokenizer = None
    if tokenizer is not None:
        loaded_tokenizer = find_tokenizer(tokenizer, add_special_tokens_from_config).tokenizer
    if to in FOLDERS and Path(output).suffix == FORMAT_SUFFIXES[to]:
        raise ConfigError(f"--output: is {output}; expected the name of a folder, which gets shards")
    jobs = _jobs(inputs, Path(output), to, format, is_joined=sharding is not None, is_folder=is_folder)
    reports: list[dict[str, Any]] = []

    def note() -> str:
        if not reports:
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
                accept_loss=[accept_loss] if isinstance(accept_loss, str) else list(accept_loss),
                dtype=checked,
                tokenizer=loaded_tokenizer,
                existing=existing,
                on_progress=on_progress,
            )
            warnings += report["notes"]
            warnings += write_tokenizer(sources, target, report, loaded_tokenizer)
            if to == "npy":
                write_metadata(target, report)
            elif to == "parquet":
                write_card(target, report)
            reports.append(report)
    return {
        "output": os.fspath(output),
        "files": sum(len(report["files"]) for report in reports),
        **{name: sum(report[name] for report in reports) for name in ("documents", "tokens", "file_bytes")},
        **{
            shown: sorted({name for report in reports for name in report["kept"][place]})
            for shown, place in (("kept_in_files", "in_files"), ("kept_beside", "beside"), ("lost", "lost"))
        },
        "warnings": warnings,
    }


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

    format: str | None
    input_dtype: str | None
    boundaries: str | None


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


def write_tokenizer(
    sources: Iterable[Path], target: Path, report: dict[str, Any], tokenizer: _packtok.Tokenizer | None
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
    if not os.path.lexists(name):
        _packtok.publish_bytes(name, content)
    elif name.read_bytes() != content:
        return [f"{name}: is another tokenizer; that of {report['output']} is not kept"]
    if to not in ("pbin", "cepe-npy"):
        config = {"tokenizer_class": "PreTrainedTokenizerFast"}
        for key, token in (("bos_token", "bos"), ("eos_token", "eod")):
            if (named := report["meaning"][token]) is not None:
                config[key] = named["token"]
        text = json.dumps(config, indent=2, ensure_ascii=False) + "\n"
        if not os.path.lexists(name.with_name(TOKENIZER_CONFIG_FILE)):
            _packtok.publish_bytes(name.with_name(TOKENIZER_CONFIG_FILE), text.encode())
    return []


def write_metadata(folder: Path, report: dict[str, Any]) -> None:
    """Writes what describes a folder of NPY shards to KempnerForge and to catalogues."""
    tokenizer = report["meaning"]["tokenizer"] or {}
    info = {
        "tokenizer": tokenizer.get("name"),
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


def write_card(folder: Path, report: dict[str, Any]) -> None:
    """Writes what tells `load_dataset` which files of a folder have the data."""
    tokenizer = (report["meaning"]["tokenizer"] or {}).get("name", "that is not known")
    if not os.path.lexists(folder / CARD_FILE):
        text = CARD.format(name=folder.name, tokenizer=tokenizer)
        _packtok.publish_bytes(folder / CARD_FILE, text.encode())


def tokenizer_beside(path: StrPath) -> str | None:
    """Returns the tokenizer file of a token file, or None.

    It is next to a pbin; in the folder of shards; in the sidecar folder of other formats; for CEPE's NPY
    file with a marker, in a folder above it.

    Args:
        path: The token file.
    """
    file = Path(path)
    if (tokenizer := beside(os.fspath(path))) is not None:
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
