"""Implements ``packtok tokenize --to cepe-npy``: from a corpus to one NPY file for each of its files.

The missing files are packed into one pbin, which records where documents came from, in a hidden folder of the
output; the compiled module then writes the NPY files from it. Packing resumes after a kill, and each NPY file
is published whole, before its marker.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from packtok import _packtok
from packtok.catalog.names import Remark
from packtok.commands.join import join
from packtok.commands.npy_folder import FORMAT, SUMMARY_NAME, checked_dtype
from packtok.commands.output_folder import output_folder
from packtok.config import load_config
from packtok.config.options import OPTIONS
from packtok.distributed import ShardChoice
from packtok.errors import ConfigError, PacktokError
from packtok.packer.pack_run import PackRun, prepare
from packtok.packer.report import PackReport
from packtok.progress import Progress
from packtok.resuming import KEPT_NOTE, explaining
from packtok.shard_folder import read_plan
from packtok.sources import StrPath
from packtok.tokenizer.find import TOKENIZER_FILE, TokenizerLookup, find_tokenizer

Existing = Literal["error", "skip", "replace"]

SHARDS_NAME = "tokens.shards"
_WORK_NAME = ".packtok-tokens"
_PACKED_NAME = "tokens.pbin"
_FILES_NAME = "files.json"
# The names of BOS and EOS in CEPE's tokenizers, used if no file names others.
_BOS, _EOS = "<s>", "</s>"

_FIXED = {
    "add_special_tokens": "CEPE's tokens are those without the post-processor",
    "empty_document": "an empty text becomes BOS and EOS",
    "origins": "the files are divided by the origins, which are always recorded",
    "max_documents": "later files would be incomplete",
    "max_tokens": "later files would be incomplete",
    "source": "a source plug-in has no files",
}


@dataclass(frozen=True)
class NpyTokenization:
    """A run that is ready to start: the files are found and the tokenizer is loaded."""

    packing: PackRun
    files: tuple[Mapping[str, Any], ...]
    """Each with ``path``, ``relative``, ``bytes`` and ``npy``."""
    plan: Mapping[str, Any]
    """The content that all markers share."""
    folder: Path
    outdir: Path
    """The folder of the shards."""
    key: str
    """Names the hidden folder of this command's unfinished work."""
    existing: Existing = "error"

    @property
    def summary_path(self) -> Path:
        """The file that is written last."""
        return self.folder / SUMMARY_NAME

    @property
    def shards(self) -> PackRun:
        """The packing of a shard into the folder of the shards."""
        return self.packing.into(self.outdir, "replace" if self.existing == "replace" else "error")

    def run(self, on_progress: Progress | None) -> dict[str, Any]:
        """Tokenizes the files that are missing in the output and returns the counts of all."""
        missing = self._missing()
        number = len(missing)
        by_name = {file["relative"]: file for file in self.files}
        while missing:
            missing_names = {file["relative"] for file in missing}
            names = self._unfinished()
            if names is None or not missing_names.intersection(names) or not by_name.keys() >= set(names):
                self._discard()
                names = [file["relative"] for file in missing]
            files = [by_name[name] for name in names]
            with output_folder(self._work), self._listing(names):
                self._packing_of(files).run_here(on_progress, None)
                self._split(files, missing_names, on_progress)
            missing = [file for file in missing if file["relative"] not in set(names)]
        return self._finish(number)

    @contextlib.contextmanager
    def _listing(self, names: Sequence[str]) -> Iterator[None]:
        """Lists the files that the block packs, in the hidden folder, as long as it has progress there."""
        path = self._work / _FILES_NAME
        _packtok.publish_bytes(path, json.dumps(names).encode())
        try:
            yield
        except BaseException:
            if not any(other != path for other in self._work.glob("*")):
                path.unlink(missing_ok=True)
            raise

    def pack_shard(self, chosen: ShardChoice, on_progress: Progress | None) -> PackReport:
        """Tokenizes one shard into the folder of the shards."""
        self.outdir.mkdir(parents=True, exist_ok=True)
        return self.shards.run_here(on_progress, chosen)

    def write_plan(self, num_shards: int) -> None:
        """Writes the plan of the shards."""
        self.outdir.mkdir(parents=True, exist_ok=True)
        self.shards.plan_here(num_shards)

    def finish(self, on_progress: Progress | None) -> dict[str, Any]:
        """Writes the files from the shards, all of which must be complete.

        Raises:
            PacktokError: If shards are missing, damaged, or of other files or options.
        """
        # Rejects shards of another command, which would give other files.
        self.shards.plan_here(read_plan(self.outdir).num_shards)
        missing = self._missing()
        if missing:
            self._work.mkdir(parents=True, exist_ok=True)
            join(
                self.outdir,
                self._packed,
                existing="skip",
                max_rejects=self.packing.config.max_rejects,
                on_progress=on_progress,
            )
            missing_names = {file["relative"] for file in missing}
            self._split(self.files, missing_names, on_progress)
        return self._finish(len(missing))

    @property
    def _work(self) -> Path:
        return self.folder / _WORK_NAME / self.key

    @property
    def _packed(self) -> Path:
        return self._work / _PACKED_NAME

    def _unfinished(self) -> list[str] | None:
        """Returns the files of an unfinished run of the same command."""
        try:
            names = json.loads((self._work / _FILES_NAME).read_bytes())
        except (FileNotFoundError, ValueError):
            return None
        return names if isinstance(names, list) else None

    def _discard(self) -> None:
        if self._work.exists():
            shutil.rmtree(self._work)

    def _packing_of(self, files: Sequence[Mapping[str, Any]]) -> PackRun:
        """Returns the packing of some files into the hidden folder."""
        packing = self.packing.into(self._packed, "skip")
        # Lists and globs are expanded already, and a name may start with @.
        inputs = tuple(_as_input(file["path"]) for file in files)
        settings = dataclasses.replace(packing.config.settings, src_path=inputs, ignore=(), split=None)
        return dataclasses.replace(packing, config=dataclasses.replace(packing.config, settings=settings))

    def _split(
        self, files: Sequence[Mapping[str, Any]], names: set[str], on_progress: Progress | None
    ) -> None:
        """Writes the NPY files of those packed files whose relative path is in ``names``."""
        _packtok.publish_bytes(self.folder / TOKENIZER_FILE, self.packing.lookup.tokenizer.to_json())
        with explaining(lambda: KEPT_NOTE):
            _packtok.split_tokens(
                pbin=self._packed,
                targets=[
                    (i, file["relative"], self.folder / file["npy"] if file["relative"] in names else None)
                    for i, file in enumerate(files)
                ],
                dtype=self.plan["dtype"],
                replace=self.existing == "replace",
                plan_json=json.dumps(self.plan),
                on_progress=on_progress,
            )
        self._discard()

    def _finish(self, written: int) -> dict[str, Any]:
        """Writes the summary of the folder and returns the counts of this run's files."""
        if self._work.parent.exists():
            self._discard()
            # rmdir fails if another command has unfinished work in the folder.
            with contextlib.suppress(OSError):
                self._work.parent.rmdir()
        markers = [_marker(self.folder / file["npy"]) for file in self.files]
        summary = {
            "format": FORMAT,
            "plan": self.plan,
            "files": len(markers),
            "documents": sum(marker["documents"] for marker in markers),
            "tokens": sum(marker["tokens"] for marker in markers),
            "rejected": sum(marker["rejected"] for marker in markers),
        }
        _packtok.publish_bytes(self.summary_path, json.dumps(summary, indent=1).encode() + b"\n")
        return {
            "output_dir": os.fspath(self.folder),
            "files": len(markers),
            "written": written,
            "kept": len(markers) - written,
            "documents": summary["documents"],
            "tokens": summary["tokens"],
            "file_bytes": sum(marker["file_bytes"] for marker in markers),
            "rejected": summary["rejected"],
        }

    def _missing(self) -> list[Mapping[str, Any]]:
        """Returns the files that are not complete.

        Raises:
            PacktokError: If one was made with other options or from another file.
        """
        if self.existing == "replace":
            return list(self.files)
        return [file for file in self.files if not self._is_complete(file)]

    def _is_complete(self, file: Mapping[str, Any]) -> bool:
        path = self.folder / file["npy"]
        marker = _packtok.find_token_marker(path)
        if marker is None or not path.exists():
            return False
        remedy = "set --existing (existing) to replace, or choose another --output-dir (output_dir)"
        plan = json.dumps(self.plan)
        if (difference := _packtok.plan_difference(json.dumps(marker["plan"]), plan)) is not None:
            option, value, expected = difference
            raise PacktokError(
                f"{path}: the existing file was written with another {option}: {value}, expected {expected}; "
                f"{remedy}"
            )
        source = marker["source"]
        if (source["path"], source["bytes"]) != (file["relative"], file["bytes"]):
            raise PacktokError(
                f"{path}: the existing file was made from {source['path']} of {source['bytes']:,} bytes, and "
                f"{file['path']} has {file['bytes']:,}; {remedy}"
            )
        if path.stat().st_size != marker["file_bytes"]:
            raise PacktokError(
                f"{path}: the existing file has {path.stat().st_size:,} bytes, and its marker records "
                f"{marker['file_bytes']:,}; it is damaged; {remedy}"
            )
        return True


