"""Implements `packtok data prepare_instruction_tuning_data`: conversations to pbins, as Modalities does.

Reads Modalities' config and writes the files of its command under their names, in a folder that appears when
all of them are complete.
"""

import errno
import filecmp
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import yaml

from packtok.choices import check_choice
from packtok.commands.index import index
from packtok.commands.pack import pack
from packtok.config import load_config
from packtok.config.interpolation import Resolvers, read_yaml
from packtok.config.options import OPTIONS
from packtok.config.redact import Redactor
from packtok.errors import ConfigError, PacktokError
from packtok.extras import needing
from packtok.instruction.config import PARTITIONS, InstructionConfig, load_instruction_config
from packtok.instruction.folder import NewFile, check_replaceable, publish, unfinished
from packtok.packer.pack_run import prepare
from packtok.progress import Progress
from packtok.remedies import entry_point
from packtok.resuming import LOST_NOTE, explaining
from packtok.sources import StrPath

Existing = Literal["error", "skip", "replace"]
# Suffixes of the files that packing writes for a pbin.
_PBIN_SUFFIXES = (".pbin", ".pbin.tokenizer.json", ".pbin.rejects.jsonl")
# The counts that the report has for each part.
_REPORTED = ("documents", "tokens", "empty", "rejected", "file_bytes", "token_bytes")


@entry_point()
def prepare_instruction_tuning_data(
    config_file_path: StrPath, *, existing: Existing = "replace", on_progress: Progress | None = None
) -> dict[str, Any]:
    """Renders conversations with a chat template, splits them and packs each part.

    Args:
        config_file_path: Modalities' config, which names the conversations, the template, the split and the
            config that the parts are packed with.
        existing: ``"replace"`` replaces an existing folder when the new one is complete, as Modalities does;
            ``"error"``; ``"skip"`` keeps it if this run would write the same.
        on_progress: As in `packtok.pack`.

    Returns:
        ``folder``; ``parts``, each with its files and counts; the number of ``blank`` lines; ``warnings``.

    Raises:
        ConfigError: If a config or the template is invalid.
        ModuleNotFoundError: If Jinja2 is missing, which the extra `instruction` installs.
        DocumentError: If a conversation cannot be rendered or packed; names file and line.
        FileExistsError: If the folder exists and ``existing`` is ``"error"``, or has files of others.
    """
    check_choice("existing", existing, ("error", "skip", "replace"))
    with needing("jinja2", "prepare_instruction_tuning_data", "Jinja2", extra="instruction"):
        from packtok.instruction import parts
    config = load_instruction_config(Path(config_file_path))
    # The notes of packing name files in a folder that is removed.
    with explaining(lambda: LOST_NOTE, of_all_steps=True), config.redactor.guard():
        template = parts.template_of(config)
        _check_packing(config)
        _check_output(config, existing)
        with unfinished(config.folder) as folder:
            written = parts.write_parts(config, template, folder, on_progress)
            if not any(written.conversations.values()):
                raise ConfigError(
                    f"{config.src_path}: has no conversations; add some, or change settings.src_path"
                )
            is_kept = existing == "skip" and config.folder.exists()
            if is_kept:
                _check_same(config, folder, written.conversations)
            place = config.folder if is_kept else folder
            reports = [
                {"part": name, "conversations": number, **_packed(config, name, place, on_progress)}
                for name, number in written.conversations.items()
                if number
            ]
            if not is_kept:
                with NewFile(folder / config.config_name) as file:
                    file.write(config.content)
                check_replaceable(config.folder, lambda name: _is_ours(config, name))
                publish(folder, config.folder)
    return {
        "folder": str(config.folder),
        "parts": reports,
        "blank": written.blank,
        "skipped_existing": is_kept,
        "warnings": list(dict.fromkeys(text for report in reports for text in report.pop("warnings"))),
    }


def _check_packing(config: InstructionConfig) -> None:
    """Raises the errors of the config for packing, which would otherwise come after all conversations."""
    part = PARTITIONS[0]
    options = {
        "input": config.folder / config.name(part, ".jsonl"),
        "output": config.folder / config.name(part, ".pbin"),
    }
    # The raw index of a part does not exist yet.
    prepare(load_config(config.pack_config_path, options, {OPTIONS["index_path"].key: None}))


def _check_output(config: InstructionConfig, existing: Existing) -> None:
    if existing == "replace":
        check_replaceable(config.folder, lambda name: _is_ours(config, name))
    elif existing == "error" and os.path.lexists(config.folder):
        raise FileExistsError(
            errno.EEXIST,
            "the folder of the output exists; set --existing (existing) to skip or replace",
            str(config.folder),
        )


def _is_ours(config: InstructionConfig, name: str) -> bool:
    """Returns whether a file of this name is one that the command writes."""
    suffixes = (".jsonl", ".idx", *_PBIN_SUFFIXES)
    names = {config.name(part, suffix) for part in PARTITIONS for suffix in suffixes}
    return name in names | {config.config_name} | {config.pack_config_name(part) for part in PARTITIONS}


def _check_same(config: InstructionConfig, folder: Path, conversations: Mapping[str, int]) -> None:
    """Raises a `FileExistsError` if an existing folder has other conversations than ``folder``."""
    for name in conversations:
        file = config.name(name, ".jsonl")
        is_same = (config.folder / file).is_file() and filecmp.cmp(folder / file, config.folder / file, False)
        if not is_same:
            raise FileExistsError(
                errno.EEXIST,
                "the existing file differs from what this run would write; set --existing (existing) to "
                "replace",
                str(config.folder / file),
            )


def _packed(
    config: InstructionConfig, name: str, folder: Path, on_progress: Progress | None
) -> dict[str, Any]:
    """Writes index, pbin and config of a part in ``folder``, or checks existing ones; returns its report."""
    source = folder / config.name(name, ".jsonl")
    index_path = folder / config.name(name, ".idx")
    config_path = folder / config.pack_config_name(name)
    try:
        index(str(source), str(index_path), existing="skip", on_progress=on_progress)
        report = pack(
            config.pack_config_path,
            input=source,
            output=folder / config.name(name, ".pbin"),
            index_path=index_path,
            existing="skip",
            on_progress=on_progress,
        )
    except PacktokError as error:
        # The message of the error names a line of a file in this folder.
        error.keeps_folder = True  # type: ignore[attr-defined]
        raise
    if not config_path.exists():
        with NewFile(config_path) as file:
            file.write(_pack_config(config, name).encode())
    facts = report.to_dict()
    paths = {"jsonl": ".jsonl", "index": ".idx", "pbin": ".pbin"}
    files = {key: str(config.folder / config.name(name, suffix)) for key, suffix in paths.items()}
    return {**files, **{key: facts[key] for key in _REPORTED}, "warnings": facts["warnings"]}


def _pack_config(config: InstructionConfig, name: str) -> str:
    """Returns the config that packs a part of the published folder again, in the form of Modalities."""
    path = config.folder / config.pack_config_name(name)
    resolvers = Resolvers(path)
    values = resolvers.resolve(read_yaml(config.pack_config_path))
    values["settings"] = {
        **values.get("settings", {}),
        "src_path": str(config.folder / config.name(name, ".jsonl")),
        "index_path": str(config.folder / config.name(name, ".idx")),
        "dst_path": str(config.folder / config.name(name, ".pbin")),
    }
    public = Redactor(tuple(resolvers.secrets.items())).tree(values)
    return yaml.dump(public, allow_unicode=True)
