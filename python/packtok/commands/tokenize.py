"""Implements ``packtok tokenize``: from described datasets to a described dataset of token files."""

import contextlib
import dataclasses
import datetime
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from packtok import _packtok
from packtok.catalog.names import Remark
from packtok.catalog.schema import (
    BYTES_OF_DTYPE,
    METADATA_NAMES,
    DatasetMetadata,
    TokenizedInfo,
    load_details,
    load_metadata,
    save_details,
)
from packtok.catalog.selection import DEFAULT_SPLIT, Selected, refuse_several_configs, select
from packtok.catalog.survey import pattern_of
from packtok.choices import check_choice
from packtok.commands.join import join
from packtok.commands.manifest import write_manifest
from packtok.commands.output_folder import output_folder
from packtok.commands.tokenize_npy import prepare_npy_tokenization
from packtok.commands.tokenize_shards import tokenize_shards
from packtok.config import load_config
from packtok.config.options import DATASETS
from packtok.distributed import ShardChoice
from packtok.errors import ConfigError, PacktokError, TokenizerError
from packtok.packer.pack_run import PackRun, prepare
from packtok.packer.report import PackReport
from packtok.progress import Progress
from packtok.remedies import entry_point
from packtok.shard_folder import read_plan
from packtok.sources import StrPath
from packtok.text_counts import recorded_text_counts
from packtok.tokenizer.find import TOKENIZER_FILE, find_tokenizer

Existing = Literal["error", "skip", "replace"]

# Options of `pack` that follow from the arguments.
_DETERMINED = ("input", "output", "field", "index_path", "report")
# The most datasets that the name of a mixture lists.
_MAX_NAMED = 3
# The most files that a remark lists.
FILES_SHOWN = 10

# The default of tatm.
DEFAULT_TOKENIZER = "t5-base"


@entry_point(*_DETERMINED)
def tokenize(
    datasets: str | Sequence[str],
    tokenizer: str | None = None,
    output_dir: StrPath = ".",
    *,
    file_prefix: str = "tokenized",
    token_dtype: str | None = None,
    parts: int | None = None,
    to: Literal["cepe-npy", "npy"] | None = None,
    dtype: str | None = None,
    existing: Existing = "error",
    on_progress: Progress | None = None,
    remark: Remark = lambda _: None,
    **options: Any,
) -> dict[str, Any]:
    """Tokenizes described datasets, in the order given, into a folder that is a described dataset itself.

    The folder has ``<file_prefix>.pbin``, ``tokenizer.json`` and ``metadata.json``. The last is written last:
    a folder that has it is complete. An interrupted run keeps its progress, and the same call resumes it.

    Args:
        datasets: Metadata files, folders with one, or names; ``path:corpus`` and ``name:corpus`` select a
            corpus. A source plug-in receives them as ``FOLDER[:CORPUS]``.
        tokenizer: A path, a built-in name or a name on the hub. Default: ``t5-base``, as in tatm.
        output_dir: The folder to write to.
        file_prefix: Start of the names of the token files.
        token_dtype: The widest tokens that are accepted: ``"uint8"``, ``"uint16"`` or ``"uint32"``. The files
            have the narrowest that holds the vocabulary.
        parts: Number of pbins to write, with a manifest ``<file_prefix>.jsonl``. Default: one pbin without.
        to: With ``"cepe-npy"``, the datasets are files, folders, globs and ``@LIST`` without metadata, and
            each file becomes an NPY file as CEPE's scripts save it; complete files of the same plan are kept.
            With ``"npy"``, the same datasets become one folder of shards as KempnerForge reads it.
        dtype: With ``"cepe-npy"``, ``"int64"`` or ``"uint32"``. Default: ``"int64"``. With ``"npy"``,
            ``"uint16"`` or ``"uint32"``. Default: what the vocabulary needs.
        existing: If the folder is complete: ``"error"``; ``"skip"`` keeps it after checking that this call
            would write the same; ``"replace"``, which keeps it until the new token files are complete.
        on_progress: As in `packtok.pack`.
        remark: Receives a remark if names are looked up without an index, and which files are not read.
        **options: Options of `packtok.pack`; input, output, field and tokenizer are given by the arguments.
            ``split`` is ``"train"`` by default.

    Returns:
        The content of ``metadata.json``, and of ``metadata.packtok.json`` under ``details``; with ``to``, the
        counts of the files.

    Raises:
        ConfigError: If an argument is invalid, a corpus is unknown, or the vocabulary needs wider tokens.
        FileExistsError: If the folder is complete and ``existing`` is ``"error"``.
        FileNotFoundError: If there is no metadata file.
        PacktokError: If ``existing`` is ``"skip"`` and the folder has another dataset.
    """
    if to is not None and (parts is not None or token_dtype is not None or file_prefix != "tokenized"):
        raise ConfigError(f"parts, token_dtype and file_prefix have no effect with to={to!r}; leave them out")
    if to == "npy":
        inputs = [datasets] if isinstance(datasets, str) else list(datasets)
        return tokenize_shards(
            inputs,
            tokenizer,
            output_dir,
            dtype=dtype,
            existing=existing,
            on_progress=on_progress,
            **options,
        )
    if to is not None:
        inputs = [datasets] if isinstance(datasets, str) else list(datasets)
        npy = prepare_npy_tokenization(
            inputs, tokenizer, output_dir, dtype=dtype, existing=existing, remark=remark, **options
        )
        return npy.run(on_progress)
    if existing == "error":
        refuse_complete(output_dir)
    prepared = prepare_tokenization(
        datasets,
        tokenizer,
        output_dir,
        file_prefix=file_prefix,
        token_dtype=token_dtype,
        parts=parts,
        existing=existing,
        remark=remark,
        **options,
    )
    return prepared.run(on_progress)


