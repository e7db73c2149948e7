"""Reads cards as answers to the questions of ``packtok data create-metadata``.

Cards come from other programs. Whatever a card contains, the result is answers or one `ConfigError`.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from packtok.catalog.cards.croissant import OWN
from packtok.catalog.cards.markdown import one_line, plain_values, unescaped
from packtok.catalog.schema import parsed_json, parsed_yaml, read_bytes, text_of_bytes
from packtok.errors import ConfigError

_MAX_BYTES = 16 << 20
_MAX_HEADER_CHARACTERS = 256 << 10
_MAX_TEXT_CHARACTERS = 10_000
_MAX_DEPTH = 64
_VERSIONS = re.compile(r"https?://mlcommons\.org/croissant/1\.[01]")
_HEADER = re.compile(r"\A\s*---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)(.*)\Z", re.DOTALL)
_TEXT_TYPES = ("sc:Text", "Text", "https://schema.org/Text", "http://schema.org/Text")
_CONTENTS = {"ImageObject": "image", "AudioObject": "audio", "VideoObject": "video"}
_USUAL_FIELDS = ("text", "content", "raw_content")
# Lines of Markdown that do not start a paragraph.
_NO_PARAGRAPH = re.compile(r"[#<>|!`~\[\-*+=]|\d+[.)]")


def answers_of_card(path: Path) -> dict[str, Any]:
    """Returns the answers that a Croissant or Hub card gives, by the names of the questions.

    Raises:
        ConfigError: If the file is neither, or is broken.
        OSError: If it cannot be read.
    """
    text = text_of_bytes(read_bytes(path, _MAX_BYTES, "a card"), path)
    is_json = text.lstrip()[:1] == "{"
    answers = _of_croissant(text, path) if is_json else _of_hub(text, path)
    return {key: value for key, value in answers.items() if value}


def _of_croissant(text: str, path: Path) -> dict[str, Any]:
    card = parsed_json(text, path)
    _check_depth(card, path)
    kind = card.get("@type") if isinstance(card, dict) else None
    if not isinstance(card, dict) or "Dataset" not in [
        str(name).split("/")[-1].split(":")[-1] for name in _list(kind)
    ]:
        raise ConfigError(
            f"{path}: @type is {kind!r:.100}, expected sc:Dataset; a Croissant card describes a dataset"
        )
    versions = [
        version
        for version in map(_plain, _list(card.get("conformsTo", card.get("dct:conformsTo"))))
        if version
    ]
    if not any(_VERSIONS.fullmatch(version) for version in versions):
        conforms_to = ", ".join(versions) or "nothing"
        raise ConfigError(f"{path}: conforms to {conforms_to:.100}, expected Croissant 1.0 or 1.1")
    fields = list(_fields(card))
    return {
        "name": one_line(_plain(card.get("name"))),
        "description": _plain(card.get("description"))[:_MAX_TEXT_CHARACTERS],
        "license": ", ".join(filter(None, map(_plain, _list(card.get("license"))))),
        "language": ", ".join(filter(None, map(_plain, _list(card.get("inLanguage"))))),
        "download_source": _own(card, "downloadSource")
        or next(filter(None, map(_plain, _list(card.get("url")))), ""),
        "date_downloaded": _own(card, "dateDownloaded"),
        "data_content": _content(_own(card, "dataContent"), fields),
        "content_field": _own(card, "contentField") or _content_field(_text_fields(fields)),
    }


def _check_depth(value: Any, path: Path) -> None:
    """Raises a `ConfigError` if lists and mappings are nested too deeply for the functions that read them."""
    level, depth = [value], 0
    while level:
        level = [
            inner
            for item in level
            if isinstance(item, dict | list)
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
        depth += 1
        if depth > _MAX_DEPTH:
            raise ConfigError(f"{path}: is nested deeper than {_MAX_DEPTH} levels")


def _own(card: Mapping[str, Any], term: str) -> str:
    return _plain(card.get(f"packtok:{term}", card.get(f"{OWN}{term}")))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _plain(value: Any) -> str:
    """Returns a text, the text of a JSON-LD value, or the name of a node; empty for anything else."""
    if isinstance(value, dict):
        keys = ("@value", "en", "name", "alternateName", "url", "@id")
        value = next((value[key] for key in keys if isinstance(value.get(key), str)), "")
    return value if isinstance(value, str) else ""


def _fields(card: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for record_set in _list(card.get("recordSet")):
        if isinstance(record_set, dict):
            yield from (field for field in _list(record_set.get("field")) if isinstance(field, dict))


def _text_fields(fields: list[Mapping[str, Any]]) -> list[str]:
    columns = []
    for field in fields:
        source = field.get("source")
        extract = source.get("extract") if isinstance(source, dict) else None
        column = _plain(extract.get("column")) if isinstance(extract, dict) else ""
        if column and any(_plain(kind) in _TEXT_TYPES for kind in _list(field.get("dataType"))):
            columns.append(column)
    return list(dict.fromkeys(columns))


def _content_field(names: list[str]) -> str:
    """Returns the field of the documents, if the names leave no doubt; the data itself decides otherwise."""
    return next((name for name in _USUAL_FIELDS if name in names), names[0] if len(names) == 1 else "")


def _content(declared: str, fields: list[Mapping[str, Any]]) -> str:
    if declared in ("text", "image", "audio", "video", "other"):
        return declared
    kinds = [_plain(kind) for field in fields for kind in _list(field.get("dataType"))]
    return next(
        (content for suffix, content in _CONTENTS.items() if any(kind.endswith(suffix) for kind in kinds)), ""
    )


def _of_hub(text: str, path: Path) -> dict[str, Any]:
    match = _HEADER.match(text)
    if match is None:
        raise ConfigError(
            f"{path}: is neither a Croissant card nor Markdown that starts with a header between "
            "two lines of ---"
        )
    header_text, body = match.groups()
    if len(header_text) > _MAX_HEADER_CHARACTERS:
        raise ConfigError(f"{path}: the header is larger than {_MAX_HEADER_CHARACTERS >> 10} KiB")
    header = parsed_yaml(header_text, path)
    if not isinstance(header, dict):
        raise ConfigError(
            f"{path}: the header is a {type(header).__name__}, expected a mapping of names to values"
        )
    plain = plain_values(header)
    license = ", ".join(name for name in _list(header.get("license")) if isinstance(name, str))
    configs = [
        _plain(config.get("config_name"))
        for config in _list(header.get("configs"))
        if isinstance(config, dict)
    ]
    corpora = list(dict.fromkeys(filter(None, configs)))
    return {
        "name": one_line(plain.get("pretty_name") or _title(body)),
        "description": _paragraph(body)[:_MAX_TEXT_CHARACTERS],
        "license": plain.get("license_name", license) if license == "other" else license,
        "language": ", ".join(
            language for language in _list(header.get("language")) if isinstance(language, str)
        ),
        "content_field": _content_field(_features(header.get("dataset_info"))),
        **({"corpus": corpora, "corpus_separation_strategy": "configs"} if len(corpora) > 1 else {}),
    }


def _features(info: Any) -> list[str]:
    features = [
        feature
        for config in _list(info)
        if isinstance(config, dict)
        for feature in _list(config.get("features"))
    ]
    text_features = [
        feature
        for feature in features
        if isinstance(feature, dict) and feature.get("dtype") in ("string", "large_string")
    ]
    return list(dict.fromkeys(filter(None, (_plain(feature.get("name")) for feature in text_features))))


def _title(body: str) -> str:
    heading = re.search(r"^# +(.+)$", body, re.MULTILINE)
    return unescaped(heading[1]) if heading else ""


def _paragraph(body: str) -> str:
    """Returns the first paragraph that is only text."""
    for block in re.split(r"\n\s*\n", body.replace("\r\n", "\n")):
        text = block.strip()
        if text and not _NO_PARAGRAPH.match(text):
            return unescaped(text)
    return ""
