"""Writes a card as Markdown with the YAML header of the Hugging Face hub.

The header is written by a YAML library, and texts in the body are escaped, so that a description can neither
end the header nor add markup.
"""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

from packtok.catalog.cards.facts import Facts
from packtok.catalog.facets import languages, token_range

# Identifiers of the hub that are not the SPDX identifier in lower case.
_LICENSES = {"odc-by-1.0": "odc-by", "gpl-3.0-only": "gpl-3.0", "mit license": "mit", "pddl-1.0": "pddl"}
_HUB_LICENSE = re.compile(
    r"(apache-2\.0|mit|cc0-1\.0|cc-by(-nc)?(-nd|-sa)?-[234]\.[05]|odc-by|odbl|pddl|(l|a)?gpl-[23]\.[01]|bsd(-[23]-clause)?"
    r"|mpl-2\.0|isc|unlicense|wtfpl|openrail|gfdl|cdla-(sharing|permissive)-[12]\.0)"
)
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*|multilingual|code")
_MARKUP = re.compile(r"([\\`*_\[\]<>|~&$])")
_AT_START = re.compile(r"^([ \t]*(?:\d+(?=[.)]))?)([#+=.)-])", re.MULTILINE)


def markdown(facts: Facts) -> str:
    """Returns the card of a dataset."""
    import yaml

    # A wide line: folding would put texts at the start of lines.
    header = yaml.safe_dump(_header(facts), sort_keys=False, allow_unicode=True, width=1 << 30)
    parts = [
        f"---\n{header}---\n\n# {escaped(one_line(facts.name))}",
        escaped(clean(facts.description).strip()),
        _table(_numbers(facts)),
        f"## Provenance\n\n{_provenance(facts)}",
        f"## Load it\n\n{_commands(facts)}",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _header(facts: Facts) -> dict[str, Any]:
    listed = [language for language in languages(facts.language) if _LANGUAGE.fullmatch(language)]
    header = {
        "pretty_name": one_line(facts.name),
        **_license(facts.license),
        "language": listed or None,
        "size_categories": None if facts.documents is None else [size_category(facts.documents)],
        "tags": [facts.content, *(["tokenized", "packtok"] if facts.tokens else [])],
        "configs": _configs(facts) or None,
        "dataset_info": None if facts.tokens else _info(facts),
    }
    return {key: value for key, value in header.items() if value is not None}


def _license(name: str | None) -> dict[str, str]:
    if not name:
        return {}
    lowered = name.strip().lower()
    known = _LICENSES.get(lowered, lowered)
    return (
        {"license": known}
        if _HUB_LICENSE.fullmatch(known)
        else {"license": "other", "license_name": one_line(name)}
    )


def size_category(documents: int) -> str:
    """Returns the hub's name for a number of documents, such as ``1K<n<10K``."""
    number_range = token_range(documents)
    if number_range.startswith("0-"):
        return "n<1K"
    low, _, high = number_range.partition("-")
    return f"{low}<n<{high}" if documents < 10**12 else "n>1T"


def _configs(facts: Facts) -> list[dict[str, Any]]:
    """Returns which files the hub's library reads: all data, or those of each corpus."""
    if facts.tokens or facts.format not in ("csv", "jsonl", "parquet", "text", "arrow"):
        return []
    patterns: dict[str, list[str]] = {}
    for file in facts.files:
        path = PurePosixPath(file.path)
        pattern = str(path.parent / f"*{''.join(path.suffixes[-1:])}")
        corpus_patterns = patterns.setdefault(one_line(file.corpus or "default"), [])
        if pattern not in corpus_patterns:
            corpus_patterns.append(pattern)
    return [
        {
            "config_name": name,
            "data_files": [{"split": "train", "path": paths[0] if len(paths) == 1 else paths}],
        }
        for name, paths in patterns.items()
    ]


def _info(facts: Facts) -> dict[str, Any] | None:
    # The types of other columns are not known, and a list of features would have to be complete.
    has_corpora = any(file.corpus for file in facts.files)
    return None if has_corpora or not facts.files else {"download_size": facts.data_bytes}


def _numbers(facts: Facts) -> Iterable[tuple[str, str]]:
    yield "content", facts.content
    if facts.format:
        yield "format", f"{facts.format}, texts in {facts.content_field}"
    yield "files", f"{sum(file.is_data for file in facts.files):,}, {facts.data_bytes:,} bytes"
    if facts.documents is not None:
        yield "documents", f"{facts.documents:,}"
    if facts.text_bytes is not None:
        yield "bytes of text", f"{facts.text_bytes:,}"
    if facts.tokens is not None:
        yield from _token_numbers(facts)


def _token_numbers(facts: Facts) -> Iterable[tuple[str, str]]:
    tokens = facts.tokens
    if tokens is None:
        return
    if tokens.number:
        yield "tokens", f"{tokens.number:,}"
    if tokens.text is not None and tokens.text.bytes_per_token is not None:
        yield "bytes of text per token", f"{tokens.text.bytes_per_token:.2f}"
    named = f"{tokens.tokenizer}, {tokens.vocabulary:,} ids" if tokens.vocabulary else tokens.tokenizer
    yield "tokenizer", named
    if tokens.fingerprint:
        yield "fingerprint of the tokenizer", tokens.fingerprint
    if tokens.dtype:
        yield "token type", tokens.dtype


def _provenance(facts: Facts) -> str:
    rows = [("source", facts.download_source), ("downloaded", facts.date), ("license", facts.license or "")]
    rows += [("made from", name) for name in facts.parents]
    if facts.tokens is not None:
        version = facts.tokens.packtok_version
        rows += [("made by", f"packtok {version}")] if version else []
        rows += [(f"option {name}", _value_text(value)) for name, value in facts.tokens.options.items()]
    parts = [_table((name, text) for name, text in rows if text)]
    if any(facts.origins()):
        listed = [(origin.path, f"{origin.bytes:,}", origin.crc32c or "") for origin in facts.origins()]
        parts.append(_table(listed, ("raw file", "bytes", "CRC32C")))
    listed = [(file.path, f"{file.bytes:,}", file.sha256 or "") for file in facts.files]
    parts.append(_table(listed, ("file", "bytes", "SHA-256")))
    return "\n\n".join(part for part in parts if part)


def _value_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _table(rows: Iterable[tuple[str, ...]], titles: tuple[str, ...] = ("", "")) -> str:
    listed = [[escaped(one_line(cell)) for cell in row] for row in rows]
    lines = [list(titles), ["---"] * len(titles), *listed]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) if listed else ""


