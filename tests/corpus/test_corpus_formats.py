"""Files of another format than they are read as, and endless filters: each fails with one helpful line."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import tarfile
import zipfile
from pathlib import Path

import pytest
import zstandard
from command_line import PacktokCli
from extent import extent
from stories import TOKENIZER

import packtok
from packtok.commands.count import count

GOOD = b'{"text": "hello one"}\n{"text": "hello two"}\n'


def zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.jsonl", GOOD)
    return file.getvalue()


def tarred() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        member = tarfile.TarInfo("a.jsonl")
        member.size = len(GOOD)
        archive.addfile(member, io.BytesIO(GOOD))
    return file.getvalue()


# File contents, and their names in the message. These are errors regardless of `on_bad_document`.
BINARY = {
    "parquet.jsonl": (b"PAR1" + bytes(99), "a Parquet file"),
    "arrow.jsonl": (b"ARROW1\0\0" + bytes(99), "an Arrow (Feather) file"),
    "a.jsonl.xz": (lzma.compress(GOOD), "compressed with xz"),
    "a.jsonl.bz2": (bz2.compress(GOOD), "compressed with bzip2"),
    "a.jsonl.lz4": (b"\x04\x22\x4d\x18" + bytes(99), "compressed with lz4"),
    "a.zip": (zipped(), "a zip archive"),
    "a.tar": (tarred(), "a tar archive"),
    "a.tar.gz": (gzip.compress(tarred()), "a tar archive"),
    "parquet.jsonl.zst": (zstandard.compress(b"PAR1" + bytes(99)), "a Parquet file"),
    "twice.jsonl.gz": (gzip.compress(gzip.compress(GOOD)), "a gzip file within a compressed file"),
    "twice.jsonl.zst": (zstandard.compress(zstandard.compress(GOOD)), "a zstd file within a compressed file"),
    "bom16.jsonl": (GOOD.decode().encode("utf-16"), "UTF-16 text (little-endian)"),
    "le.jsonl": (GOOD.decode().encode("utf-16-le"), "UTF-16 text (little-endian)"),
    "be.jsonl": (GOOD.decode().encode("utf-16-be"), "UTF-16 text (big-endian)"),
}
# These formats are detected only after the first line fails; when skipping, their lines are bad documents.
TEXT = {
    "csv.jsonl": (b'id,text\n1,hello\n2,"a, b"\n', "a table of comma-separated values (CSV)"),
    "tsv.jsonl": (b"id\ttext\n1\thello\n", "a table of tab-separated values (TSV)"),
    "array.json": (b'[\n {"text": "a"},\n {"text": "b"}\n]\n', "a JSON array"),
    "line.json": (b'[{"text": "a"}, {"text": "b"}]', "a JSON array"),
    "array.json.gz": (gzip.compress(b'[\n{"text": "a"}\n]'), "a JSON array"),
    "pretty.json": (b'{\n  "text": "a"\n}\n', "JSON with objects that span several lines"),
    "book.jsonl": (b"Once upon a time\nthere was a fox.\n", "plain text"),
}


@pytest.mark.parametrize("name", [*BINARY, *TEXT])
def test_file_of_another_format_is_named(tmp_path: Path, name: str) -> None:
    content, what = {**BINARY, **TEXT}[name]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(packtok.DocumentError) as raised:
        packtok.pack(input=path, output=tmp_path / "out.pbin", tokenizer=TOKENIZER, eod="<|endoftext|>")
    message = str(raised.value)
    assert message.startswith(f"{path}: is {what}, not JSON lines; ")
    assert "malformed" not in message
    with pytest.raises(packtok.DocumentError) as counted:
        count(path, [TOKENIZER])
    assert str(counted.value) == message
    if name in BINARY:
        with pytest.raises(packtok.DocumentError) as skipped:
            count(path, [TOKENIZER], on_bad_document="skip")
        assert str(skipped.value) == message
    else:
        assert count(path, [TOKENIZER], on_bad_document="skip")["total"]["rejected"] >= 1


def test_every_command_names_the_format(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    bad = tmp_path / "a.jsonl"
    common = ["--tokenizer", TOKENIZER, "--eod", "<|endoftext|>"]
    commands = [
        ["pack", "-i", bad, "-o", tmp_path / "x.pbin", *common],
        ["count", bad, "--tokenizer", TOKENIZER],
        ["index", bad],
    ]
    # Before it reads the corpus, it compares the engines, which takes seconds.
    verify = ["tokenizer", "verify", TOKENIZER, "--corpus", bad]
    for (content, what), some in (
        (BINARY["parquet.jsonl"], extent([*commands, verify], commands)),
        (TEXT["csv.jsonl"], [*commands, verify]),
    ):
        bad.write_bytes(content)
        for arguments in some:
            done = packtok_cli(*arguments, code=1)
            lines = done.stderr.strip().splitlines()
            message = f"{bad}: is {what}, not JSON lines; rename it"
            if arguments[0] == "index":
                message = f"{bad}: is {what}, but a raw index lists lines of JSON; pack the file without one"
            assert message in lines[-1], arguments
            assert "Traceback" not in done.stderr
    # Planning sees only the first bytes of its first file, and no lines.
    bad.write_bytes(BINARY["parquet.jsonl"][0])
    done = packtok_cli("plan", "-i", bad, "-o", tmp_path / "y.pbin", *common, "--shards", 2, code=1)
    assert f"{bad}: is a Parquet file, not JSON lines" in done.stderr


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(GOOD, id="plain"),
        pytest.param(b"\xef\xbb\xbf" + GOOD, id="bom"),
        pytest.param(b"\n \n" + GOOD, id="blank"),
        pytest.param(gzip.compress(GOOD), id="gzip"),
        pytest.param(zstandard.compress(GOOD), id="zstd"),
    ],
)
@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.jsonl.zst", "a.json", "a"])
def test_json_lines_are_read_under_any_file_name(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert count(path, [TOKENIZER])["total"]["documents"] == 2


@pytest.mark.parametrize("first", ['{"text": "ab', 'b"}', "garbage", "a,b", "# comment", '[{"text": 1}'])
def test_bad_first_line_is_still_a_bad_document(tmp_path: Path, first: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(first.encode() + b"\n" + GOOD)
    total = count(path, [TOKENIZER], on_bad_document="skip")["total"]
    assert (total["documents"], total["rejected"]) == (2, 1)
    with pytest.raises(packtok.DocumentError, match=r"a.jsonl:1: byte 0: malformed JSON"):
        count(path, [TOKENIZER])


# These filters reach their limits only after a second or more.
SLOWER_FILTERS = [
    "def f(g): f(g,g); f(.)",
    "def o(g): def i: o(i); i; o(.)",
    "[limit(1e12; repeat(.))]",
    "jn(2147483647; 1e9)",
    'null|path(getpath([range(1000000)|"a"]))|tojson',
    "[range(10)]|combinations(12)|select(false)",
    '[limit(200; repeat("x" * 60000000))]|tojson',
]


@pytest.mark.parametrize(
    "field",
    [
        "def f(g): f(g|g); f(.)",
        "def f: f; f",
        "[range(1e12)]",
        '"x" * 1e9',
        *extent(SLOWER_FILTERS, []),
    ],
)
def test_endless_filter_is_a_bad_document(tmp_path: Path, packtok_cli: PacktokCli, field: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(GOOD)
    done = packtok_cli("count", path, "--tokenizer", TOKENIZER, "--field", field, code=1)
    last = done.stderr.strip().splitlines()[-1]
    assert f"{path}:1: byte 0: filter {field} exceeds a limit on this document: " in last
    assert "; simplify --field, or skip such documents with --on-bad-document skip" in last
    done = packtok_cli(
        "count", path, "--tokenizer", TOKENIZER, "--field", field, "--on-bad-document", "skip", "--json"
    )
    assert json.loads(done.stdout)["total"]["rejected"] == 2


@pytest.mark.parametrize(
    "field",
    ["(" * 30_000, "." + "|." * 16_000, "-" * 32_000 + "1", "try " * 8_000 + ".", "[" * 40_000, "(" * 99_999],
)
def test_deeply_nested_filter_is_rejected(tmp_path: Path, packtok_cli: PacktokCli, field: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(GOOD)
    done = packtok_cli("count", path, "--tokenizer", TOKENIZER, "--field", field, code=1)
    assert "jq pattern" in done.stderr
    assert len(done.stderr) < 2000


@pytest.mark.parametrize(
    ("field", "meant"), [("text", ".text"), ("meta.text", ".meta.text"), ("input", ".input")]
)
def test_forgotten_dot_is_suggested(tmp_path: Path, packtok_cli: PacktokCli, field: str, meant: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(GOOD)
    flag = packtok_cli("count", path, "--tokenizer", TOKENIZER, "--field", field, code=1).stderr
    assert f"did you mean {meant}?" in flag
    with pytest.raises(ValueError, match=f"did you mean {meant}\\?"):
        packtok.pack(
            input=path, output=tmp_path / "x.pbin", tokenizer=TOKENIZER, field=field, eod="<|endoftext|>"
        )


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Returns a folder with data that is read, data that is not read, and files without data."""
    folder = tmp_path / "mixed"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.jsonl").write_bytes(GOOD)
    (folder / "b.json.gz").write_bytes(gzip.compress(GOOD))
    (folder / "c.NDJSON").write_bytes(GOOD)
    (folder / "d.jsonl.xz").write_bytes(lzma.compress(GOOD))
    (folder / "sub" / "e.jsonl.part").write_bytes(GOOD[:20])
    (folder / "notes.txt").write_text("about this corpus")
    (folder / "README.md").write_text("# About this corpus\n")
    (folder / "dataset_info.json").write_text("{}")
    return folder


