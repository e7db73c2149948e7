"""Builds one validated, frozen `PackConfig` from a Modalities pack config, a dict or options alone.

Values of ``--set`` override options, which override the config, which overrides the defaults in
`packtok.config.options`. Options are named by keyword; dotted keys name places of a config, in ``--set`` and
in messages. Every error names the key, and no error shows a value from the environment.
"""

import errno
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

import yaml
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import ValidationError

from packtok import _packtok
from packtok.config.interpolation import Resolvers, read_yaml, references
from packtok.config.model import validated
from packtok.config.option import Option
from packtok.config.options import DATASETS, FLAGS, IGNORED_KEYS, KNOWN_KEYS, OPTIONS, Component, Settings
from packtok.config.redact import Redactor
from packtok.config.schema import Schema
from packtok.errors import ConfigError

_INDEX_PATH = OPTIONS["index_path"]
# Modalities' name for SentencePiece models.
_SENTENCEPIECE_VARIANT = "pretrained_sp_tokenizer"
_MODEL_FILE = "tokenizer_model_file"
_SCHEMA = Schema(
    KNOWN_KEYS,
    expected={
        "tuple_type": "a path or a list of paths",
        "too_short": "at least one path",
        "url": "a path on this machine",
    },
    flag_of=FLAGS,
)


@dataclass(frozen=True)
class PackConfig:
    """All settings that determine what `packtok.pack` does, validated and resolved."""

    settings: Settings
    tokenizer: Component
    ignored: tuple[tuple[str, str], ...] = ()
    """Keys that are set but have no effect, each with the reason."""
    redactor: Redactor = field(default=Redactor(), repr=False)

    def __repr__(self) -> str:
        pairs = (
            f"{attribute.name}={getattr(self, attribute.name)!r}"
            for attribute in fields(self)
            if attribute.repr
        )
        return self.redactor(f"{type(self).__name__}({', '.join(pairs)})")

    def value_of(self, option: Option) -> Any:
        """Returns the value of an option."""
        section: Any = self
        for name in option.section.split("."):
            section = getattr(section, name)
        return getattr(section, option.name)

    def spec(self, **resolved: Any) -> str:
        """Returns the options of the compiled module, as JSON.

        Args:
            **resolved: Values that are known only when a run is prepared, by keyword.
        """
        spec = {option.keyword: self.value_of(option) for option in OPTIONS.values() if option.is_for_core}
        spec |= {
            "truncate_to": self.truncate_to,
            "max_rejects": self.max_rejects,
            "redactions": self.redactions,
        }
        # A run that encodes resolves this with its tokenizer.
        spec["special_tokens_in_text"] = spec["special_tokens_in_text"] or "parse"
        return json.dumps(spec | resolved)

    def what_changes_bytes(self) -> dict[str, Any]:
        """Returns the options that the output's bytes depend on, by keyword."""
        return {option.keyword: self.value_of(option) for option in OPTIONS.values() if option.changes_bytes}

    def with_output(self, output: str, existing: Literal["error", "skip", "replace"]) -> "PackConfig":
        """Returns the same config with another output, and without a report file."""
        settings = replace(self.settings, dst_path=output, existing=existing, report=None)
        return replace(self, settings=settings)

    @property
    def truncate_to(self) -> int | None:
        """Maximum number of ids per document, or ``None`` if documents are not truncated."""
        return self.tokenizer.config.max_length if self.tokenizer.config.truncation else None

    @property
    def pad_to(self) -> int | None:
        """Number of ids that shorter documents are padded to, or ``None`` if they are not padded."""
        config = self.tokenizer.config
        return config.max_length if config.padding == "max_length" else None

    @property
    def max_rejects(self) -> str | None:
        """Maximum number of rejected documents as a number or a percentage, for the compiled module."""
        limit = self.settings.max_rejects
        return None if limit is None else str(limit)

    @property
    def redactions(self) -> tuple[tuple[str, str], ...]:
        """(secret, replacement) pairs for everything that is written, longest secret first."""
        return self.redactor.secrets(_strings_of(self))

    def to_yaml(self) -> str:
        """Returns `to_dict` as YAML."""
        return yaml.safe_dump(self.to_dict(), sort_keys=False, allow_unicode=True)

    def to_dict(self) -> dict[str, Any]:
        """Returns the resolved config, JSON-serializable, without secrets and keys without effect."""
        tree = _tree(self)
        for path in IGNORED_KEYS:
            *sections, key = path.split(".")
            section = tree
            for name in sections:
                section = section[name]
            section.pop(key, None)
        public: dict[str, Any] = self.redactor.tree(tree)
        return public