@dataclass(frozen=True)
class Tokenization:
    """A run of `tokenize` that is ready to start: the datasets are found and the tokenizer is loaded."""

    selected: tuple[Selected, ...]
    packing: PackRun
    tokenizer: str
    folder: Path
    file_prefix: str
    parts: int | None
    outdir: Path
    """The folder of the shards; with ``parts``, the output folder."""
    existing: Existing = "error"
    remark: Remark = lambda _: None
    """Receives which files are read and which are not."""

    @property
    def metadata_path(self) -> Path:
        """The file that is written last."""
        return self.folder / METADATA_NAMES[0]

    @property
    def shards(self) -> PackRun:
        """The packing of a shard into the folder of the shards."""
        # Complete shards are kept unless ``existing`` is "replace".
        return self.packing.into(self.outdir, "replace" if self.existing == "replace" else "error")

    @property
    def keeps(self) -> bool:
        """Whether the folder is complete and stays if its dataset is the one that this run would write."""
        return self.existing == "skip" and bool(_metadata_in(self.folder))

    def run(self, on_progress: Progress | None) -> dict[str, Any]:
        """Packs and writes the metadata; see `tokenize`."""
        self._check_existing()
        with output_folder(self.folder):
            if self.parts is None:
                report = self.packing.into(self._new_pbin, self._policy).run_here(on_progress, None)
                self._remark_files(report.to_dict())
                return self._describe(_counts([report]), [self._pbin])
            self.plan(self.parts)
            for shard in range(self.parts):
                self._pack_shard(ShardChoice(shard, self.parts), on_progress)
            return self._join(on_progress)

    def plan(self, num_shards: int) -> None:
        """Writes the plan of the shards."""
        self._remark_files(self.shards.plan_here(num_shards))

    def _remark_files(self, report: Mapping[str, Any]) -> None:
        """Reports the files that were read, if others are not."""
        # Metadata files are left out: every described dataset has files that describe it.
        others = [file for file in report["ignored"] if file["reason"] != "metadata"]
        if not others:
            return
        split = self.packing.config.settings.split
        read = _listed(report["sources"], report["num_sources"])
        ignored = [f"{file['path']} ({file['reason']})" for file in others]
        of_split = "" if split in (None, "all") else f" of the split {split}"
        self.remark(f"read{of_split}: {read}; not read: {_listed(ignored, len(ignored))}")

    def pack_shard(self, chosen: ShardChoice, on_progress: Progress | None) -> PackReport:
        """Packs one shard into the folder of the shards.

        Raises:
            ConfigError: If the number of shards is not that of ``parts``.
            PacktokError: If the plan in the folder is that of other datasets or options.
        """
        if self.parts is not None and chosen.num_shards not in (None, self.parts):
            raise ConfigError(
                f"--shard: is one of {chosen.num_shards}, but --parts is {self.parts}; give the same number"
            )
        number = self.parts or chosen.num_shards
        return self._pack_shard(dataclasses.replace(chosen, num_shards=number), on_progress)

    def _pack_shard(self, chosen: ShardChoice, on_progress: Progress | None) -> PackReport:
        if self.parts is not None and self.existing == "replace":
            # Parts are replaced one by one. Until the last part, the folder mixes two datasets, so it must
            # not be complete.
            self._remove_metadata()
        return self.shards.run_here(on_progress, chosen)

    def finish(self, on_progress: Progress | None) -> dict[str, Any]:
        """Joins the shards, or lists them if they are the parts, and writes the metadata; see `tokenize`.

        Raises:
            FileExistsError: If the folder is complete already and ``existing`` is ``"error"``.
            PacktokError: If shards are missing, damaged, or of other datasets or options, if more documents
                are rejected than ``max_rejects`` allows, or as in `tokenize`.
        """
        if self.existing == "error":
            refuse_complete(self.folder)
        self._check_existing()
        # Rejects shards of another command, with which the counts and the metadata would be wrong.
        self.shards.plan_here(self.parts or read_plan(self.outdir).num_shards)
        return self._join(on_progress)

    def _join(self, on_progress: Progress | None) -> dict[str, Any]:
        """Joins or lists the shards of the plan in the folder, and writes the metadata."""
        limit = self.packing.config.max_rejects
        paths = _packtok.list_shards(os.fspath(self.outdir), limit)
        if self.parts is None:
            join(
                self.outdir,
                self._new_pbin,
                existing=self._policy,
                max_rejects=limit,
                on_progress=on_progress,
            )
            files = [self._pbin]
        else:
            write_manifest(paths, self.folder / f"{self.file_prefix}.jsonl", existing="replace")
            files = [path.name for path in paths]
        shards = self.shards
        return self._describe(_counts([_report_of_shard(shards, path) for path in paths]), files)

    @property
    def _pbin(self) -> str:
        return f"{self.file_prefix}.pbin"

    @property
    def _new_pbin(self) -> Path:
        """The pbin to write: a second file if the pbin of a complete dataset must stay until the end."""
        new, pbin = self.folder / f"{self._pbin}.new", self.folder / self._pbin
        # A run that was killed while it renamed files leaves the new file without metadata.
        is_replacing = self.existing == "replace" and (_metadata_in(self.folder) or os.path.lexists(new))
        return new if is_replacing else pbin

    @property
    def _policy(self) -> Literal["skip", "replace"]:
        # A file that an interrupted run published is kept if it equals the one that this run would write.
        return "replace" if self.existing == "replace" else "skip"

    def _check_existing(self, files: Sequence[Mapping[str, Any]] | None = None) -> None:
        """Rejects a complete folder that cannot be kept or replaced.

        Args:
            files: The token files of this run, to compare with those of the folder; ``None`` before that.
        """
        if self.existing == "error" or not _metadata_in(self.folder):
            return
        metadata = load_metadata(self.folder)
        if metadata.tokenized_info is None:
            raise FileExistsError(
                17,
                "describes a dataset of texts, which is not replaced; choose another --output-dir "
                "(output_dir)",
                str(metadata.path),
            )
        if self.existing == "skip":
            self._compare(
                {"file_prefix": metadata.tokenized_info.file_prefix, **_details_of(metadata)}, files
            )

    def _compare(self, details: Mapping[str, Any], files: Sequence[Mapping[str, Any]] | None) -> None:
        """Compares the recorded facts of a complete dataset with those that this run would record."""
        expected = {
            "parents": self._parents,
            "file_prefix": self._written_prefix,
            "tokenizer_fingerprint": self.packing.lookup.tokenizer.fingerprint,
            **({} if files is None else {"files": list(files)}),
        }
        for name, value in expected.items():
            if details.get(name) != value:
                raise PacktokError(
                    f"{self.folder}: the existing dataset differs from what this command would write: "
                    f"{name} is {_value_text(details.get(name))}, expected {_value_text(value)}; set "
                    "--existing (existing) to replace, or choose another --output-dir (output_dir)"
                )

    @property
    def _parents(self) -> list[dict[str, str]]:
        return [
            {"name": dataset.name, "content_field": dataset.metadata.content_field}
            for dataset in self.selected
        ]

    @property
    def _written_prefix(self) -> str:
        return self.file_prefix if self.parts is None else _packtok.SHARD_PREFIX

    def _remove_metadata(self) -> None:
        """Removes the metadata of the dataset that is replaced: without it, the folder is not complete."""
        for name in _metadata_in(self.folder):
            (self.folder / name).unlink(missing_ok=True)

    def _put_in_place(self) -> None:
        """Renames the files of a new pbin over those of the dataset that it replaces."""
        new, old = self._new_pbin, self.folder / self._pbin
        self._remove_metadata()
        if new == old:
            return
        for ending in ("", ".tokenizer.json", _packtok.REJECTS_SUFFIX):
            if os.path.lexists(f"{new}{ending}"):
                os.replace(f"{new}{ending}", f"{old}{ending}")
            else:
                Path(f"{old}{ending}").unlink(missing_ok=True)

    def _describe(self, counts: Mapping[str, Any], files: Sequence[str]) -> dict[str, Any]:
        """Writes the tokenizer and the metadata of finished token files, unless the folder has them."""
        keeps = self.keeps
        if self.existing == "replace":
            self._put_in_place()
        tokenizer = self.packing.lookup.tokenizer
        details = {
            **counts,
            **_text([self.folder / name for name in files]),
            "files": [_file(self.folder / name) for name in files],
            "packtok_version": _packtok.__version__,
            "tokenizer_fingerprint": tokenizer.fingerprint,
            "tokenizer_config": _without_vocabulary(json.loads(tokenizer.to_json())),
            "parents": self._parents,
        }
        if keeps:
            existing = load_metadata(self.folder)
            self._check_existing(details["files"])
            _packtok.publish_bytes(self.folder / TOKENIZER_FILE, tokenizer.to_json())
            return {**existing.to_dict(), "details": _details_of(existing)}
        _packtok.publish_bytes(self.folder / TOKENIZER_FILE, tokenizer.to_json())
        metadata = _metadata(self.selected, self.packing, self.tokenizer, self._written_prefix)
        save_details(self.metadata_path, details)
        metadata.save(self.metadata_path)
        return {**metadata.to_dict(), "details": details}


