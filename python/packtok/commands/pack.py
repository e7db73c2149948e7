"""The function of `packtok pack`: config and tokenizer in, a pbin and a report out.

The work itself is the compiled module's; here the config is turned into its arguments, and its counts into a
`PackReport` that holds nothing secret.
"""

import dataclasses
import difflib
import errno
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Unpack

from packtok import _packtok
from packtok.commands import Progress
from packtok.config import ConfigSource, PackConfig, load_config
from packtok.config.keywords import PackOptions
from packtok.config.options import OPTIONS, Settings
from packtok.config.redact import Redactor
from packtok.distributed import ShardChoice, find_shard
from packtok.errors import ConfigError
from packtok.stores import is_url
from packtok.tokenizer import FoundTokenizer, check_special_tokens, default_eod, find_tokenizer


@dataclass(frozen=True)
class PackReport:
    """What packing did; ``lines == packed + empty + blank + rejected``.

    The three paths are as they are, for use; the representation, the warnings and `to_dict` hold no secrets.
    """

    output: str = dataclasses.field(repr=False)
    tokenizer_path: str = dataclasses.field(repr=False)
    rejects_path: str | None = dataclasses.field(repr=False)
    shard_index: int | None
    num_shards: int | None
    documents: int
    tokens: int
    lines: int
    packed: int
    empty: int
    blank: int
    rejected: int
    eods_in_text: int
    file_bytes: int
    data_bytes: int
    token_bytes: int
    source_bytes: int
    num_sources: int
    stopped_early: bool
    skipped_existing: bool
    warnings: tuple[str, ...]
    resumed_bytes: int
    removed_temporary: tuple[str, ...]
    seconds: float
    num_cpus: int
    engine: str
    redactor: Redactor = dataclasses.field(default=Redactor(), repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """All counts and texts as JSON can hold them, secrets replaced."""
        names = [field.name for field in dataclasses.fields(self) if field.name != "redactor"]
        public: dict[str, Any] = self.redactor.tree({name: getattr(self, name) for name in names})
        return {name: list(item) if isinstance(item, tuple) else item for name, item in public.items()}


@dataclass(frozen=True)
class Packing:
    """A packing run that is ready to start: everything is checked and the tokenizer is loaded."""

    config: PackConfig
    found: FoundTokenizer
    eod_token: str

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know before it starts: keys without effect, remarks on the tokenizer."""
        notes = [*_ignored_keys(self.config), *self.found.warnings, *self.found.tokenizer.notes]
        if self.index_path != self.config.settings.index_path:
            notes.append(
                f"settings.index_path: no such file: {self.config.settings.index_path}; packtok needs no "
                "index and packs the whole corpus"
            )
        return tuple(self.config.redactor(note) for note in notes)

    @property
    def index_path(self) -> str | None:
        """The raw index whose entries are packed; ``None`` also where the one named is not there."""
        path = self.config.settings.index_path
        return path if path is not None and os.path.lexists(path) else None

    @property
    def spec(self) -> str:
        """The options of the compiled module, as JSON."""
        return self.config.spec(eod=self.eod_token, index_path=self.index_path)

    def run(self, on_progress: Progress | None = None, shard: ShardChoice | None = None) -> PackReport:
        """Packs, writes the report file if one is asked for, and returns the report.

        Args:
            on_progress: As in `pack`.
            shard: The part of the corpus that is packed, into the folder that the output is then; or all.
        """
        settings, redactor = self.config.settings, self.config.redactor
        with redactor.guard():
            check_report(settings)
            if shard is not None:
                _refuse_file_as_folder(settings.dst_path)
            if is_url(settings.dst_path):
                from packtok.store_packing import pack_into_store

                report = pack_into_store(self, on_progress, shard)
            else:
                report = self.run_here(on_progress, shard)
            if settings.report is not None:
                _write_report(Path(settings.report), report)
        return report

    def run_here(self, on_progress: Progress | None, shard: ShardChoice | None) -> PackReport:
        """Packs into a file of this machine."""
        tokenizer = self.found.tokenizer
        if shard is None:
            counts = _packtok.pack(self.spec, tokenizer, on_progress)
        else:
            counts = _packtok.pack_shard(self.spec, tokenizer, on_progress, **dataclasses.asdict(shard))
        return _report(counts, self.notes, self.config.redactor)

    def report_of(self, marker: Mapping[str, Any]) -> PackReport:
        """The report of a shard that is complete already, from what its marker says."""
        counts = _packtok.report_of_marker(self.spec, self.found.tokenizer, json.dumps(marker))
        return _report(counts, self.notes, self.config.redactor)

    def into(self, output: Path, existing: Literal["error", "skip", "replace"]) -> "Packing":
        """The same, into another output."""
        settings = dataclasses.replace(
            self.config.settings, dst_path=os.fspath(output), existing=existing, report=None
        )
        return dataclasses.replace(self, config=dataclasses.replace(self.config, settings=settings))

    def plan(self, num_shards: int) -> dict[str, Any]:
        """Writes the plan of so many shards into the folder that the output is; returns what it says."""
        if is_url(self.config.settings.dst_path):
            from packtok.store_packing import plan_into_store

            return plan_into_store(self, num_shards)
        with self.config.redactor.guard():
            _refuse_file_as_folder(self.config.settings.dst_path)
            report = _packtok.plan_shards(self.spec, self.found.tokenizer, None, num_shards=num_shards)
            public: dict[str, Any] = self.config.redactor.tree(report)
            return public


def _ignored_keys(config: PackConfig) -> list[str]:
    """One note per reason, naming all keys that have no effect for it."""
    keys_of: dict[str, list[str]] = {}
    for key, reason in config.ignored:
        keys_of.setdefault(reason, []).append(key)
    return [
        f"{', '.join(keys)} {'has' if len(keys) == 1 else 'have'} no effect: {reason}"
        for reason, keys in keys_of.items()
    ]


def prepare(config: ConfigSource | None = None, overrides: Mapping[str, Any] | None = None) -> Packing:
    """Checks the config, then loads the tokenizer and what depends on it.

    Args:
        config: As in `packtok.config.load_config`.
        overrides: Values by dotted key, which go before those of the config.

    Raises:
        ConfigError: If a key or a value is wrong.
        TokenizerError: If the tokenizer cannot be had.
    """
    checked = load_config(config, overrides)
    with checked.redactor.guard():
        found = find_tokenizer(checked.tokenizer.config.pretrained_model_name_or_path)
        check_special_tokens(found, checked.tokenizer.config)
        return Packing(checked, found, checked.settings.eod_token or default_eod(found))


def pack(
    config: ConfigSource | None = None,
    /,
    *,
    shard: str | int | None = None,
    on_progress: Progress | None = None,
    **options: Unpack[PackOptions],
) -> PackReport:
    """Packs a corpus, or one shard of it, into a pbin and returns what was done.

    Args:
        config: A Modalities pack config: a YAML file's path, a mapping of that shape or a `PackConfig`. It
            may be left out where the options say everything.
        shard: ``"k/N"``, ``k`` (of as many as the plan in the output folder says) or ``"auto"``, which asks
            Slurm: only part k of the corpus, from 0, is packed, and into the folder named as output.
        on_progress: Called about ten times a second with the ints ``bytes_read``, ``total_bytes``,
            ``documents``, ``tokens`` and ``resumed_bytes`` (those of ``bytes_read`` that an earlier run had
            packed).
        **options: What the flags of ``packtok pack`` say, under the same names; ``None`` counts as not given.

    Raises:
        ConfigError: If a key or a value is wrong.
        DocumentError: If a document is bad and ``on_bad_document`` is ``"fail"``.
        FileExistsError: If the output exists and ``existing`` is ``"error"``.
        OSError: If a file cannot be read or written; there is then no file under the output's name.
        PacktokError: If more documents are rejected than ``max_rejects`` allows, or all of them; if another
            run is writing the output, or began it with other options.

    A run that ends before its time leaves what it has done beside the output; the same call goes on there.

    Example:
        >>> packtok.pack(input="corpus.jsonl", output="train.pbin", tokenizer="gpt2").tokens
        23765
    """
    chosen = None if shard is None else find_shard(shard)
    return prepare(config, option_overrides(options)).run(on_progress, chosen)


def option_overrides(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options by the names of the flags as values by dotted config key, without those that are ``None``."""
    for name in options:
        if name not in OPTIONS:
            near = difflib.get_close_matches(name, OPTIONS, n=1)
            raise TypeError(
                f"pack() has no option {name!r}" + (f"; did you mean {near[0]!r}?" if near else "")
            )
    return {_override_key(name): value for name, value in options.items() if value is not None}


def _override_key(name: str) -> str:
    # A name of a tokenizer replaces a section that is a name too.
    return "tokenizer" if name == "tokenizer" else OPTIONS[name].key


def _report(counts: Mapping[str, Any], notes: tuple[str, ...], redactor: Redactor) -> PackReport:
    values = dict(counts)
    values["warnings"] = notes + tuple(redactor(text) for text in counts["warnings"])
    values["removed_temporary"] = tuple(redactor(text) for text in counts["removed_temporary"])
    return PackReport(**values, redactor=redactor)


def check_report(settings: Settings) -> None:
    """Refuses a report that could not be written after hours of packing, or would be written over the corpus.

    Raises:
        ConfigError: If it is a folder, where the output goes, or there and no report.
        FileNotFoundError: If its folder is not there.
    """
    if settings.report is None:
        return
    report = Path(settings.report)
    if not report.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "the folder of the report does not exist", str(report.parent))
    if report.is_dir():
        raise ConfigError(f"--report: {report} is a folder; give a file in it")
    beside = ("", ".tokenizer.json", ".rejects.jsonl", ".partial")
    if any(report.absolute() == Path(f"{settings.dst_path}{end}").absolute() for end in beside):
        raise ConfigError(f"--report: {report} is a path of the output; choose another file")
    if os.path.lexists(report) and not _is_report(report):
        raise ConfigError(
            f"--report: {report} exists and is not a packtok report, so it is not replaced; choose another"
        )


def _is_report(path: Path) -> bool:
    """Whether a file is empty, or holds what `_write_report` writes."""
    if not path.is_file():
        # A device such as /dev/null, or a link that leads nowhere.
        return False
    with path.open("rb") as file:
        start = file.read(4096)
    return start == b"" or start.startswith(b'{\n  "output": ')


def _refuse_file_as_folder(output: str) -> None:
    if os.path.exists(output) and not os.path.isdir(output):
        raise ConfigError(f"--output: {output} is a file; give a folder for the shards")


def _write_report(path: Path, report: PackReport) -> None:
    text = json.dumps(report.to_dict(), indent=2) + "\n"
    _packtok.publish_bytes(path, text.encode("ascii"))
