"""The shape of a pack config: one frozen model per section, and which keys mean nothing here.

Where the values come from, how they are merged and how errors are worded is in `packtok.config`.
"""

import os
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from packtok import _packtok

Count = Annotated[int, Field(ge=1, le=2**63 - 1)]
Text = Annotated[str, Field(min_length=1)]
MIB, GIB = 1 << 20, 1 << 30

# Keys of Modalities that are checked as it checks them and then have no effect, with the reason.
SIZED_BY_BYTES = "packtok sizes its work by bytes; the output does not depend on it"
IGNORED_KEYS = {
    "settings.processing_batch_size": SIZED_BY_BYTES,
    "settings.raw_samples_queue_size": SIZED_BY_BYTES,
    "settings.processed_samples_queue_size": SIZED_BY_BYTES,
    "settings.sequence_length": "documents are packed whole; a dataset cuts sequences when it reads",
    "tokenizer.instance_key": "the tokenizer is described here, not looked up by name",
    "tokenizer.pass_type": "the tokenizer is described here, not looked up by name",
    "tokenizer.config.padding": "documents are packed back to back, without padding",
}


def _as_paths(value: Any) -> Any:
    if isinstance(value, str | os.PathLike):
        return (os.fspath(value),)
    if isinstance(value, list | tuple):
        return tuple(os.fspath(item) if isinstance(item, os.PathLike) else item for item in value)
    return value


def _no_url(value: str) -> str:
    # As a path it would make folders that are named after the credentials in it.
    if "://" in value:
        raise PydanticCustomError("url", "a path")
    return value


def _reject_limit(value: Any) -> Any:
    # A number of YAML's such as 0.01 or True is refused in the same words.
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else repr(value)
    try:
        checked = _packtok.checked_reject_limit(text)
    except ValueError as error:
        raise PydanticCustomError("said", "{text}", {"text": str(error)}) from None
    return checked if checked.endswith("%") else int(checked)


RejectLimit = Annotated[int | str, BeforeValidator(_reject_limit)]
LocalPath = Annotated[Text, AfterValidator(_no_url)]


class _Section(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class Settings(_Section):
    """What is packed, where to, and how; the section ``settings``."""

    src_path: Annotated[tuple[Text, ...], BeforeValidator(_as_paths), Field(min_length=1)]
    dst_path: Text
    index_path: Text | None = None
    jq_pattern: Text = ".text"
    num_cpus: Annotated[int, Field(ge=1, le=4096)]
    eod_token: Text | None = None
    bos_token: Text | None = None
    add_special_tokens: bool = True
    special_tokens_in_text: Literal["parse", "text", "fail"] = "parse"
    engine: Literal["auto", "fast", "reference"] = "auto"
    cache_bytes: Annotated[int, Field(ge=1, le=4 * GIB)] | None = None
    empty_document: Literal["skip", "keep", "fail"] = "skip"
    on_bad_document: Literal["fail", "skip"] = "fail"
    max_rejects: RejectLimit | None = None
    max_document_bytes: Count = GIB
    max_documents: Count | None = None
    max_tokens: Count | None = None
    existing: Literal["error", "skip", "replace"] = "error"
    zstd_window_log: Annotated[int, Field(ge=10, le=31)] = 27
    span_bytes: Count = 16 * MIB
    restart: bool = False
    report: LocalPath | None = None
    staging: LocalPath | None = None
    processing_batch_size: Count | None = None
    raw_samples_queue_size: Count | None = None
    processed_samples_queue_size: Count | None = None
    sequence_length: Any = None


class HfTokenizer(_Section):
    """Which tokenizer, and what of it is checked or changed; the section ``tokenizer.config``."""

    pretrained_model_name_or_path: Text
    max_length: Annotated[int, Field(ge=0)] | None = None
    truncation: bool = False
    padding: bool | str = False
    special_tokens: dict[str, str | list[str]] | tuple[str, ...] | None = None


class Component(_Section):
    """A tokenizer in the way Modalities names its components; the section ``tokenizer``."""

    component_key: Literal["tokenizer"] = "tokenizer"
    variant_key: Literal["pretrained_hf_tokenizer"] = "pretrained_hf_tokenizer"
    config: HfTokenizer
    instance_key: Any = None
    pass_type: Any = None


# The keys each section knows, by the section's path; `field` is another name of jq_pattern.
KNOWN_KEYS: dict[tuple[str, ...], tuple[str, ...]] = {
    (): ("settings", "tokenizer"),
    ("settings",): (*Settings.model_fields, "field"),
    ("tokenizer",): tuple(Component.model_fields),
    ("tokenizer", "config"): tuple(HfTokenizer.model_fields),
}

_SAME_AS_FLAG = (
    "index_path",
    "num_cpus",
    "add_special_tokens",
    "special_tokens_in_text",
    "engine",
    "empty_document",
    "on_bad_document",
    "max_rejects",
    "max_document_bytes",
    "max_documents",
    "max_tokens",
    "existing",
    "zstd_window_log",
    "staging",
    "restart",
    "report",
)
# The flag of `packtok pack` that gives a key, by the key's full name.
FLAGS = {
    "settings.src_path": "--input",
    "settings.dst_path": "--output",
    "settings.jq_pattern": "--field",
    "settings.field": "--field",
    "settings.eod_token": "--eod",
    "settings.bos_token": "--bos",
    "tokenizer": "--tokenizer",
    "tokenizer.config.pretrained_model_name_or_path": "--tokenizer",
    "tokenizer.config.truncation": "--truncation",
    "tokenizer.config.max_length": "--max-length",
    **{f"settings.{name}": f"--{name.replace('_', '-')}" for name in _SAME_AS_FLAG},
}