def prepare_tokenization(
    datasets: str | Sequence[str],
    tokenizer: str | None = None,
    output_dir: StrPath = ".",
    *,
    file_prefix: str = "tokenized",
    token_dtype: str | None = None,
    parts: int | None = None,
    outdir: StrPath | None = None,
    existing: Existing = "error",
    remark: Remark = lambda _: None,
    **options: Any,
) -> Tokenization:
    """Finds the datasets and loads the tokenizer, and writes nothing.

    Args:
        datasets: As in `tokenize`.
        tokenizer: As in `tokenize`.
        output_dir: As in `tokenize`.
        file_prefix: As in `tokenize`.
        token_dtype: As in `tokenize`.
        parts: As in `tokenize`.
        outdir: Folder of the shards. Default: the pbin's name plus ``.shards``; with ``parts``, the output
            folder, and no other.
        existing: As in `tokenize`.
        remark: As in `tokenize`.
        **options: As in `tokenize`.

    Raises:
        ConfigError: As in `tokenize`.
        FileNotFoundError: As in `tokenize`.
    """
    folder = Path(output_dir)
    selected = [select(name, remark) for name in ([datasets] if isinstance(datasets, str) else datasets)]
    if not selected:
        raise ConfigError("no dataset given; give at least one metadata file or folder")
    if options.get("source") is None:
        for dataset in selected:
            refuse_several_configs(dataset)
    output = folder / f"{file_prefix}.pbin"
    shards = folder if parts is not None else Path(f"{output}.shards")
    if outdir is not None:
        if parts is not None and os.path.abspath(outdir) != os.path.abspath(folder):
            raise ConfigError(
                f"--outdir: is {os.fspath(outdir)}, but with --parts the shards are in --output-dir; leave "
                "it out"
            )
        shards = Path(outdir)
    with tokenizer_or_default(tokenizer) as named:
        packing = _packing(selected, named, output, {**options, "existing": existing})
    _check_width(packing, token_dtype)
    return Tokenization(tuple(selected), packing, named, folder, file_prefix, parts, shards, existing, remark)


