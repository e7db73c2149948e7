"""The health lines of `packtok explore`: for data in order, and for every kind of damage."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import reference
from explore_site import TEXTS, Page, notes, served, served_folder, write_corpus, write_metadata

import packtok
from packtok.catalog.index import build_index
from packtok.commands.data import create_metadata
from packtok.explore.contents import packed
from packtok.explore.site import site_of_file, site_of_folder

SHARDS = ["shard-00000-of-00002.pbin", "shard-00001-of-00002.pbin"]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a base directory with a dataset of texts and a tokenized form in two files."""
    base = tmp_path_factory.mktemp("health")
    raw = base / "x"
    write_corpus(raw / "raw" / "c.jsonl", TEXTS)
    values = {"name": "D", "dataset_path": str(raw / "raw"), "output": str(raw / "metadata.json")}
    create_metadata({**values, "description": "d", "download_source": "s"})
    # The copies of the base are elsewhere.
    metadata = json.loads((raw / "metadata.json").read_text()) | {"dataset_path": "raw"}
    (raw / "metadata.json").write_text(json.dumps(metadata))
    packtok.tokenize([str(raw)], "gpt2", raw / "tokenized" / "gpt2" / "all", parts=2)
    return base


@pytest.fixture
def base(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "base"))


TOKENIZED = "x/tokenized/gpt2/all"


def health(page: Page) -> dict[str, list[str]]:
    """Returns the parts of the health line by status."""
    lines = {status: page.all("li", class_=status) for status in ("good", "note", "fault")}
    return {status: texts for status, texts in lines.items() if texts}


def test_rejected_documents_are_listed_with_place_and_reason(tmp_path: Path) -> None:
    lines = ['{"text": "good"}', '{"text": 5}', '{"title": "<b>none"}', *['{"text": null}'] * 30]
    (tmp_path / "c.jsonl").write_text("".join(f"{line}\n" for line in lines))
    packtok.pack(
        input=tmp_path / "c.jsonl",
        output=tmp_path / "a.pbin",
        tokenizer="gpt2",
        on_bad_document="skip",
        max_rejects="100%",
    )
    listed = tmp_path / "a.pbin.rejects.jsonl"
    records = [json.loads(line) for line in listed.read_text().splitlines()]
    for site in (site_of_folder(tmp_path), site_of_file(tmp_path / "a.pbin")):
        with served(site) as server:
            page = server.page("/file/a.pbin")
            assert health(page)["note"][-1] == "documents rejected: 32"
            assert page.rows("rejects") == [
                [
                    record["source"],
                    f"line {record['line']:,}, byte {record['offset_bytes']:,}",
                    record["reason"],
                ]
                for record in records[:20]
            ]
            assert "There are more" in page.text
            assert page.all("pre")[-1] == f"cat {listed}"
    # Lines that packtok did not write are left out, and the command shows them.
    listed.write_bytes(b"[" * 100_000 + b'\n{"row": 2, "reason": "r"}\n')
    with served_folder(tmp_path) as server:
        assert server.page("/file/a.pbin").rows("rejects") == []
        listed.write_bytes(b'\xff\n{"row": 2, "reason": "r"}\n[]\n{"line": 1e400}\n')
        assert server.page("/file/a.pbin").rows("rejects") == [["", "row 2", "r"], ["", "", ""]]
        listed.unlink()
        assert "Rejected documents" not in server.page("/file/a.pbin").text


def test_data_in_order_has_a_good_health_line_and_commands_that_check_it(base: Path) -> None:
    with served_folder(base) as server:
        page = server.page(f"/dataset/{TOKENIZED}")
        assert health(page) == {
            "good": [
                "2 files present, as long as recorded",
                "all bytes verified",
                "trailers with valid checksums",
                "tokenizer gpt2 matches",
                "documents rejected: 0",
            ],
            # One of the texts contains <|endoftext|>.
            "note": ["EODs inside texts: 1"],
        }
        commands = page.all("pre")[-1].splitlines()
        folder = base / TOKENIZED
        assert commands == [f"packtok verify {folder}", f"packtok data validate {folder}"]
        raw = server.page("/dataset/x")
        assert health(raw) == {"good": ["1 file present, as long as recorded"]}
        assert raw.all("pre")[-1] == f"packtok data validate {base}/x"
        file = server.page(f"/file/{TOKENIZED}/{SHARDS[1]}")
        assert health(file)["good"][:3] == [
            "all bytes verified",
            "trailer with valid checksum",
            "tokenizer gpt2 matches",
        ]
        assert file.all("pre")[-1] == f"packtok verify {folder}/{SHARDS[1]}"


def _removed(path: Path) -> None:
    path.unlink()


def _truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def _with_offsets(path: Path, change: Callable[[list[int]], None]) -> None:
    """Changes the offsets of documents in the trailer, without the checksum of that section."""
    content = path.read_bytes()
    section = reference.trailer_of(content)[reference.OFFSETS].content
    offsets = reference.u64s(section)
    change(offsets)
    path.write_bytes(content.replace(section, struct.pack(f"<{len(offsets)}Q", *offsets)))


def _tampered_index(path: Path) -> None:
    def change(offsets: list[int]) -> None:
        offsets[1] += 2

    _with_offsets(path, change)


def _disordered_index(path: Path) -> None:
    def change(offsets: list[int]) -> None:
        offsets[1], offsets[2] = offsets[2], offsets[1]

    _with_offsets(path, change)


