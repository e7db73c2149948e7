"""The pages of `packtok explore` for trailers without optional fields, and pages that fail unexpectedly."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import reference
from explore_site import TEXTS, notes, served_folder, write_corpus, write_metadata

import packtok
from packtok.explore import application

PAGES = (
    "/file/{}",
    "/documents/{}?document=0&compare=gpt2",
    "/documents/{}?random=1&seed=1",
    "/items/{}?context_length=16",
    "/items/{}?context_length=16&packing=document",
    "/items/{}?context_length=16&packing=best_fit",
)
# Every optional field of the metadata (docs/reference/pbin_format.md, 4.3) with a valid value.
OPTIONAL_FIELDS: dict[str, Any] = {
    "bos": {"token": "<|endoftext|>", "id": 50256},
    "shard": {"index": 0, "count": 1, "plan": "sha256:0"},
    "parts": [{"name": "a.pbin", "documents": 3, "tokens": 1, "data_crc32c": 1}],
    "shuffle": {"generator": "packtok", "seed": "7", "chunk": {"index": 0, "count": 2}},
    "rearranged": True,
    "steps": [{"step": "sample", "value": "3", "left_out": 0}],
}
OPTIONAL_OPTIONS: dict[str, Any] = {
    "format": "jsonl",
    "text_separator": "\n",
    "source": "plugin",
    "input_fields": [".text"],
    "truncate_to": 1000,
    "truncate_side": "left",
    "padding": {"length": 1, "id": 0, "side": "left"},
    "max_documents": 3,
    "max_tokens": 100_000,
    "origins": True,
    "enclose_all": True,
    "token_width": "uint32",
}
LOSS_MASK = 6


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a dataset of files without one field or section, of limited packs, and of shards."""
    base = tmp_path_factory.mktemp("trailers")
    folder = base / "x" / "data"
    info = {"tokenizer": "gpt2", "file_prefix": "f-", "file_extension": "pbin"}
    write_metadata(folder, name="D", tokenized_info=info)
    corpus = write_corpus(base / "raw" / "c.jsonl", TEXTS[:3])
    write_metadata(base / "raw", name="Raw")
    packtok.pack(input=corpus, output=base / "full.pbin", tokenizer="gpt2", origins=True)
    for name, limit in (("documents", {"max_documents": 2}), ("tokens", {"max_tokens": 40})):
        packtok.pack(input=corpus, output=folder / f"f-max_{name}.pbin", tokenizer="gpt2", **limit)
    packtok.tokenize([str(corpus.parent)], "gpt2", base / "parts", parts=2)
    for path in (base / "parts").glob("*.pbin"):
        path.rename(folder / f"f-{path.name}")
    for name, content in _files((base / "full.pbin").read_bytes()):
        (folder / f"f-{name}.pbin").write_bytes(content)
    return base