def prepare_npy_tokenization(
    inputs: Sequence[str],
    tokenizer: str | None,
    output_dir: StrPath,
    *,
    dtype: str | None = None,
    outdir: StrPath | None = None,
    existing: Existing = "error",
    remark: Remark = lambda _: None,
    **options: Any,
) -> NpyTokenization:
    """Finds the files and loads the tokenizer, and writes nothing.

    Args:
        inputs: Files, folders, globs and ``@LIST``.
        tokenizer: As in `packtok.pack`.
        output_dir: The folder to write to.
        dtype: ``"int64"`` or ``"uint32"``.
        outdir: Folder of the shards. Default: ``tokens.shards`` in the output folder.
        existing: Complete files of the same plan are kept, unless it is ``"replace"``.
        remark: Receives remarks on the tokenizer.
        **options: Options of `packtok.pack`.

    Raises:
        ConfigError: If an argument is invalid, or the tokenizer has no BOS or EOS.
    """
    if tokenizer is None:
        raise ConfigError("--tokenizer: is missing; --to cepe-npy needs it")
    element = checked_dtype(dtype)
    for name, reason in _FIXED.items():
        if options.get(name) is not None:
            raise ConfigError(f"{_flag(name)}: cannot be set with --to cepe-npy: {reason}; leave it out")
    pack_options = {name: value for name, value in options.items() if value is not None}
    lookup = find_tokenizer(tokenizer, bool(pack_options.get("add_special_tokens_from_config")))
    pack_options["bos"] = pack_options.get("bos") or _bos(lookup)
    pack_options["eod"] = pack_options.get("eod") or _eos(lookup)
    folder = Path(output_dir)
    files = _packtok.npy_files(
        list(inputs),
        format=pack_options.get("format"),
        ignore=[os.fspath(pattern) for pattern in pack_options.get("ignore") or ()],
        split=pack_options.get("split"),
        root=pack_options.get("root"),
    )
    selection = [str(pack_options.get(name)) for name in _SELECTION]
    key = hashlib.sha256(json.dumps([os.getcwd(), list(inputs), *selection]).encode()).hexdigest()[:16]
    all_options = {
        **pack_options,
        "input": list(inputs),
        "output": folder / _WORK_NAME / key / _PACKED_NAME,
        "tokenizer": tokenizer,
        "existing": existing,
        "add_special_tokens": False,
        "empty_document": "keep",
        "enclose_all": True,
        "origins": True,
    }
    packing = prepare(load_config(None, all_options))
    for note in packing.notes:
        remark(note)
    plan = _packtok.token_plan(packing.spec, packing.lookup.tokenizer, element)
    shards = Path(outdir) if outdir is not None else folder / SHARDS_NAME
    return NpyTokenization(packing, tuple(files), plan, folder, shards, key, existing)


