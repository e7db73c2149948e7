"""Manifests: their contents, opening without opening files, and detecting changed files."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pbins
import pytest
import reference
from command_line import PacktokCli

import packtok
from packtok import PacktokError, PbinFormatError, write_manifest
from packtok._packtok import Blocks

FILES = [[[1, 2, 9], [3, 9]], [[4, 9]], [], [[], [5, 6, 7, 9]]]
DOCUMENTS = [document for documents in FILES for document in documents]
FLAT = [token for document in DOCUMENTS for token in document]


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    """Returns four files in a separate folder; one is empty, and one has no trailer."""
    (tmp_path / "data").mkdir()
    return [
        pbins.write(tmp_path / "data" / f"{number}.pbin", documents, trailer=number != 1)
        for number, documents in enumerate(FILES)
    ]


@pytest.fixture
def manifest(tmp_path: Path, paths: list[Path]) -> Path:
    """Returns the manifest of the four files, in the parent folder."""
    write_manifest(paths, tmp_path / "all.jsonl")
    return tmp_path / "all.jsonl"


def opened(manifest: Path, **options: Any) -> Blocks:
    return Blocks(manifest=manifest, **{"packing": "whole", **options})


def message(kind: type[Exception], manifest: Path) -> str:
    with pytest.raises(kind) as caught:
        opened(manifest)[:]
    return str(caught.value)


def entry(path: Path, name: str, documents: list[list[int]]) -> dict[str, Any]:
    """Returns the expected manifest entry of a file."""
    content = path.read_bytes()
    tokens = sum(map(len, documents))
    facts = {
        "path": name,
        "file_bytes": len(content),
        "token_bytes": 2,
        "documents": len(documents),
        "tokens": tokens,
    }
    if content.endswith(reference.TAIL_MAGIC):
        return {**facts, "trailer_crc32c": pbins.trailer_crc32c(path)}
    return {**facts, "index_crc32c": reference.crc32c(content[12 + 2 * tokens :])}


def test_lines_describe_the_files(paths: list[Path], tmp_path: Path) -> None:
    counts = write_manifest(paths, tmp_path / "all.jsonl")
    assert counts == {"files": 4, "documents": 5, "tokens": 11}
    lines = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    assert lines == [
        entry(path, f"data/{path.name}", documents) for path, documents in zip(paths, FILES, strict=True)
    ]


def test_single_path_is_one_source(
    paths: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # Split into characters, "data" would be four files.
    for source, names in (
        ("data", [path.name for path in paths]),
        (tmp_path / "data", [path.name for path in paths]),
        ("data/0.pbin", ["0.pbin"]),
        (paths[3], ["3.pbin"]),
        ("data/[01].pbin", ["0.pbin", "1.pbin"]),
    ):
        write_manifest(source, "one.jsonl", existing="replace")
        lines = [json.loads(line) for line in Path("one.jsonl").read_text().splitlines()]
        assert [line["path"] for line in lines] == [f"data/{name}" for name in names]
        write_manifest([source], "same.jsonl", existing="replace")
        assert Path("same.jsonl").read_bytes() == Path("one.jsonl").read_bytes()
    with pytest.raises(FileNotFoundError) as caught:
        write_manifest("nothing.pbin", "none.jsonl")
    assert caught.value.filename == "nothing.pbin"
    text = f"{tmp_path / 'empty'}: no .pbin file in this folder; tokenize the corpus first"
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=f"^{re.escape(text)}, "):
        write_manifest(tmp_path / "empty", "none.jsonl")
    with pytest.raises(ValueError, match=r"^the list of pbins is empty; give at least one$"):
        write_manifest([], "none.jsonl")
    assert not Path("none.jsonl").exists()


def test_items_equal_those_of_the_files(paths: list[Path], manifest: Path) -> None:
    for options in ({"packing": "whole"}, {"packing": "fixed", "block_size": 3}):
        listed, direct = opened(manifest, **options), Blocks(paths, **options)  # type: ignore[arg-type]
        assert [item.tolist() for item in listed[:]] == [item.tolist() for item in direct[:]]
        assert listed.fingerprint == direct.fingerprint
        assert listed.paths == direct.paths
        assert (listed.num_tokens, listed.num_documents) == (11, 5)
        by_one = [listed[i].tolist() for i in range(len(listed))]
        assert by_one == [direct[i].tolist() for i in range(len(direct))]
    assert [item.tolist() for item in opened(manifest)[:]] == DOCUMENTS


def test_files_and_manifest_can_be_moved_together(
    tmp_path: Path, manifest: Path, paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = opened(manifest).fingerprint
    moved = tmp_path / "moved"
    moved.mkdir()
    paths[0].parent.rename(moved / "data")
    manifest.rename(moved / "all.jsonl")
    blocks = opened(moved / "all.jsonl")
    assert [item.tolist() for item in blocks[:]] == DOCUMENTS
    assert blocks.fingerprint == before
    monkeypatch.chdir(moved)
    assert [item.tolist() for item in opened(Path("all.jsonl"))[:]] == DOCUMENTS


def test_paths_are_relative_to_the_manifest(tmp_path: Path, paths: list[Path]) -> None:
    for place, name in (("data", "0.pbin"), ("lists/of", "../../data/0.pbin")):
        target = tmp_path / place / "m.jsonl"
        write_manifest(paths[:1], target)
        assert json.loads(target.read_text())["path"] == name
        assert opened(target)[1].tolist() == FILES[0][1]


def test_files_are_opened_only_when_needed(manifest: Path, paths: list[Path]) -> None:
    for path in paths[1:]:
        path.unlink()
    blocks = opened(manifest, packing="fixed", block_size=2, overlap=1)
    assert (len(blocks), blocks.num_tokens, blocks.dtype) == (10, 11, np.dtype(np.uint16))
    assert blocks[:4][-1].tolist() == FLAT[3:5]
    pickle.loads(pickle.dumps(blocks))
    with pytest.raises(FileNotFoundError) as caught:
        blocks[4]
    assert caught.value.filename == str(paths[1])


@pytest.mark.parametrize(
    ("documents", "width", "trailer", "what"),
    [
        ([[1, 2, 9], [3, 9], [1]], 2, True, "file_bytes is {}, expected {}"),
        ([[1, 2], [9, 3, 9]], 2, True, "trailer_crc32c is {}, expected {}"),
        ([[1, 2, 9], [4, 9]], 2, True, "trailer_crc32c is {}, expected {}"),
    ],
)
def test_replaced_file_is_named(
    manifest: Path, paths: list[Path], documents: list[list[int]], width: int, trailer: bool, what: str
) -> None:
    old = (paths[0].stat().st_size, pbins.trailer_crc32c(paths[0]))
    pbins.write(paths[0], documents, width, trailer=trailer)
    new = (paths[0].stat().st_size, pbins.trailer_crc32c(paths[0]))
    which = 0 if "file_bytes" in what else 1
    assert message(PacktokError, manifest) == (
        f"{paths[0]}: {what.format(new[which], old[which])}; "
        "the file was replaced since it was listed or first opened"
    )


def test_truncated_file_is_damaged(manifest: Path, paths: list[Path]) -> None:
    paths[3].write_bytes(paths[3].read_bytes()[:-8])
    assert message(PbinFormatError, manifest).startswith(f"{paths[3]}: ")


def test_replaced_manifest_is_reported_on_reopening(manifest: Path, paths: list[Path]) -> None:
    old = opened(manifest)
    pickled = pickle.dumps(old)
    assert len(pickled) < 1000
    write_manifest(paths[::-1], manifest, existing="replace")
    with pytest.raises(PacktokError) as caught:
        pickle.loads(pickled)
    assert str(caught.value) == (
        f"{manifest}: the fingerprint of the listed files is {opened(manifest).fingerprint}, expected "
        f"{old.fingerprint}; the manifest was replaced since it was first opened"
    )


def test_invalid_lines_are_named(manifest: Path) -> None:
    first, *rest = manifest.read_text().splitlines()
    lie = {**json.loads(first), "tokens": 10**6}
    huge = {**lie, "tokens": 2**63, "token_bytes": 1, "file_bytes": 2**64 - 1}
    problem = "{} tokens of {} bytes do not fit in {} bytes; the manifest entry is wrong"
    impossible = f"{manifest.parent / 'data/0.pbin'}: {problem}"
    for line, expected in (
        (json.dumps(lie), impossible.format(10**6, 2, lie["file_bytes"])),
        (json.dumps({**lie, "token_bytes": 3}), impossible.format(10**6, 3, lie["file_bytes"])),
        (json.dumps({**lie, "tokens": 2**64 - 1}), impossible.format(2**64 - 1, 2, lie["file_bytes"])),
    ):
        manifest.write_text("\n".join([line, *rest]))
        assert message(PbinFormatError, manifest) == expected
    manifest.write_text("\n".join([json.dumps(huge)] * 2))
    assert "the total exceeds 2^64 tokens or documents" in message(PbinFormatError, manifest)
    for line in ("{", '{"path":"a"}', "[]", json.dumps({**lie, "tokens": -1})):
        manifest.write_text("\n".join([first, "", line, *rest]))
        assert message(PbinFormatError, manifest).startswith(f"{manifest}:3: not a valid manifest entry: ")
    manifest.write_text("")
    assert message(ValueError, manifest) == "no pbin given; give at least one"


def test_incompatible_files_are_rejected(tmp_path: Path, paths: list[Path]) -> None:
    target = tmp_path / "new.jsonl"
    wide = pbins.write(tmp_path / "wide.pbin", [[1]], 4)
    with pytest.raises(PacktokError, match=r"tokens are 4 bytes wide, in .* they are 2"):
        write_manifest([paths[0], wide], target)
    named = [pbins.write(tmp_path / f"{name}.pbin", [[1]], tokenizer=name, eod_id=1) for name in "ab"]
    with pytest.raises(PacktokError, match=r"b\.pbin: tokenizer is b, in .*a\.pbin it is a"):
        write_manifest(named, target)
    with pytest.raises(PbinFormatError):
        write_manifest([paths[0], Path(__file__)], target)
    assert not target.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pbin", "b.pbin", "data", "wide.pbin"]


def test_existing_manifest_is_kept_unless_replaced(manifest: Path, paths: list[Path]) -> None:
    before = manifest.read_bytes()
    with pytest.raises(FileExistsError):
        write_manifest(paths[:1], manifest)
    with pytest.raises(ValueError, match="existing is 'skip', expected 'error' or 'replace'"):
        write_manifest(paths[:1], manifest, existing="skip")
    assert manifest.read_bytes() == before
    write_manifest(paths[:1], manifest, existing="replace")
    assert manifest.read_bytes() == before.splitlines(keepends=True)[0]


def test_command_writes_the_manifest(packtok_cli: PacktokCli, paths: list[Path], tmp_path: Path) -> None:
    target = tmp_path / "all.jsonl"
    done = packtok_cli("manifest", tmp_path / "data", "-o", target)
    assert done.stdout.split() == ["files", "4", "documents", "5", "tokens", "11"]
    assert [item.tolist() for item in opened(target)[:]] == DOCUMENTS
    done = packtok_cli("manifest", *paths, "--output", target, code=1)
    assert "already exists" in done.stderr
    done = packtok_cli("manifest", tmp_path / "data/[01].pbin", "-o", target, "--existing", "replace", "-q")
    assert done.stdout == ""
    assert len(opened(target)) == 3
    assert packtok_cli("manifest", paths[0], code=2).stderr
    done = packtok_cli("manifest", tmp_path / "no*", "-o", target, code=2)
    assert "no file matches" in done.stderr


def test_files_that_record_little_are_listed_as_the_caller_says(
    packtok_cli: PacktokCli, tmp_path: Path
) -> None:
    np.array([5, 6, 0, 7, 0], np.uint16).tofile(tmp_path / "a.bin")
    np.array([8, 0], np.uint16).tofile(tmp_path / "b.bin")
    done = packtok_cli("manifest", "a.bin", "-o", "x.jsonl", cwd=tmp_path, code=1)
    assert "set --input-dtype, as uint16" in done.stderr
    for boundaries, documents in (((), 2), (("--boundaries", "eos=0"), 3)):
        reading = ("--input-dtype", "uint16", *boundaries, "--existing", "replace")
        done = packtok_cli("manifest", "a.bin", "b.bin", "-o", "all.jsonl", *reading, cwd=tmp_path)
        assert done.stdout.split() == ["files", "2", "documents", str(documents), "tokens", "7"]
        dataset = packtok.TokenDataset(
            tmp_path / "all.jsonl", 3, input_dtype="uint16", boundaries="eos=0" if boundaries else None
        )
        assert [row["input_ids"].tolist() for row in dataset] == [[5, 6, 0], [7, 0, 8]]
        assert dataset.num_documents == documents


def test_manifest_of_ten_thousand_files_opens_without_opening_them(tmp_path: Path) -> None:
    line = entry(pbins.write(tmp_path / "one.pbin", [[1, 2, 3]]), "one.pbin", [[1, 2, 3]])
    lines = [json.dumps({**line, "path": f"{i}.pbin"}) for i in range(10_000)]
    lines[7_777] = json.dumps(line)
    (tmp_path / "all.jsonl").write_text("\n".join(lines))
    blocks = opened(tmp_path / "all.jsonl")
    assert (len(blocks), blocks.num_tokens) == (10_000, 30_000)
    assert blocks[7_777].tolist() == [1, 2, 3]
    rows = opened(tmp_path / "all.jsonl", packing="fixed", block_size=3)
    assert rows[-2_223].tolist() == [1, 2, 3]
    assert rows.locate(7_777) == [(str(tmp_path / "one.pbin"), 0, 0, 3)]
    with pytest.raises(FileNotFoundError):
        blocks[7_778]
