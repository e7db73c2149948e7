"""The single definition of every option of `packtok pack`: name, type, default, flag and help.

`Settings` and `HfTokenizer` are the two sections of a config that have options, as fields declared with
`option`. Everything else that needs the options derives them from these classes: the validation of a config
(`packtok.config.model`), the flags (`packtok.cli.options`), the keyword arguments of `packtok.pack`
(`packtok.config.keywords`) and the tables of `docs/reference/pack_config.md` (both written by
`scripts/generated_files.py`), the options of the compiled module (`PackConfig.spec`) and the key of a staging
folder (`packtok.packer.into_store`).

Imports nothing slow, because every command imports this module.
"""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from packtok.config.option import (
    GIB,
    MAX_COUNT,
    MIB,
    Limits,
    Option,
    ignored,
    option,
    options_of,
    reason_to_ignore,
)

COUNT = Limits(at_least=1, at_most=MAX_COUNT)
SIZED_BY_BYTES = "packtok sizes its work by bytes; the output does not depend on it"
DESCRIBED_HERE = "the tokenizer is described here, not looked up by name"
# The source plug-in whose documents have columns. The documents of other plug-ins are texts.
DATASETS = "datasets"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Input, output and details of packing; the section ``settings``."""

    src_path: tuple[str, ...] = option(
        "File, glob, folder or @LIST; repeatable. Order is kept.",
        meaning="a file, glob, folder or `@LIST`, or a list of them ([corpora.md](../guides/corpora.md))",
        changes_bytes=True,
        keyword="input",
        flags=("--input", "-i"),
        metavar="PATH",
        limits=Limits(kind="paths"),
        accepts="StrPath | Sequence[StrPath]",
    )
    dst_path: str = option(
        "The pbin to write.",
        meaning="the pbin to write; its folder is created",
        changes_bytes=False,
        keyword="output",
        flags=("--output", "-o"),
        metavar="FILE",
        accepts="StrPath",
    )
    source: str | None = option(
        "Plug-in that yields the documents, such as my_source.py:documents.",
        meaning=(
            "a source plug-in, whose corpora `src_path` names "
            "([source_plugins.md](../guides/source_plugins.md)). It cannot be set in a config file: code "
            "runs only if the command line or the caller names it"
        ),
        changes_bytes=True,
        default=None,
        default_text="the inputs are files",
        metavar="PLUG-IN",
        is_for_core=False,
    )
    jq_pattern: str = option(
        "jq filter that returns a document's text.",
        meaning="jq filter that returns a document's text; the key can also be written `field`",
        changes_bytes=True,
        default=".text",
        keyword="field",
        flags=("--field", "-f"),
    )
    format: Literal["jsonl", "parquet", "arrow", "csv", "tsv", "text", "cbor"] | None = option(
        "Format of inputs.",
        meaning=(
            "the format of all inputs: `jsonl`, `parquet`, `arrow` (files and streams, Feather), `csv`, "
            "`tsv`, `text` or `cbor` ([corpora.md](../guides/corpora.md#formats))"
        ),
        changes_bytes=True,
        default=None,
        default_text="by file name",
    )
    ignore: tuple[str, ...] = option(
        "Glob of files and folders to leave out; repeatable.",
        meaning=(
            "globs of files and folders that are not read, such as `*.xz` or `old/*.jsonl`: each is compared "
            "with the end of a path ([files_to_documents.md](files_to_documents.md#which-files-of-a-folder))"
        ),
        changes_bytes=True,
        default=(),
        default_text="none",
        metavar="GLOB",
        limits=Limits(kind="globs"),
        accepts="StrPath | Sequence[StrPath]",
    )
    split: str | None = option(
        "Split of folders to read, such as train or test; or all.",
        meaning=(
            "which files of a folder are read: those of the split `train`, `validation`, `test` or another, "
            "or `all` ([files_to_documents.md](files_to_documents.md#splits))"
        ),
        changes_bytes=True,
        default=None,
        default_text="all; for tokenize, train",
    )
    root: str | None = option(
        "Folder that relative lines of @LIST inputs start at.",
        meaning=(
            "where the relative lines of a list start, of an input `@LIST` "
            "([files_to_documents.md](files_to_documents.md#lists-of-files))"
        ),
        changes_bytes=True,
        default=None,
        default_text="the folder of the list",
        metavar="FOLDER",
        limits=Limits(kind="local path"),
        accepts="StrPath",
    )
    text_separator: str | None = option(
        "Text between two documents of a plain text.",
        meaning=(
            "what separates the documents of a plain text, such as `\\n\\n`; `\\n`, `\\r`, `\\t` and `\\\\` "
            "stand for a line feed, a carriage return, a tab and a backslash"
        ),
        changes_bytes=True,
        default=None,
        default_text="each file is one document",
    )
    eod_token: str | None = option(
        "Token that closes each document.",
        meaning=(
            "the **EOD** (end of document): closes every document that does not already end with it; must be "
            "one token"
        ),
        changes_bytes=True,
        default=None,
        default_text="the tokenizer's EOS, <|endoftext|> or appended token",
        keyword="eod",
    )
    bos_token: str | None = option(
        "Token that opens each document.",
        meaning="opens every document that does not already start with it",
        changes_bytes=True,
        default=None,
        keyword="bos",
    )
    index_path: str | None = option(
        "Pack only the lines of this raw index.",
        meaning=(
            "a raw index; only its entries are packed. A file that does not exist is an error, except in a "
            "config if its name is that of the source with the suffix `.idx`, as Modalities requires: then "
            "a note is printed and the whole corpus is packed"
        ),
        changes_bytes=True,
        default=None,
        flags=("--index-path", "--index_path"),
        metavar="FILE",
        accepts="StrPath",
    )
    num_cpus: int = option(
        "Threads.",
        meaning="threads; does not change the output",
        changes_bytes=False,
        default_text="all CPUs that this process may use",
        flags=("--num-cpus", "--threads", "-j"),
        limits=Limits(at_least=1, at_most=4096),
    )
    add_special_tokens: bool = option(
        "Add what the tokenizer's post-processor adds.",
        meaning="whether the tokenizer's post-processor adds its tokens",
        changes_bytes=True,
        default=True,
    )
    special_tokens_in_text: Literal["parse", "text", "fail"] | None = option(
        "How special tokens in a text are encoded.",
        meaning=(
            "`parse`: the text of a special token becomes that token, as in Hugging Face; `text`: it is "
            "ordinary text, as in Mistral's library and by default for its `tekken.json`; `fail`: the "
            "document is bad"
        ),
        changes_bytes=True,
        default=None,
        default_text="that of the tokenizer",
    )
    engine: Literal["auto", "fast", "reference"] = option(
        "Engine that encodes; the ids do not depend on it.",
        meaning=(
            "which engine encodes; does not change the output. `auto`: the fast engine, packtok's own, if it "
            "covers the tokenizer, else the reference engine; `fast`: the fast engine, or an error that "
            "names what it does not cover; `reference`: the reference engine, the `tokenizers` crate "
            "([tokenizers.md](../guides/tokenizers.md#which-engine))"
        ),
        changes_bytes=False,
        default="auto",
    )
    token_width: Literal["auto", "uint16", "uint32"] = option(
        "Type of the ids in the file.",
        meaning=(
            "type of the ids in the file. `auto`: one, two or four bytes, as few as the vocabulary allows; "
            "`uint16` and `uint32`: for programs that expect these, or for a vocabulary that will grow"
        ),
        changes_bytes=True,
        default="auto",
    )
    cache_bytes: int | None = option(
        "Memory per thread for the word cache of the fast engine.",
        meaning=(
            "memory per thread for the word cache of the fast engine, from about 100 KiB to 4 GiB; does not "
            "change the output"
        ),
        changes_bytes=False,
        default=None,
        default_text="48 MiB",
        limits=Limits(at_least=1, at_most=4 * GIB),
    )
    empty_document: Literal["skip", "keep", "fail"] = option(
        "What to do with a document without ids.",
        meaning=(
            "a document without tokens: `skip` skips and counts it, `keep` packs only EOD, `fail` stops "
            "the run"
        ),
        changes_bytes=True,
        default="skip",
    )
    on_bad_document: Literal["fail", "skip"] = option(
        "Stop at a bad document, or skip it and report it.",
        meaning=(
            "`fail` stops the run; `skip` skips and counts the document and lists it in "
            "`<dst_path>.rejects.jsonl`"
        ),
        changes_bytes=True,
        default="fail",
    )
    max_rejects: int | str | None = option(
        "Fail if more documents are rejected: a number or a percentage.",
        meaning=(
            "with `on_bad_document: skip`, how many documents may be rejected: a number such as `100`, or "
            "a percentage of all documents such as `0.5%`, from `0%` to `100%`. More rejects fail the run "
            "([corpora.md](../guides/corpora.md#how-many-rejects-are-too-many)). Without it, a run fails if "
            "it rejects documents and packs none"
        ),
        changes_bytes=False,
        default=None,
        default_text="fail if all are rejected",
        metavar="N|P%",
        limits=Limits(kind="reject limit"),
    )
    max_document_bytes: int = option(
        "A longer line is a bad document.",
        meaning="a longer line is a bad document",
        changes_bytes=True,
        default=GIB,
        limits=COUNT,
    )
    max_documents: int | None = option(
        "Stop after this many documents.",
        meaning="for trials: the run ends after this many documents",
        changes_bytes=True,
        default=None,
        limits=COUNT,
    )
    max_tokens: int | None = option(
        "Stop before the output exceeds this many tokens.",
        meaning="for trials: the run ends before the document that would exceed this many tokens",
        changes_bytes=True,
        default=None,
        limits=COUNT,
    )
    origins: bool = option(
        "Record where each document came from.",
        meaning=(
            "whether the file records where each document came from: its source and the byte or row in it "
            "([origins.md](../guides/origins.md))"
        ),
        changes_bytes=True,
        default=False,
        flags=("--origins",),
    )
    enclose_all: bool = option(
        "Add BOS and EOD to every document.",
        meaning=(
            "whether BOS and EOD are added to every document, also to one that has them already or has no "
            "tokens, as CEPE's scripts do"
        ),
        changes_bytes=True,
        default=False,
        flags=None,
    )
    existing: Literal["error", "skip", "replace"] = option(
        "What to do if the output exists.",
        meaning=(
            "an existing output: `error`; `skip` keeps it after checking that it is complete and made from "
            "the same config and sources; `replace`"
        ),
        changes_bytes=False,
        default="error",
    )
    zstd_window_log: int = option(
        "Largest zstd window, as a power of two.",
        changes_bytes=True,
        default=27,
        limits=Limits(at_least=10, at_most=31),
    )
    span_bytes: int = option(
        "Bytes of text after which a run saves its progress.",
        meaning=(
            "size of a **span**: a run records its progress after every span of text, and a killed run "
            "repeats the last one ([resume_packing.md](../guides/resume_packing.md))"
        ),
        changes_bytes=False,
        default=16 * MIB,
        flags=None,
        limits=COUNT,
    )
    restart: bool = option(
        "Discard the saved work of an unfinished run.",
        meaning="discard the work of an unfinished run",
        changes_bytes=False,
        default=False,
        flags=("--restart",),
    )
    staging: str | None = option(
        "Local folder in which an output for a URL is written first.",
        meaning=(
            "local folder in which an output for a URL is written first "
            "([object_stores.md](../guides/object_stores.md))"
        ),
        changes_bytes=False,
        default=None,
        default_text="in the user's cache",
        limits=Limits(kind="local path"),
        accepts="StrPath",
        is_for_core=False,
    )
    report: str | None = option(
        "Also write the result to this file, as JSON.",
        meaning="where to write the result as JSON",
        changes_bytes=False,
        default=None,
        limits=Limits(kind="local path"),
        accepts="StrPath",
        is_for_core=False,
    )
    processing_batch_size: int | None = ignored(SIZED_BY_BYTES, limits=COUNT)
    raw_samples_queue_size: int | None = ignored(SIZED_BY_BYTES, limits=COUNT)
    processed_samples_queue_size: int | None = ignored(SIZED_BY_BYTES, limits=COUNT)
    sequence_length: Any = ignored("documents are packed in full; a dataset cuts sequences when it reads")


@dataclass(frozen=True, kw_only=True)
class HfTokenizer:
    """The tokenizer and its options; the section ``tokenizer.config``."""

    pretrained_model_name_or_path: str = option(
        "tokenizer.json or its folder, built-in name, or hub name.",
        meaning=(
            "looked up in this order: an existing `tokenizer.json`, `tekken.json` or SentencePiece `.model`, "
            "or a folder with one; the built-in `gpt2`, `r50k_base`, `p50k_base`, `p50k_edit`, "
            "`cl100k_base`, `o200k_base`, `o200k_harmony`; a name on the Hugging Face hub, from the cache "
            "if it is cached"
        ),
        changes_bytes=True,
        keyword="tokenizer",
        flags=("--tokenizer", "-t"),
        metavar="NAME|FILE",
        is_for_core=False,
    )
    add_special_tokens_from_config: bool = option(
        "Add the tokens that only the files next to the tokenizer name.",
        meaning=(
            "add the tokens that `tokenizer_config.json`, `special_tokens_map.json`, `added_tokens.json` or "
            "`special_tokens` name and the tokenizer lacks, as Transformers does "
            "([tokenizers.md](../guides/tokenizers.md#special-tokens-in-other-files))"
        ),
        changes_bytes=True,
        default=False,
        flags=("--add-special-tokens-from-config",),
        is_for_core=False,
    )
    truncation: bool = option(
        "Cut documents to --max-length ids.",
        meaning=(
            "truncate documents to `max_length` ids, at the side that `truncation_side` in "
            "`tokenizer_config.json` or `tokenizer.json` names, by default the right"
        ),
        changes_bytes=True,
        default=False,
        is_for_core=False,
    )
    max_length: int | None = option(
        "Ids a document keeps under --truncation, or gets under --padding.",
        meaning=(
            "the ids that a document keeps with `truncation`, and gets with `padding: max_length`, including "
            "special tokens but not EOD and BOS, which packing adds"
        ),
        changes_bytes=True,
        default=None,
        limits=Limits(at_least=0, at_most=MAX_COUNT),
        is_for_core=False,
    )
    padding: Literal["do_not_pad", "longest", "max_length"] = option(
        "Pad documents to --max-length ids.",
        meaning=(
            "`max_length`: pad documents to `max_length` ids, at most 16,777,216, with the `pad_token` that "
            "`special_tokens`, `tokenizer_config.json` or `tokenizer.json` names, at their `padding_side`, "
            "by default the right. `longest` (`true`) has no effect, because each document is encoded alone; "
            "`do_not_pad` (`false`)"
        ),
        changes_bytes=True,
        default="do_not_pad",
        limits=Limits(kind="padding"),
        is_for_core=False,
    )
    special_tokens: dict[str, str | list[str]] | tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Component:
    """A tokenizer in Modalities' component format; the section ``tokenizer``."""

    component_key: Literal["tokenizer"] = "tokenizer"
    variant_key: Literal["pretrained_hf_tokenizer"] = "pretrained_hf_tokenizer"
    config: HfTokenizer
    instance_key: Any = ignored(DESCRIBED_HERE)
    pass_type: Any = ignored(DESCRIBED_HERE)