ConfigSource = str | os.PathLike[str] | Mapping[str, Any] | PackConfig


def load_config(
    source: ConfigSource | None = None,
    options: Mapping[str, Any] | None = None,
    set_values: Mapping[str, Any] | None = None,
) -> PackConfig:
    """Returns the config in ``source`` with ``options``, then ``set_values``, applied.

    Args:
        source: The path of a YAML file, a mapping of the same structure or a `PackConfig`; ``None`` for
            options only.
        options: Values by keyword, as in `packtok.pack`; ``None`` counts as not given. The name of a
            tokenizer keeps the other keys of its section.
        set_values: Values by dotted key, as of ``--set``; ``None`` replaces a value. ``tokenizer`` may be a
            plain name.

    Raises:
        ConfigError: If a key is unknown or missing or a value is not allowed.
        FileNotFoundError: If ``options`` or ``set_values`` name a raw index that does not exist.
        OSError: If the file cannot be read.
    """
    keyword_options = {name: value for name, value in (options or {}).items() if value is not None}
    set_values = set_values or {}
    is_checked = False
    if isinstance(source, PackConfig):
        if not (keyword_options or set_values):
            return source
        source = _tree(source)
        is_checked = True
    path = Path(source) if isinstance(source, str | os.PathLike) else None
    resolvers = Resolvers(path)
    try:
        raw = read_yaml(path) if path is not None else _from_mapping(source)
        referenced = references(raw)
        if not is_checked:
            _refuse_source(raw)
        _apply(raw, keyword_options, set_values)
        values = resolvers.resolve(raw)
        checked = _checked(values, referenced, Redactor(tuple(resolvers.secrets.items())))
    except ConfigError as error:
        redactor = Redactor(tuple(resolvers.secrets.items()))
        text = str(error)
        prefix = "" if path is None or text.startswith(str(path)) else f"{path}: "
        raise ConfigError(redactor(prefix + text)) from None
    index_path = checked.settings.index_path
    # Configs of Modalities name an index that packtok does not need. A caller who passes one wants it to be
    # read.
    is_requested = index_path is not None and (
        "index_path" in keyword_options or _INDEX_PATH.key in set_values
    )
    if is_requested and not os.path.lexists(index_path or ""):
        raise missing_index(checked)
    return checked


def missing_index(config: PackConfig) -> FileNotFoundError:
    """Returns the error about a raw index that does not exist."""
    path = config.redactor(str(config.settings.index_path))
    return FileNotFoundError(
        errno.ENOENT, f"no such raw index; remove {FLAGS[_INDEX_PATH.key]} to pack the whole corpus", path
    )


def _refuse_source(raw: DictConfig) -> None:
    """Raises a `ConfigError` if a config names a plug-in: only a caller may have code run."""
    settings = raw.get("settings")
    if isinstance(settings, DictConfig) and OmegaConf.to_container(settings, resolve=False).get("source"):  # type: ignore[union-attr]
        raise ConfigError(
            "settings.source cannot be set in a config, because it names code to run; give it as "
            "packtok pack --source, or as source to packtok.pack"
        )


def _tree(config: PackConfig) -> dict[str, Any]:
    tree: dict[str, Any] = _plain({name: asdict(getattr(config, name)) for name in ("settings", "tokenizer")})
    return tree


def _from_mapping(source: Any) -> DictConfig:
    try:
        config: DictConfig = OmegaConf.create(_plain(dict(source or {})))
    except OmegaConfBaseException as error:
        raise ConfigError(f"cannot read the config: {str(error).splitlines()[0]}") from None
    return config