def _commands(facts: Facts) -> str:
    first = next((file.path for file in facts.files if file.is_data), "")
    if facts.tokens is None:
        name = json.dumps(clean(facts.name), ensure_ascii=False)
        shell = "packtok tokenize . -t gpt2 --output-dir tokenized/gpt2/all"
        return (
            _fenced("sh", f"{shell}  # or by its name")
            + "\n\n"
            + _fenced("python", f'packtok.tokenize({name}, "gpt2", "out")')
        )
    if not first.endswith(".pbin"):
        return _fenced("python", 'dataset = packtok.get_dataset(".", context_length=1024)')
    path = json.dumps(clean(first), ensure_ascii=False)
    lines = (
        "import packtok",
        "",
        f"file = packtok.PbinReader({path})",
        f"dataset = packtok.TokenDataset({path}, context_length=1024)",
    )
    return _fenced("python", "\n".join(lines))


def _fenced(language: str, code: str) -> str:
    """Returns a block of code whose fence is longer than any run of backticks in it."""
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{code}\n{fence}"


def clean(text: str) -> str:
    """Returns a text without halves of surrogate pairs and control characters other than line breaks."""
    text = text.encode(errors="replace").decode().replace("\r\n", "\n").replace("\r", "\n")
    return "".join(char if char == "\n" or char.isprintable() else " " for char in text)


def one_line(text: str) -> str:
    """Returns a text on one line."""
    return " ".join(clean(text).split())


def escaped(text: str) -> str:
    """Returns Markdown that shows a text as it is."""
    return _AT_START.sub(r"\1\\\2", _MARKUP.sub(r"\\\1", text))


def unescaped(text: str) -> str:
    """Returns the text that Markdown shows, as far as `escaped` wrote it."""
    return re.sub(r"\\([\\`*_\[\]<>|~&$#+=.)-])", r"\1", text)


def plain_values(values: Mapping[str, Any]) -> dict[str, str]:
    """Returns the values of a header that are texts."""
    return {key: value for key, value in values.items() if isinstance(value, str)}
