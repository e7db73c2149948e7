"""Writes a card as Croissant 1.1, with its lineage in terms of PROV-O.

Values for which neither Croissant nor PROV-O has a term are in packtok's own context: counts, the CRC32C of
raw files, the tokenizer's fingerprint.
"""

import json
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from packtok.catalog.cards.facts import CardFile, Facts, Origin, Tokens
from packtok.catalog.facets import languages

CONFORMS_TO = "http://mlcommons.org/croissant/1.1"
PROV, OWN = "http://www.w3.org/ns/prov#", "urn:packtok:"
# The terms that Croissant 1.1 prescribes, and two prefixes.
_CROISSANT_TERMS = (
    "arrayShape",
    "citeAs",
    "column",
    "containedIn",
    "equivalentProperty",
    "extract",
    "field",
    "fileProperty",
    "fileObject",
    "fileSet",
    "format",
    "includes",
    "isArray",
    "isLiveDataset",
    "jsonPath",
    "key",
    "md5",
    "parentField",
    "path",
    "recordSet",
    "references",
    "regex",
    "repeated",
    "replace",
    "samplingRate",
    "separator",
    "source",
    "subField",
    "transform",
)
CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "packtok": OWN,
    "prov": PROV,
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "description": {"@container": "@language"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "name": {"@container": "@language"},
    **{term: f"cr:{term}" for term in _CROISSANT_TERMS},
}
_ENCODINGS = {
    "arrow": "application/vnd.apache.arrow.file",
    "cbor": "application/cbor-seq",
    "csv": "text/csv",
    "jsonl": "application/jsonlines",
    "parquet": "application/x-parquet",
    "text": "text/plain",
    "tsv": "text/tab-separated-values",
}
_BYTES, _JSON = "application/octet-stream", "application/json"
# Formats whose records Croissant can describe.
_WITH_COLUMNS = ("csv", "jsonl", "parquet", "tsv")
_URL = re.compile(r"https?://\S+")


def croissant(facts: Facts) -> str:
    """Returns the card of a dataset as JSON-LD. Its files must have their SHA-256."""
    card = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS_TO,
        "name": facts.name,
        "description": facts.description or None,
        "license": facts.license,
        "inLanguage": languages(facts.language) or None,
        **_source(facts),
        "packtok:dataContent": facts.content,
        "packtok:dateDownloaded": facts.date or None,
        **({} if facts.tokens else {"packtok:contentField": facts.content_field}),
        "packtok:documents": facts.documents,
        "packtok:textBytes": facts.text_bytes,
        "packtok:tokens": None if facts.tokens is None else facts.tokens.number,
        "distribution": _distribution(facts),
        "recordSet": _record_sets(facts) or None,
        **_lineage(facts),
    }
    return json.dumps(_without_none(card), indent=2) + "\n"


def _source(facts: Facts) -> dict[str, Any]:
    is_url = _URL.fullmatch(facts.download_source) is not None
    return {"url" if is_url else "packtok:downloadSource": facts.download_source or None}


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _distribution(facts: Facts) -> list[dict[str, Any]]:
    ids = {origin: _origin_id(i) for i, origin in enumerate(facts.origins())}
    objects = [
        _without_none(
            {
                "@type": "cr:FileObject",
                "@id": _file_id(file),
                "name": file.path,
                "contentUrl": file.path,
                "contentSize": f"{file.bytes} B",
                "encodingFormat": _encoding(facts, file),
                "sha256": file.sha256,
                "packtok:documents": file.documents,
                "prov:wasDerivedFrom": [{"@id": ids[origin]} for origin in file.origins] or None,
                "prov:wasGeneratedBy": {"@id": _RUN} if facts.tokens and file.is_data else None,
            }
        )
        for file in facts.files
    ]
    return objects + [_file_set(facts, group, files) for group, files in _groups(facts).items()]


_RUN = "packtok-run"


def _origin_id(number: int) -> str:
    return f"packtok-source/{number}"


def _file_id(file: CardFile) -> str:
    # Percent-encoded, because an identifier is an IRI. contentUrl stays plain: mlcroissant reads it as a
    # path.
    return f"file/{quote(file.path)}"