def _plain(value: Any) -> Any:
    """Returns ``value`` with paths as strings and tuples as lists, as YAML can represent them."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _apply(raw: DictConfig, options: Mapping[str, Any], set_values: Mapping[str, Any]) -> None:
    """Writes the values into the tree before interpolations are resolved, which may refer to the values."""
    named = OmegaConf.to_container(raw, resolve=False).get("tokenizer")  # type: ignore[union-attr]
    if isinstance(named, str):
        raw["tokenizer"] = _component(named)
    for keyword, value in options.items():
        _set(raw, "tokenizer" if keyword == "tokenizer" else OPTIONS[keyword].key, _plain(value))
    for key, value in set_values.items():
        _set(raw, key, _plain(value))


def _set(raw: DictConfig, key: str, value: Any) -> None:
    if key == "tokenizer" and not isinstance(value, Mapping):
        if not isinstance(value, str):
            raise ConfigError(f"--tokenizer: is of type {type(value).__name__}; expected a name or a path")
        _name_tokenizer(raw, value)
        return
    if key == "settings.field":
        key = OPTIONS["field"].key
    if key == OPTIONS["field"].key and isinstance(raw.get("settings"), DictConfig):
        # The two keys name one option, so a value for one replaces the other.
        raw.settings.pop("field", None)
    _update(raw, key, value)


def _name_tokenizer(raw: DictConfig, name: str) -> None:
    described = raw.get("tokenizer")
    if isinstance(described, DictConfig) and described.get("variant_key") != _SENTENCEPIECE_VARIANT:
        _update(raw, OPTIONS["tokenizer"].key, name)
    else:
        raw["tokenizer"] = _component(name)


def _component(name: str) -> dict[str, Any]:
    return {"config": {"pretrained_model_name_or_path": name}}


def _update(raw: DictConfig, key: str, value: Any) -> None:
    try:
        OmegaConf.update(raw, key, value, merge=False, force_add=True)
    except (OmegaConfBaseException, TypeError) as error:
        raise ConfigError(f"{key} cannot be set: {str(error).splitlines()[0]}") from None


def _checked(values: dict[str, Any], referenced: frozenset[str], redactor: Redactor) -> PackConfig:
    values = {key: item for key, item in values.items() if key in KNOWN_KEYS[()] or key not in referenced}
    for key in values:
        if key not in KNOWN_KEYS[()]:
            raise ConfigError(_SCHEMA.unknown((key,)))
    settings = dict(_section(values, "settings"))
    for key in settings:
        # Unknown keys are reported before the schema reports a missing key, which may only be misspelled.
        if key not in KNOWN_KEYS["settings",]:
            raise ConfigError(_SCHEMA.unknown(("settings", str(key))))
    _merge_field(settings)
    if settings.get("num_cpus") is None:
        settings["num_cpus"] = _packtok.available_cpus()
    tokenizer = _by_path(_section(values, "tokenizer"))
    _refuse_other_tokenizers(tokenizer)
    try:
        checked_settings = validated(Settings, settings)
    except ValidationError as error:
        raise ConfigError(_SCHEMA.worded(error, ("settings",))) from None
    try:
        component = validated(Component, _with_tuples(tokenizer))
    except ValidationError as error:
        raise ConfigError(_SCHEMA.worded(error, ("tokenizer",))) from None
    _check_max_length(component)
    _check_source(checked_settings)
    return PackConfig(
        settings=checked_settings,
        tokenizer=component,
        ignored=_ignored(settings, tokenizer),
        redactor=redactor,
    )


def _section(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = values.get(name)
    if section is None:
        if name == "tokenizer":
            raise ConfigError(_SCHEMA.missing("tokenizer", ", such as gpt2"))
        return {}
    if not isinstance(section, Mapping):
        raise ConfigError(f"{name} is {section!r}; expected a mapping of keys")
    return section


def _merge_field(settings: dict[str, Any]) -> None:
    field = settings.pop("field", None)
    pattern = settings.get("jq_pattern")
    if field is not None and pattern is not None and field != pattern:
        raise ConfigError(
            f"settings.field is {field!r} and settings.jq_pattern is {pattern!r}; they are the same key; "
            "give only one"
        )
    settings["jq_pattern"] = field if pattern is None else pattern
    if settings["jq_pattern"] is None:
        del settings["jq_pattern"]


def _refuse_other_tokenizers(tokenizer: Mapping[str, Any]) -> None:
    component, variant = tokenizer.get("component_key"), tokenizer.get("variant_key")
    if component not in (None, "tokenizer"):
        raise ConfigError(f"tokenizer.component_key is {component!r}; expected 'tokenizer'")
    if variant not in (None, "pretrained_hf_tokenizer"):
        raise ConfigError(
            f"tokenizer.variant_key is {variant!r}; expected 'pretrained_hf_tokenizer' or "
            f"{_SENTENCEPIECE_VARIANT!r}"
        )


def _by_path(tokenizer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the section with the SentencePiece model under the key that other tokenizers use."""
    if tokenizer.get("variant_key") != _SENTENCEPIECE_VARIANT:
        return tokenizer
    config = tokenizer.get("config")
    config = dict(config) if isinstance(config, Mapping) else {}
    if config.get(_MODEL_FILE) is None:
        raise ConfigError(
            f"tokenizer.config.{_MODEL_FILE} is missing; with variant_key {_SENTENCEPIECE_VARIANT} it is the "
            "path of the SentencePiece .model"
        )
    if "pretrained_model_name_or_path" in config:
        raise ConfigError(
            f"tokenizer.config sets two tokenizers, {_MODEL_FILE} and pretrained_model_name_or_path; give "
            "only one"
        )
    config["pretrained_model_name_or_path"] = config.pop(_MODEL_FILE)
    return {key: value for key, value in tokenizer.items() if key != "variant_key"} | {"config": config}