@contextlib.contextmanager
def tokenizer_or_default(tokenizer: str | None) -> Iterator[str]:
    """Yields the name of the tokenizer to load; errors of loading the default name it.

    Raises:
        TokenizerError: Instead of that of the body, if ``tokenizer`` is ``None``.
    """
    try:
        yield DEFAULT_TOKENIZER if tokenizer is None else tokenizer
    except TokenizerError as error:
        if tokenizer is not None:
            raise
        raise TokenizerError(
            f"--tokenizer: is not given, and the default, {DEFAULT_TOKENIZER}, cannot be loaded: {error}; or "
            "choose another with --tokenizer, such as gpt2, which is built in"
        ) from error.__cause__


def name_of_tokenizer(tokenizer: str | None) -> str:
    """Returns the name of the tokenizer to load. Loads the default, so that an error can name it."""
    with tokenizer_or_default(tokenizer) as name:
        if tokenizer is None:
            find_tokenizer(name)
        return name


def refuse_complete(output_dir: StrPath) -> None:
    """Raises a `FileExistsError` if the folder has metadata, and so is complete."""
    folder = Path(output_dir)
    for name in _metadata_in(folder):
        raise FileExistsError(
            17,
            "the folder is a complete dataset already; choose another --output-dir (output_dir), or set "
            "--existing (existing) to skip or replace",
            str(folder / name),
        )