UNREAD = (
    "mixed: files look like data but cannot be read: d.jsonl.xz (unsupported compression), "
    "sub/e.jsonl.part (unfinished); finish, convert or extract them, or leave them out with --ignore "
    '(ignore), such as --ignore "*.xz"'
)
# The message of commands without a config.
UNREAD_BY_FLAG = UNREAD.replace(" (ignore)", "")
LEAVING_OUT = ("--ignore", "*.xz", "--ignore", "sub")
IGNORED = [
    ("d.jsonl.xz", "ignore"),
    ("dataset_info.json", "metadata"),
    ("sub", "ignore"),
    ("notes.txt", "note"),
]


@pytest.mark.parametrize(
    "command",
    [
        ("pack", "-i", "mixed", "-t", TOKENIZER, "-o", "o.pbin"),
        ("plan", "-i", "mixed", "-t", TOKENIZER, "-o", "shards", "--shards", "2"),
        ("count", "mixed", "-t", TOKENIZER),
        ("run", "--no-submit", "tokenize", "mixed", "-t", TOKENIZER, "-o", "out"),
        ("data", "create-metadata", "--yes", "--dataset-path", "mixed", "--output", "mixed/metadata.json"),
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_folder_with_data_that_cannot_be_read_is_an_error_until_it_is_left_out(
    mixed: Path, packtok_cli: PacktokCli, command: tuple[str, ...]
) -> None:
    done = packtok_cli(*command, cwd=mixed.parent, code=1)
    has_config = command[0] in ("pack", "plan")
    assert done.stderr.splitlines()[-1] == f"packtok: {UNREAD if has_config else UNREAD_BY_FLAG}"
    assert sorted(path.name for path in mixed.parent.iterdir() if path.name != "shards") == ["mixed"]
    packtok_cli(*command, *LEAVING_OUT, cwd=mixed.parent)


def test_files_that_are_read_and_ignored_are_reported(mixed: Path, packtok_cli: PacktokCli) -> None:
    folder = mixed.parent
    pack = ("pack", "-i", "mixed", "-t", TOKENIZER, "-o", "o.pbin", *LEAVING_OUT)
    report = json.loads(packtok_cli(*pack, "--json", cwd=folder).stdout)
    assert report["sources"] == ["mixed/a.jsonl", "mixed/b.json.gz", "mixed/c.NDJSON"]
    assert (report["num_sources"], report["documents"]) == (3, 6)
    ignored = [{"path": f"mixed/{name}", "reason": reason} for name, reason in IGNORED]
    assert report["ignored"] == ignored
    table = packtok_cli(*pack, "--existing", "replace", cwd=folder).stdout
    assert (
        "ignored        4: mixed/d.jsonl.xz (ignore), mixed/dataset_info.json (metadata), mixed/sub "
        "(ignore), mixed/notes.txt (note)\n"
    ) in table
    counted = packtok_cli("count", "mixed", "-t", TOKENIZER, *LEAVING_OUT, "--json", cwd=folder)
    assert json.loads(counted.stdout)["ignored"] == ignored
    plan = ("plan", "-i", "mixed", "-t", TOKENIZER, "-o", "shards", "-n", "2", *LEAVING_OUT)
    assert json.loads(packtok_cli(*plan, "--json", cwd=folder).stdout)["ignored"] == ignored
    assert "mixed/notes.txt (note)" in packtok_cli(*plan, cwd=folder).stdout
    # Files that the chosen format leaves out cause no error.
    (mixed / "f.csv").write_text("text\nx\n")
    chosen = packtok_cli(
        *pack[:-4], "--format", "csv", "--ignore", "sub", "--json", "-o", "c.pbin", cwd=folder
    )
    assert {file["reason"] for file in json.loads(chosen.stdout)["ignored"]} == {
        "format",
        "metadata",
        "ignore",
    }


def test_description_leaves_out_the_same_files_when_it_is_validated(
    mixed: Path, packtok_cli: PacktokCli
) -> None:
    create = ("data", "create-metadata", "--yes", "--dataset-path", mixed, "--output", mixed / "m.json")
    created = packtok_cli(*create, *LEAVING_OUT, "--json")
    assert json.loads(created.stdout)["details"]["ignore"] == ["*.xz", "sub"]
    packtok_cli("data", "validate", mixed / "m.json")
    wrong = packtok_cli("data", "validate", mixed / "m.json", "--ignore", "nothing", code=1)
    assert "files look like data but cannot be read: d.jsonl.xz" in wrong.stdout


def test_stream_of_a_folder_with_data_that_cannot_be_read_is_an_error(mixed: Path) -> None:
    from packtok.stream import CheckpointableDataset

    with pytest.raises(ValueError, match=r"files look like data but cannot be read: d\.jsonl\.xz"):
        CheckpointableDataset.from_files(mixed)
    dataset = CheckpointableDataset.from_files(mixed, ignore=["*.xz", "sub"], n_active_shards=1)
    assert [sample["text"] for sample in dataset] == ["hello one", "hello two"] * 3


def test_token_file_as_input_is_named(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    (tmp_path / "c.jsonl").write_bytes(GOOD)
    packtok_cli("pack", "-i", "c.jsonl", "-t", TOKENIZER, "-o", "o.pbin", cwd=tmp_path)
    (tmp_path / "raw.bin").write_bytes(bytes(range(0, 200, 2)) * 20 + bytes(64))
    (tmp_path / "m.idx").write_bytes(b"MMIDIDX\0\0" + bytes(99))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "o.pbin").write_bytes((tmp_path / "o.pbin").read_bytes())
    of_tokens = "give the texts that the tokens were made from; packtok.TokenDataset reads token files"
    for name, message in (
        ("o.pbin", f"is a pbin, a file of packed tokens, not JSON lines; {of_tokens}"),
        ("raw.bin", f"is a file of tokens, not JSON lines; {of_tokens}"),
        ("m.idx", f"is an index of token files, not JSON lines; {of_tokens}"),
        (
            "folder",
            "the folder contains token files such as o.pbin, not a corpus; give the texts that they were "
            "made from",
        ),
    ):
        command = ("pack", "-i", name, "-t", TOKENIZER, "-o", "x.pbin", "--on-bad-document", "skip")
        assert packtok_cli(*command, cwd=tmp_path, code=1).stderr == f"packtok: {name}: {message}\n"