def _with_tuples(tokenizer: Mapping[str, Any]) -> dict[str, Any]:
    config = tokenizer.get("config")
    named = config.get("special_tokens") if isinstance(config, Mapping) else None
    if isinstance(config, Mapping) and isinstance(named, list):
        config = {**config, "special_tokens": tuple(named)}
    # A key with the value null gets its default.
    section = {key: value for key, value in tokenizer.items() if value is not None}
    return section if config is None else {**section, "config": config}


def _check_source(settings: Settings) -> None:
    if settings.source is None:
        return
    of_files = ["format", "ignore", "root", "text_separator", "index_path"]
    if settings.source != DATASETS:
        of_files.append("split")
    for name in of_files:
        if getattr(settings, name) not in (None, ()):
            flag = FLAGS[f"settings.{name}"]
            raise ConfigError(f"{flag}: it describes files, but --source reads the inputs; give only one")


def _check_max_length(component: Component) -> None:
    config = component.config
    if config.max_length is not None or not (config.truncation or config.padding == "max_length"):
        return
    if config.truncation:
        setting = "--truncation: tokenizer.config.truncation is true"
    else:
        setting = "--padding: tokenizer.config.padding is 'max_length'"
    raise ConfigError(
        f"{setting}, but max_length is not set; give --max-length, or set tokenizer.config.max_length"
    )


def _ignored(settings: Mapping[str, Any], tokenizer: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    values = {"settings": settings, "tokenizer": tokenizer}
    ignored = [(path, reason) for path, reason in IGNORED_KEYS.items() if _is_set(values, path)]
    config = tokenizer["config"]
    if config.get("padding") in (True, "longest"):
        ignored.append(("tokenizer.config.padding", "each document is encoded alone, so none is longer"))
    uses_length = config.get("truncation") or config.get("padding") == "max_length"
    if config.get("max_length") is not None and not uses_length:
        ignored.append(("tokenizer.config.max_length", "--truncation is off, so documents are not truncated"))
    if settings.get("source") not in (None, DATASETS) and "jq_pattern" in settings:
        ignored.append(("settings.jq_pattern", "the documents of a source plug-in are texts"))
    if settings.get("max_rejects") is not None and settings.get("on_bad_document") in (None, "fail"):
        reason = "on_bad_document is fail, so the first bad document stops the run; set it to skip"
        ignored.append(("settings.max_rejects", reason))
    return tuple(ignored)


def _is_set(values: Mapping[str, Any], path: str) -> bool:
    value: Any = values
    for name in path.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return False
        value = value[name]
    return value is not None and value is not False


def _strings_of(config: PackConfig) -> list[str]:
    settings, tokenizer = config.settings, config.tokenizer.config
    texts = [*settings.src_path, settings.dst_path, tokenizer.pretrained_model_name_or_path]
    texts += [settings.jq_pattern]
    optional = (settings.source, settings.index_path, settings.report, settings.eod_token, settings.bos_token)
    return texts + [text for text in optional if text is not None]
