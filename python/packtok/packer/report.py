"""The report of a packing run, and the file that it is written to if ``report`` is set."""

import dataclasses
import errno
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packtok import _packtok
from packtok.config.options import Settings
from packtok.config.redact import Redactor
from packtok.errors import ConfigError
from packtok.remedies import worded_here


@dataclass(frozen=True)
class PackReport:
    """The result of packing; ``lines == packed + empty + blank + rejected``.

    The three paths are unchanged, so that callers can open them. ``repr``, ``warnings`` and `to_dict` contain
    no secrets.
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
    sources: tuple[str, ...] = dataclasses.field(repr=False)
    """The first 1,000 files that were read, or parts of a plug-in's corpora."""
    ignored: tuple[Mapping[str, str], ...] = dataclasses.field(repr=False)
    """Files that the inputs stand for and that were not read, each with ``path`` and ``reason``."""
    source: str | None
    stopped_early: bool
    skipped_existing: bool
    warnings: tuple[str, ...]
    resumed_bytes: int
    removed_temporary: tuple[str, ...]
    seconds: float
    num_cpus: int
    engine: str
    redactor: Redactor = dataclasses.field(default=Redactor(), repr=False, compare=False)

    @classmethod
    def of(cls, counts: Mapping[str, Any], notes: tuple[str, ...], redactor: Redactor) -> "PackReport":
        """Returns the report for the counts of the compiled module, whose warnings follow ``notes``."""
        values = dict(counts)
        values["warnings"] = notes + tuple(worded_here(redactor(text)) for text in counts["warnings"])
        values["sources"] = tuple(counts["sources"])
        values["ignored"] = tuple(counts["ignored"])
        values["removed_temporary"] = tuple(redactor(text) for text in counts["removed_temporary"])
        return cls(**values, redactor=redactor)

    def to_dict(self) -> dict[str, Any]:
        """Returns all counts and texts as JSON-serializable values, with secrets replaced."""
        names = [field.name for field in dataclasses.fields(self) if field.name != "redactor"]
        public: dict[str, Any] = self.redactor.tree({name: getattr(self, name) for name in names})
        return {name: list(item) if isinstance(item, tuple) else item for name, item in public.items()}


def check_report(settings: Settings) -> None:
    """Checks before packing that the report can be written without overwriting other data.

    Raises:
        ConfigError: If the path is a folder, belongs to the output, or is an existing file but not a report.
        FileNotFoundError: If its folder does not exist.
    """
    if settings.report is None:
        return
    report = Path(settings.report)
    if not report.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "the folder of the report does not exist", str(report.parent))
    if report.is_dir():
        raise ConfigError(f"--report: {report} is a folder; give a file in it")
    suffixes = ("", ".tokenizer.json", ".rejects.jsonl", ".partial")
    if any(report.absolute() == Path(f"{settings.dst_path}{end}").absolute() for end in suffixes):
        raise ConfigError(f"--report: {report} is a path of the output; choose another file")
    if os.path.lexists(report) and not _is_report(report):
        raise ConfigError(
            f"--report: {report} exists and is not a packtok report, so it is not replaced; choose another"
        )


def _is_report(path: Path) -> bool:
    """Returns whether a file is empty or was written by `write_report`."""
    if not path.is_file():
        # The path is a device such as /dev/null, or a dangling link.
        return False
    with path.open("rb") as file:
        start = file.read(4096)
    return start == b"" or start.startswith(b'{\n  "output": ')


def write_report(path: Path, report: PackReport) -> None:
    """Writes the report as JSON, and replaces an earlier one."""
    text = json.dumps(report.to_dict(), indent=2) + "\n"
    _packtok.publish_bytes(path, text.encode("ascii"))