def _metadata_in(folder: Path) -> list[str]:
    """Returns the names of the metadata files in a folder; the first one is the file that is read."""
    return [name for name in METADATA_NAMES if (folder / name).exists()]


def _value_text(value: Any) -> str:
    """Formats a value of the metadata for a message."""
    if isinstance(value, list):
        return ", ".join(" ".join(map(str, file.values())) for file in value if isinstance(file, dict))
    return str(value)


def _details_of(metadata: DatasetMetadata) -> dict[str, Any]:
    """Returns packtok's own facts about a dataset that was read from a file."""
    details = {} if metadata.path is None else load_details(metadata.path)
    return {key: value for key, value in details.items() if key != "packtok_metadata"}


def _packing(
    selected: Sequence[Selected], tokenizer: str, output: Path, options: Mapping[str, Any]
) -> PackRun:
    for name in _DETERMINED:
        if name in options:
            raise TypeError(f"packtok.tokenize() has no option {name!r}; the datasets determine it")
    fields = [pattern_of(dataset.metadata.content_field) for dataset in selected]
    source = options.get("source") or _source_of(selected)
    if source not in (None, DATASETS):
        # The documents of other plug-ins are texts, without fields.
        fields = []
    all_options = {
        **options,
        "source": source,
        "split": split_of(options, source),
        "input": [str(dataset.input) if source is None else dataset.plugin_input for dataset in selected],
        "output": output,
        "tokenizer": tokenizer,
        "field": fields[0] if fields else None,
    }
    return prepare(load_config(None, all_options), tuple(fields) if len(set(fields)) > 1 else ())


def split_of(options: Mapping[str, Any], source: str | None) -> str | None:
    """Returns the split of folders to read: `DEFAULT_SPLIT`, unless a split is given or a plug-in reads."""
    chosen: str | None = options.get("split")
    return chosen or (DEFAULT_SPLIT if source is None else None)


