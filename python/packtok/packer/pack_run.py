"""One packing run on this machine: from a checked config to a call of the compiled module to a report."""

import dataclasses
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from packtok import _packtok
from packtok.config import PackConfig
from packtok.config.load import missing_index
from packtok.config.options import DATASETS
from packtok.distributed import ShardChoice
from packtok.errors import ConfigError
from packtok.packer.report import PackReport
from packtok.progress import Progress
from packtok.tokenizer.find import TokenizerLookup, default_eod, find_tokenizer, with_special_tokens
from packtok.tokenizer.length import padding, truncation_side

if TYPE_CHECKING:
    from packtok.plugins.plugin import Plugin


@dataclass(frozen=True)
class PackRun:
    """A packing run that is ready to start: the config is checked and the tokenizer is loaded."""

    config: PackConfig
    lookup: TokenizerLookup
    eod_token: str
    input_fields: tuple[str, ...] = ()
    """The jq pattern of each input, if they differ."""
    plugin: "Plugin | None" = None
    """The plug-in that yields the documents; ``None`` if the inputs are files."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks for the user before the run starts: keys without effect, and notes on the tokenizer."""
        notes = [*_ignored_keys(self.config), *self.lookup.warnings, *self.lookup.tokenizer.notes]
        if self.index_path != self.config.settings.index_path:
            notes.append(
                f"settings.index_path: no such file: {self.config.settings.index_path}; it has the name of "
                "the index of all lines, which packtok does not need: the whole corpus is packed"
            )
        return tuple(self.config.redactor(note) for note in notes)

    @property
    def index_path(self) -> str | None:
        """The raw index whose entries are packed; ``None`` if none is set or the file does not exist."""
        path = self.config.settings.index_path
        return path if path is not None and os.path.lexists(path) else None

    @property
    def spec(self) -> str:
        """The options of the compiled module, as JSON."""
        differing = {"input_fields": self.input_fields} if self.input_fields else {}
        source = None if self.plugin is None else self.plugin.name
        return self.config.spec(
            eod=self.eod_token,
            index_path=self.index_path,
            source=source,
            **self.lengths,
            **differing,
        )

    @property
    def lengths(self) -> dict[str, Any]:
        """The options of the compiled module that need the tokenizer or its files, which are read only then.

        Raises:
            ConfigError: If documents are padded, but the tokenizer has no token for it.
        """
        component = self.config.tokenizer.config
        options: dict[str, Any] = {}
        if self.config.settings.special_tokens_in_text is None:
            options["special_tokens_in_text"] = self.lookup.tokenizer.special_tokens_in_text
        if self.config.truncate_to is not None:
            options["truncate_side"] = truncation_side(self.lookup)
        if self.config.pad_to is not None:
            options["padding"] = padding(self.lookup, self.config.pad_to, component.special_tokens)
        return options

    def run_here(self, on_progress: Progress | None, shard: ShardChoice | None) -> PackReport:
        """Packs into a local file."""
        tokenizer = self.lookup.tokenizer
        if shard is None:
            counts = _packtok.pack(self.spec, tokenizer, on_progress, self.plugin)
        else:
            counts = _packtok.pack_shard(
                self.spec, tokenizer, on_progress, self.plugin, **dataclasses.asdict(shard)
            )
        return PackReport.of(counts, self.notes, self.config.redactor)

    def report_of(self, marker: Mapping[str, Any]) -> PackReport:
        """Returns the report of a shard that is already complete, from its marker."""
        counts = _packtok.report_of_marker(self.spec, self.lookup.tokenizer, json.dumps(marker))
        return PackReport.of(counts, self.notes, self.config.redactor)

    def into(self, output: Path, existing: Literal["error", "skip", "replace"]) -> "PackRun":
        """Returns the same run with another output."""
        return dataclasses.replace(self, config=self.config.with_output(os.fspath(output), existing))

    def plan_here(self, num_shards: int) -> dict[str, Any]:
        """Writes the plan for ``num_shards`` shards into the output folder and returns its contents."""
        output = self.config.settings.dst_path
        with self.config.redactor.guard():
            refuse_file_as_folder(output)
            report = _packtok.plan_shards(
                self.spec, self.lookup.tokenizer, None, self.plugin, num_shards=num_shards
            )
            public: dict[str, Any] = self.config.redactor.tree(report)
            return public


def _ignored_keys(config: PackConfig) -> list[str]:
    """Returns one note per reason, which names all keys that have no effect for that reason."""
    keys_of: dict[str, list[str]] = {}
    for key, reason in config.ignored:
        keys_of.setdefault(reason, []).append(key)
    return [
        f"{', '.join(keys)} {'has' if len(keys) == 1 else 'have'} no effect: {reason}"
        for reason, keys in keys_of.items()
    ]


def prepare(config: PackConfig, input_fields: tuple[str, ...] = ()) -> PackRun:
    """Loads the tokenizer and the plug-in of a config.

    Args:
        config: The checked config.
        input_fields: The jq pattern of each input, if they differ.

    Raises:
        ConfigError: If the config names a token that the tokenizer lacks, or a plug-in that is not one.
        FileNotFoundError: If there is no raw index that may have selected lines.
        TokenizerError: If the tokenizer cannot be loaded.
    """
    checked = _with_splits(config)
    with checked.redactor.guard():
        lookup = tokenizer_of(checked)
        _check_index(checked)
        eod_token = checked.settings.eod_token or default_eod(lookup)
        plugin = plugin_of(checked, input_fields)
        return PackRun(checked, lookup, eod_token, input_fields, plugin)


def _check_index(config: PackConfig) -> None:
    """Raises a `FileNotFoundError` if a missing raw index may have selected lines.

    Modalities requires an index of the whole corpus, by default the name of the source with the suffix
    ``.idx``. Such an index is not needed. Without an index of another name, other documents would be packed.
    """
    index_path = config.settings.index_path
    if index_path is None or os.path.lexists(index_path):
        return
    if Path(index_path).name not in {Path(source).stem + ".idx" for source in config.settings.src_path}:
        raise missing_index(config)


def tokenizer_of(config: PackConfig) -> TokenizerLookup:
    """Returns the tokenizer of a config, with the special tokens that the config names."""
    component = config.tokenizer.config
    lookup = find_tokenizer(component.pretrained_model_name_or_path, component.add_special_tokens_from_config)
    return with_special_tokens(lookup, component)


def plugin_of(config: PackConfig, input_fields: tuple[str, ...] = ()) -> "Plugin | None":
    """Returns the source plug-in of a config; ``None`` if its inputs are files."""
    settings = config.settings
    if settings.source is None:
        return None
    from packtok.plugins.find import find_plugin

    fields = input_fields or (settings.jq_pattern,) * len(settings.src_path)
    return find_plugin(settings.source, dict(zip(settings.src_path, fields, strict=True)))


def _with_splits(config: PackConfig) -> PackConfig:
    """Returns the config with the split in the name of each corpus, where the plug-in `datasets` finds it."""
    settings = config.settings
    if settings.source != DATASETS or settings.split is None:
        return config
    from packtok.plugins.hf_datasets import with_split

    corpora = tuple(with_split(corpus, settings.split) for corpus in settings.src_path)
    return dataclasses.replace(config, settings=dataclasses.replace(settings, src_path=corpora, split=None))


def refuse_file_as_folder(output: str) -> None:
    """Raises a `ConfigError` if the folder for the shards is an existing file."""
    if os.path.exists(output) and not os.path.isdir(output):
        raise ConfigError(f"--output: {output} is a file; give a folder for the shards")