def _changed_token(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[12] ^= 1
    path.write_bytes(content)


def _other_file(path: Path) -> None:
    corpus = write_corpus(path.parents[4] / "other.jsonl", ["another text"])
    packtok.pack(input=corpus, output=path, tokenizer="gpt2", existing="replace")


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (_removed, "no such file below the folder that is served"),
        (_truncated, "the file is truncated or damaged"),
        (_tampered_index, "trailer section of type 1 at bytes"),
        (_disordered_index, "document 1 spans data bytes"),
        (_changed_token, "data at bytes 12.."),
        (_other_file, "bytes: found "),
    ],
)
def test_damaged_file_is_listed_with_its_error(
    base: Path, damage: Callable[[Path], None], error: str
) -> None:
    damage(base / TOKENIZED / SHARDS[0])
    with served_folder(base) as server:
        page = server.page(f"/dataset/{TOKENIZED}")
        (fault,) = page.all("li", class_="fault")
        assert fault == "1 of 2 files missing, damaged or changed"
        broken, whole = page.rows("grid")
        assert broken[0].startswith(f"{SHARDS[0]} ")
        assert error in broken[0]
        assert TOKENIZED not in broken[0]
        assert whole[0] == SHARDS[1]
        assert server.get(f"/documents/{TOKENIZED}/{SHARDS[1]}").status == 200
        answer = server.get(f"/file/{TOKENIZED}/{SHARDS[0]}")
        if answer.status == 200 and damage is not _other_file:
            (fault,) = Page(answer.text).all("li", class_="fault")
            assert fault.startswith("damaged: ")
            assert error in fault
        assert "/proc/self/fd" not in answer.text + page.html


def test_index_of_a_large_file_is_checked_without_reading_its_data(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "MAX_VERIFIED_BYTES", 0)
    _changed_token(base / TOKENIZED / SHARDS[0])
    _tampered_index(base / TOKENIZED / SHARDS[1])
    with served_folder(base) as server:
        assert "fault" not in health(server.page(f"/file/{TOKENIZED}/{SHARDS[0]}"))
        (fault,) = server.page(f"/file/{TOKENIZED}/{SHARDS[1]}").all("li", class_="fault")
        assert fault.startswith("damaged: trailer section of type 1 at bytes")


def test_missing_texts_and_counts_are_in_the_health_line(base: Path) -> None:
    (base / "x" / "raw" / "c.jsonl").write_text('{"text": "shorter"}\n')
    details_path = base / TOKENIZED / "metadata.packtok.json"
    details = json.loads(details_path.read_text()) | {"tokenizer_fingerprint": "sha256:0"}
    details_path.write_text(json.dumps(details))
    for name in SHARDS:
        _change_metadata(base / TOKENIZED / name, {"rejected": 2, "eods_in_text": 0})
    with served_folder(base) as server:
        assert health(server.page("/dataset/x"))["fault"] == ["1 of 1 file missing, damaged or changed"]
        lines = health(server.page(f"/dataset/{TOKENIZED}"))
        assert any(text.endswith("the metadata says sha256:0") for text in lines["fault"])
        assert lines["note"] == ["documents rejected: 4"]
        (base / "x" / "raw" / "c.jsonl").unlink()
        assert "no such file" in server.page("/dataset/x").rows("grid")[0][0]


def _change_metadata(path: Path, counts: dict[str, Any]) -> None:
    content = path.read_bytes()
    metadata = json.loads(reference.trailer_of(content)[reference.METADATA].content)
    metadata["counts"] |= counts
    path.write_bytes(reference.with_sections(content, {reference.METADATA: json.dumps(metadata).encode()}))


def test_wrong_count_and_missing_trailer_are_in_the_health_line_of_a_file(base: Path) -> None:
    wrong, plain = (base / TOKENIZED / name for name in SHARDS)
    _change_metadata(wrong, {"documents": 7_000})
    plain.write_bytes(reference.without_trailer(plain.read_bytes()))
    with served_folder(base) as server:
        (fault,) = server.page(f"/file/{TOKENIZED}/{SHARDS[0]}").all("li", class_="fault")
        assert fault.startswith("damaged: the trailer counts 7,000 documents, the file has ")
        assert health(server.page(f"/file/{TOKENIZED}/{SHARDS[1]}"))["note"] == [
            "no trailer, so that checksums and counts are unknown",
            "the tokenizer is not recorded",
            "EODs inside texts: unknown",
            "documents rejected: unknown",
        ]


@pytest.mark.parametrize("has_index", [False, True])
def test_metadata_that_cannot_be_read_is_in_the_list_of_datasets(base: Path, has_index: bool) -> None:
    (base / "y").mkdir()
    (base / "y" / "metadata.json").write_text("{")
    outside = base.parent / "outside"
    write_metadata(outside, name="x")
    (outside / "metadata.json").write_text("secret")
    (base / "z").symlink_to(outside)
    if has_index:
        build_index(base)
    with served_folder(base) as server:
        page = server.page("/")
        assert "y/metadata.json" in page.text
        (reason,) = page.all("p", class_="fault")
        assert reason.startswith("not valid JSON: ")
        assert str(base) not in page.html
        assert "z/metadata.json" not in page.text
        assert not server.page("/?q=something").all("p", class_="fault")
        assert notes(server.get("/dataset/y").text)[0].startswith("y/metadata.json: not valid JSON: ")