def _files(packed: bytes) -> Iterator[tuple[str, bytes]]:
    """Yields files with all optional fields and sections, and without each of them, by name."""
    sections = {kind: section.content for kind, section in reference.trailer_of(packed).items()}
    plain = reference.without_trailer(packed)
    metadata = json.loads(sections[reference.METADATA]) | OPTIONAL_FIELDS
    metadata["options"] |= OPTIONAL_OPTIONS
    source = json.loads(sections[reference.SOURCES]) | {"input": 0}
    sections[LOSS_MASK] = b"\xff" * -(-metadata["counts"]["tokens"] // 8)
    sections[reference.METADATA] = json.dumps(metadata).encode()
    sections[reference.SOURCES] = json.dumps(source).encode() + b"\n"

    def file(**changed: Any) -> bytes:
        contents = sections | {int(kind.removeprefix("section_")): value for kind, value in changed.items()}
        return reference.with_trailer(
            plain,
            [(kind, kind == reference.OFFSETS, content) for kind, content in contents.items() if content],
        )

    def without(values: dict[str, Any], key: str) -> dict[str, Any]:
        return {other: value for other, value in values.items() if other != key}

    yield "complete", file()
    yield "no_trailer", plain
    for kind in sorted(sections.keys() - {reference.OFFSETS, reference.SOURCES}):
        yield f"no_section_{kind}", file(**{f"section_{kind}": b""})
    # Origins refer to sources.
    yield "no_sources", file(section_4=b"", section_5=b"")
    for key in ("crc32c", "format", "input"):
        yield f"no_source_{key}", file(section_4=json.dumps(without(source, key)).encode() + b"\n")
    for key in ("tokenizer", "eod", "options", *OPTIONAL_FIELDS):
        yield f"no_{key}", file(section_3=json.dumps(without(metadata, key)).encode())
    yield (
        "no_text",
        file(section_3=json.dumps(metadata | {"counts": without(metadata["counts"], "text")}).encode()),
    )
    for key in OPTIONAL_OPTIONS:
        options = without(metadata["options"], key)
        yield f"no_option_{key}", file(section_3=json.dumps(metadata | {"options": options}).encode())


def test_every_page_works_without_each_optional_field(base: Path, capfd: pytest.CaptureFixture[str]) -> None:
    names = sorted(path.name for path in (base / "x" / "data").glob("*.pbin"))
    assert len(names) > 30
    with served_folder(base) as server:
        for name in names:
            for page in PAGES:
                path = page.format(f"x/data/{name}")
                answer = server.get(path)
                assert answer.status in (200, 303), (path, answer.status, notes(answer.text))
        assert server.page("/dataset/x/data").text_of("h1") == "D"
        # A limit leaves the checksum of a source unknown, because only a part of it was read.
        limited = server.page("/file/x/data/f-max_documents.pbin")
    assert packtok.PbinReader(base / "x/data/f-max_documents.pbin").sources[0].get("crc32c") is None
    assert limited.rows("grid")[0][-1] == "–"
    assert capfd.readouterr().err == ""


def test_bytes_per_token_are_recorded_or_an_estimate(base: Path) -> None:
    num_bytes = sum(len(text.encode()) for text in TEXTS[:3])
    reader = packtok.PbinReader(base / "full.pbin")
    exact = f"{num_bytes / (reader.num_tokens - len(reader)):.2f} bytes of text per token"
    names = ("full", "x/data/f-no_text", "x/data/f-no_trailer")
    with served_folder(base) as server:
        recorded, estimated, unknown = (
            " ".join(server.page(f"/file/{name}.pbin").text.split()) for name in names
        )
    assert exact in recorded
    assert "estimated" not in recorded
    # All documents of this small file are in the sample.
    assert f"{exact} (estimated from a sample)" in estimated
    assert "per token" not in unknown


class _PanicError(BaseException):
    """Stands for a panic of the compiled module, which is no `Exception`."""


def test_unexpected_error_of_a_page_is_a_page_with_headers_and_one_line(
    base: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    errors = [KeyError("crc32c"), RecursionError("too\x1b[2J\ndeep"), _PanicError("p")]
    waiting = list(errors)

    def fails(*_: object) -> Any:
        raise waiting.pop(0)

    monkeypatch.setitem(application._PAGES, "documents", fails)
    with served_folder(base) as server:
        answers = [server.get("/documents/full%0A.pbin") for _ in errors]
        assert server.get("/file/full.pbin").status == 200
    lines = capfd.readouterr().err.splitlines()
    for error, answer, line in zip(errors, answers, lines, strict=True):
        kind = type(error).__name__
        assert answer.status == 500
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == "no-store"
        (note,) = notes(answer.text)
        assert note == (
            f"This page has a fault ({kind}): report it with the line that the server printed to standard "
            "error."
        )
        assert line.isprintable()
        assert line.startswith(f"packtok explore: /documents/full\\n.pbin: {kind}: ")
        assert f"({os.path.abspath(__file__)}:" in line