def _source_of(selected: Sequence[Selected]) -> str | None:
    """Returns the plug-in that reads the corpora, if they are configs of `datasets`."""
    configs = [dataset for dataset in selected if dataset.is_config]
    if configs and len(configs) < len(selected):
        others = ", ".join(dataset.name for dataset in selected if not dataset.is_config)
        raise ConfigError(
            f"{configs[0].name} is a config of a Hugging Face dataset, but {others} is read as files; "
            "tokenize them separately, or read all with --source datasets"
        )
    return DATASETS if configs else None


def _check_width(packing: PackRun, token_dtype: str | None) -> None:
    if token_dtype is None:
        return
    check_choice("--token-dtype", token_dtype, tuple(BYTES_OF_DTYPE), ConfigError)
    tokenizer = packing.lookup.tokenizer
    if tokenizer.token_bytes > BYTES_OF_DTYPE[token_dtype]:
        raise ConfigError(
            f"--token-dtype is {token_dtype}, too narrow for the {tokenizer.vocab_size:,} ids of "
            f"{tokenizer.name}; give a wider one, or leave it out"
        )


def _listed(names: Sequence[str], number: int) -> str:
    """Returns the first names, and how many there are if there are more."""
    more = f" and {number - FILES_SHOWN:,} more" if number > FILES_SHOWN else ""
    return f"{', '.join(names[:FILES_SHOWN])}{more}"


def _report_of_shard(shards: PackRun, path: Path) -> PackReport:
    marker = _packtok.find_marker(path)
    if marker is None:
        raise PacktokError(f"{path}: its marker has just been removed; run packtok tokenize --join again")
    return shards.report_of(marker)


def _counts(reports: Sequence[PackReport]) -> dict[str, Any]:
    names = ("documents", "tokens", "lines", "packed", "empty", "blank", "rejected", "source_bytes")
    return {name: sum(getattr(report, name) for report in reports) for name in names}


def _text(paths: Sequence[Path]) -> dict[str, Any]:
    """Returns the bytes and tokens of the texts, if all files record them."""
    text = recorded_text_counts(_packtok.PbinReader(path).metadata or {} for path in paths)
    return {} if text is None else {"text": {"bytes": text.bytes, "tokens": text.tokens}}


def _file(path: Path) -> dict[str, Any]:
    reader = _packtok.PbinReader(path)
    return {
        "path": path.name,
        "bytes": path.stat().st_size,
        "documents": len(reader),
        "tokens": reader.num_tokens,
        "trailer_crc32c": reader.trailer_crc32c,
    }


def _metadata(selected: Sequence[Selected], packing: PackRun, tokenizer: str, prefix: str) -> DatasetMetadata:
    loaded_tokenizer = packing.lookup.tokenizer
    return DatasetMetadata(
        name=f"{_name_of_mixture(selected)}-tokenized_{loaded_tokenizer.name}",
        description="Tokenized dataset created with packtok",
        date_downloaded=datetime.date.today().isoformat(),
        download_source="Tokenized by packtok",
        data_content="text",
        content_field="NA",
        tokenized_info=TokenizedInfo(
            # A path of this machine would mean nothing elsewhere, and tokenizer.json is in the folder.
            tokenizer=loaded_tokenizer.name if os.path.exists(tokenizer) else tokenizer,
            file_prefix=prefix,
            dtype=f"uint{8 * loaded_tokenizer.token_bytes}",
            file_extension="pbin",
            parent_datasets=[dataset.name for dataset in selected],
            vocab_size=loaded_tokenizer.vocab_size,
            tokenizers_version=_packtok.TOKENIZERS_VERSION,
        ),
    )


def _name_of_mixture(selected: Sequence[Selected]) -> str:
    """Returns the names of the datasets, each once; only the first ones if there are many."""
    names = list(dict.fromkeys(dataset.metadata.name for dataset in selected))
    more = len(names) - _MAX_NAMED
    return " + ".join([*names[:_MAX_NAMED], *([f"{more} more"] if more > 0 else [])])


def _without_vocabulary(config: dict[str, Any]) -> dict[str, Any]:
    """Returns a tokenizer.json without its entries and merges, which are in the file itself."""
    model = {key: value for key, value in config["model"].items() if key not in ("vocab", "merges")}
    return {**config, "model": model}