# Class of each section, by path.
SECTIONS: dict[str, Any] = {
    "settings": Settings,
    "tokenizer": Component,
    "tokenizer.config": HfTokenizer,
}


def _ordered() -> Iterator[Option]:
    """Yields input and output first, then the tokenizer, then the rest."""
    settings = options_of("settings", Settings)
    yield from settings[:2]
    yield from options_of("tokenizer.config", HfTokenizer)
    yield from settings[2:]


# All options by keyword, in display order.
OPTIONS: dict[str, Option] = {option.keyword: option for option in _ordered()}

# Options that also apply to commands that read a corpus without packing it.
SCAN_OPTIONS = (
    "source",
    "field",
    "format",
    "ignore",
    "root",
    "text_separator",
    "num_cpus",
    "on_bad_document",
    "max_document_bytes",
    "max_documents",
    "zstd_window_log",
)

# Keys without effect, each with the reason.
IGNORED_KEYS: dict[str, str] = {
    f"{section}.{field.name}": reason
    for section, shape in SECTIONS.items()
    for field in dataclasses.fields(shape)
    if (reason := reason_to_ignore(field)) is not None
}

# Known keys of each section, by the section's path; `field` is another name of jq_pattern.
KNOWN_KEYS: dict[tuple[str, ...], tuple[str, ...]] = {
    (): ("settings", "tokenizer"),
    **{
        tuple(section.split(".")): tuple(field.name for field in dataclasses.fields(shape))
        for section, shape in SECTIONS.items()
    },
}
KNOWN_KEYS["settings",] += ("field",)

# Flag of `packtok pack` that sets a key, by the key's full name.
FLAGS: dict[str, str] = {
    **{option.key: option.flags[0] for option in OPTIONS.values() if option.flags},
    "settings.field": "--field",
    "tokenizer": "--tokenizer",
}