def _encoding(facts: Facts, file: CardFile) -> str:
    if not file.is_data:
        return _JSON
    return _BYTES if facts.format is None else _ENCODINGS.get(facts.format, _BYTES)


def _groups(facts: Facts) -> dict[str, list[CardFile]]:
    """Returns the files of each set of records: one set, or one for each corpus; none if not describable."""
    groups: dict[str, list[CardFile]] = {}
    if facts.tokens or not _columns(facts):
        return groups
    has_corpora = any(file.corpus is not None for file in facts.files)
    for file in facts.files:
        # mlcroissant reads gzip, but not zstd.
        if file.path.endswith(".zst") or (has_corpora and file.corpus is None):
            return {}
        group = "documents" if file.corpus is None else f"documents-{quote(file.corpus, safe='')}"
        groups.setdefault(group, []).append(file)
    return groups


def _columns(facts: Facts) -> dict[str, dict[str, str]]:
    """Returns where each field of a record is found."""
    if facts.format == "text":
        return {"text": {"fileProperty": "content"}}
    if facts.format not in _WITH_COLUMNS:
        return {}
    # A field within a field has dots in its name, and no column.
    return {name: {"column": name} for name in facts.fields if "." not in name}


def _file_set(facts: Facts, group: str, files: list[CardFile]) -> dict[str, Any]:
    folders = [
        (PurePosixPath(file.path).parent, "".join(PurePosixPath(file.path).suffixes[-1:])) for file in files
    ]
    includes = {str(folder / f"*{suffix}") for folder, suffix in folders}
    return {
        "@type": "cr:FileSet",
        "@id": f"{group}-files",
        "name": f"{group}-files",
        "encodingFormat": _encoding(facts, files[0]),
        "includes": sorted(includes),
    }


def _record_sets(facts: Facts) -> list[dict[str, Any]]:
    return [
        {
            "@type": "cr:RecordSet",
            "@id": group,
            "name": group,
            "field": [
                {
                    "@type": "cr:Field",
                    "@id": f"{group}/{quote(name, safe='')}",
                    "name": name,
                    "dataType": "sc:Text",
                    "source": {"fileSet": {"@id": f"{group}-files"}, "extract": extract},
                }
                for name, extract in _columns(facts).items()
            ],
        }
        for group in _groups(facts)
    ]


def _lineage(facts: Facts) -> dict[str, Any]:
    """Returns the lineage of a tokenized dataset: its sources, and the activity that made it."""
    if facts.tokens is None:
        return {}
    parents = [
        {"@type": "prov:Entity", "@id": f"packtok-parent/{i}", "name": name}
        for i, name in enumerate(facts.parents)
    ]
    origins = [_origin(i, origin) for i, origin in enumerate(facts.origins())]
    return {
        "prov:wasDerivedFrom": [*parents, *origins] or None,
        "prov:wasGeneratedBy": _activity(facts.tokens, [origin["@id"] for origin in origins]),
    }


def _origin(number: int, origin: Origin) -> dict[str, Any]:
    return _without_none(
        {
            "@type": "prov:Entity",
            "@id": _origin_id(number),
            "name": origin.path,
            "contentSize": f"{origin.bytes} B",
            "packtok:crc32c": origin.crc32c,
        }
    )


def _activity(tokens: Tokens, used: list[str]) -> dict[str, Any]:
    tokenizer = {
        "@type": "prov:Entity",
        "name": tokens.tokenizer,
        "packtok:fingerprint": tokens.fingerprint,
        "packtok:vocabularySize": tokens.vocabulary,
    }
    agent = None
    if tokens.packtok_version is not None:
        agent = {"@type": "prov:SoftwareAgent", "name": "packtok", "softwareVersion": tokens.packtok_version}
    options = {"@type": "@json", "@value": dict(tokens.options)} if tokens.options else None
    return _without_none(
        {
            "@type": "prov:Activity",
            "@id": _RUN,
            "prov:used": [{"@id": origin_id} for origin_id in used] or None,
            "prov:wasAssociatedWith": agent,
            "packtok:tokenizer": _without_none(tokenizer),
            "packtok:tokenType": tokens.dtype,
            "packtok:options": options,
        }
    )