# Options that choose the files.
_SELECTION = ("format", "ignore", "split", "root")


def _bos(lookup: TokenizerLookup) -> str:
    named = lookup.bos_token or lookup.tokenizer.bos_token
    return _named(lookup, named, _BOS, "--bos", "BOS")


def _eos(lookup: TokenizerLookup) -> str:
    return _named(lookup, lookup.eos_token, _EOS, "--eod", "EOS")


def _named(lookup: TokenizerLookup, named: str | None, usual: str, flag: str, role: str) -> str:
    """Returns the token of a role: the one that the files name, otherwise the usual one if it is special."""
    if named is not None:
        return named
    special = [token for token, _ in lookup.tokenizer.special_tokens]
    if usual in special:
        return usual
    raise ConfigError(
        f"{flag}: is missing, and tokenizer {lookup.tokenizer.name} has no {role} token and no special token "
        f"{usual}; special tokens are {', '.join(special) or 'none'}"
    )


def _flag(name: str) -> str:
    flags = OPTIONS[name].flags
    return flags[0] if flags else f"--{name.replace('_', '-')}"


def _as_input(path: str) -> str:
    return f"./{path}" if path.startswith("@") else path


def _marker(path: Path) -> dict[str, Any]:
    marker = _packtok.find_token_marker(path)
    if marker is None:
        raise PacktokError(f"{path}: its marker has just been removed; run the same command again")
    return marker
