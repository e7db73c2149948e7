"""`--origins`: where each document came from, in every format, whatever happens in between."""

from __future__ import annotations

import contextlib
import csv
import functools
import gzip
import io
import json
import os
import pickle
import signal
from collections.abc import Callable
from pathlib import Path

import cbor2
import pytest
import reference
import yaml
import zstandard
from command_line import PacktokCli
from corpus_files import SEPARATOR, WRITERS, documents, write_parquet
from extent import extent
from processes import SLOW_FIELD, start, wait_for_spans, write_corpus
from stories import TOKENIZER

import packtok
from packtok import PacktokError, PbinFormatError, PbinReader

TEXTS = documents(300, seed=5)


def lines_of(texts: list[str]) -> bytes:
    """Returns JSON lines with a BOM, blank lines, lines without documents, and no final line feed."""
    lines = [json.dumps({"n": i, "text": text}).encode() for i, text in enumerate(texts)]
    lines[5:5] = [b"", b"  \t", b'{"n": 1}']
    return b"\xef\xbb\xbf" + b"\n".join(lines)


def write_lines(path: Path) -> None:
    path.write_bytes(lines_of(TEXTS))


def text_at_byte(path: Path, offset: int) -> str:
    """Returns the text of the JSON line, CSV row, CBOR item or plain text at a byte of a file."""
    content = path.read_bytes()
    if path.suffix in (".gz", ".zst"):
        content = gzip.decompress(content) if path.suffix == ".gz" else zstandard.decompress(content)
    rest = content[offset:]
    kind = path.name.split(".")[1]
    if kind == "jsonl":
        text: str = json.loads(rest.partition(b"\n")[0])["text"]
        return text
    if kind == "csv":
        return next(csv.reader(io.StringIO(rest.decode(), newline="")))[1]
    if kind == "cbor":
        return cbor2.load(io.BytesIO(rest))["text"]
    return rest.decode().partition(SEPARATOR)[0]


FORMATS: dict[str, Callable[[Path], object]] = {
    "c.jsonl": write_lines,
    "c.jsonl.gz": lambda path: path.write_bytes(gzip.compress(lines_of(TEXTS))),
    "c.jsonl.zst": lambda path: path.write_bytes(zstandard.compress(lines_of(TEXTS))),
    **{
        name: functools.partial(lambda name, path: WRITERS[name](path, TEXTS), name)
        for name in ("c.csv", "c.cbor", "c.txt", "c.parquet", "c.arrow")
    },
}


def pack(inputs: Path | list[Path], output: Path, **options: object) -> PbinReader:
    options = {"tokenizer": TOKENIZER, "origins": True, "on_bad_document": "skip", **options}
    packtok.pack(input=inputs, output=output, **options)  # type: ignore[arg-type]
    return PbinReader(output)


@pytest.mark.parametrize("name", FORMATS)
def test_every_document_is_found_at_its_origin(tmp_path: Path, name: str) -> None:
    source = tmp_path / name
    FORMATS[name](source)
    options = {"text_separator": "\x1e\\n"} if name == "c.txt" else {}
    reader = pack(source, tmp_path / "o.pbin", **options)
    is_table = name in ("c.parquet", "c.arrow")
    tokenizer = packtok.Tokenizer.from_file(TOKENIZER)
    assert len(reader) > 280
    for i in range(len(reader)):
        origin = reader.origin(i)
        assert origin is not None
        assert (origin.source, origin.source_index) == (name, 0)
        assert origin.unit == ("row" if is_table else "byte")
        text = TEXTS[origin.offset] if is_table else text_at_byte(source, origin.offset)
        assert [*tokenizer.encode(text), reader[i][-1]] == reader[i].tolist()
    oracle = reference.read_pbin(tmp_path / "o.pbin")
    assert oracle.origins == [(0, reader.origin(i).offset) for i in range(len(reader))]  # type: ignore[union-attr]
    assert oracle.sources[0]["format"] == {"c.txt": "text"}.get(name, name.split(".")[1])
    section = reference.trailer_of((tmp_path / "o.pbin").read_bytes())[reference.ORIGINS].content
    assert len(section) <= 6 * len(reader)
    assert packtok.verify(str(tmp_path / "o.pbin"))["documents"] == len(reader)
    counts = packtok.verify_origins(str(tmp_path / "o.pbin"), str(tmp_path))
    assert counts == {"documents": len(reader), "compared": len(reader)}
    some = packtok.verify_origins(str(tmp_path / "o.pbin"), str(tmp_path), sample=0.3)
    assert some["documents"] == len(reader)
    assert 40 < some["compared"] < 160


def test_without_the_option_nothing_changes(tmp_path: Path) -> None:
    write_lines(tmp_path / "c.jsonl")
    reader = pack(tmp_path / "c.jsonl", tmp_path / "o.pbin", origins=False)
    assert reader.origin(0) is None
    assert reader.documents_of_source(0) is None
    assert reference.ORIGINS not in reference.trailer_of((tmp_path / "o.pbin").read_bytes())
    assert "format" not in reader.sources[0]
    with pytest.raises(
        PacktokError,
        match="does not record the origins of its documents; pack it with packtok pack --origins",
    ):
        packtok.verify_origins(str(tmp_path / "o.pbin"), str(tmp_path))


def test_indices_are_checked_and_origins_compare(tmp_path: Path) -> None:
    write_lines(tmp_path / "c.jsonl")
    reader = pack(tmp_path / "c.jsonl", tmp_path / "o.pbin")
    assert reader.origin(-1) == reader.origin(len(reader) - 1) != reader.origin(0)
    assert len({reader.origin(0), reader.origin(0), reader.origin(1)}) == 2
    assert str(reader.origin(0)) == "c.jsonl: byte 3"
    assert repr(reader.origin(0)) == "Origin(source='c.jsonl', source_index=0, offset=3, unit=\"byte\")"
    assert pickle.loads(pickle.dumps(reader.origin(1))) == reader.origin(1)
    with pytest.raises(ValueError, match="expected byte, row or document"):
        packtok.Origin("c.jsonl", 0, 0, "line")
    for i in (len(reader), -len(reader) - 1):
        with pytest.raises(IndexError, match="out of range"):
            reader.origin(i)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with a large file, small and compressed ones, an empty one; a table is next to it."""
    folder = tmp_path_factory.mktemp("corpus") / "lines"
    folder.mkdir()
    write_corpus(folder / "a.jsonl", 700_000, bad_every=30, seed=1)
    (folder / "b.jsonl").write_bytes(b"")
    for i in range(5):
        write_corpus(folder / f"c{i}.jsonl", 20_000, bad_every=9, seed=2 + i)
    content = write_corpus(folder / "d.jsonl", 100_000, bad_every=30, seed=20).read_bytes()
    (folder / "d.jsonl").unlink()
    (folder / "d.jsonl.zst").write_bytes(zstandard.compress(content))
    write_parquet(folder.parent / "e.parquet", list(TEXTS))
    return folder


def test_output_does_not_depend_on_threads_or_shards(corpus: Path, tmp_path: Path) -> None:
    inputs = [corpus, corpus.parent / "e.parquet"]
    whole = pack(inputs, tmp_path / "one.pbin", num_cpus=1)
    assert pack(inputs, tmp_path / "two.pbin", num_cpus=2).path.read_bytes() == whole.path.read_bytes()
    for num_shards in (2, 7):
        folder = tmp_path / f"shards{num_shards}"
        options = {"input": inputs, "output": folder, "tokenizer": TOKENIZER, "origins": True}
        packtok.plan(shards=num_shards, **options)  # type: ignore[arg-type]
        for k in range(num_shards):
            packtok.pack(shard=k, on_bad_document="skip", **options)  # type: ignore[arg-type]
        shards = sorted(folder.glob("shard-*.pbin"))
        for shard in shards:
            # A shard can be verified by itself, because it names its own sources.
            counts = packtok.verify_origins(str(shard), str(corpus.parent))
            assert counts["compared"] == len(PbinReader(shard))
        packtok.join(str(folder), output=str(tmp_path / f"joined{num_shards}.pbin"))
        assert (tmp_path / f"joined{num_shards}.pbin").read_bytes() == whole.path.read_bytes()
    assert packtok.verify_origins(str(whole.path), str(corpus.parent))["compared"] == len(whole)
    # All documents of each source are consecutive, and the ranges cover the file.
    stop = 0
    for i, source in enumerate(whole.sources):
        documents_here = whole.documents_of_source(i)
        assert documents_here is not None
        assert documents_here[0] == stop
        stop = documents_here[1]
        assert {whole.origin(k).source for k in range(*documents_here)} <= {source["path"]}  # type: ignore[union-attr]
    assert stop == len(whole)


def test_killed_run_resumes_with_the_same_origins(corpus: Path, tmp_path: Path) -> None:
    options = {"field": SLOW_FIELD, "span_bytes": 30_000}
    expected = pack(corpus / "a.jsonl", tmp_path / "expected.pbin", **options)
    flags = ("-f", SLOW_FIELD, "--set", "span_bytes=30000", "--origins", "--on-bad-document", "skip", "-q")
    arguments = ("pack", "-i", corpus / "a.jsonl", "-o", "o.pbin", "-t", TOKENIZER, *flags)
    num_kills = 0
    for spans in (4, 6, 7, 2, 2, 2):
        if num_kills == extent(3, 1):
            break
        process = start(*arguments, cwd=tmp_path)
        wait_for_spans(process, tmp_path, spans)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        if (tmp_path / "o.pbin.partial").exists():
            num_kills += 1
        else:
            # On a busy machine, a run may end before it is killed.
            for path in tmp_path.glob("o.pbin*"):
                path.unlink()
    assert num_kills
    process = start(*arguments, "--existing", "skip", cwd=tmp_path)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert (tmp_path / "o.pbin").read_bytes() == expected.path.read_bytes()


def test_a_limit_keeps_the_origins_of_the_documents_that_remain(corpus: Path, tmp_path: Path) -> None:
    whole = pack(corpus / "a.jsonl", tmp_path / "whole.pbin")
    for limits in ({"max_documents": 70}, {"max_tokens": 2_000}):
        reader = pack(corpus / "a.jsonl", tmp_path / f"{next(iter(limits))}.pbin", **limits)
        assert 0 < len(reader) < len(whole)
        assert [reader.origin(i) for i in range(len(reader))] == [whole.origin(i) for i in range(len(reader))]
        assert packtok.verify_origins(str(reader.path), str(corpus))["compared"] == len(reader)


def test_merged_files_count_sources_from_the_first(tmp_path: Path) -> None:
    parts = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_lines(tmp_path / name / f"{name}.jsonl")
        parts.append(pack(tmp_path / name / f"{name}.jsonl", tmp_path / f"{name}.pbin"))
    packtok.merge([str(part.path) for part in parts], output=str(tmp_path / "m.pbin"))
    merged = PbinReader(tmp_path / "m.pbin")
    origins = [merged.origin(i) for i in range(len(merged))]
    assert [origin.source for origin in origins if origin] == ["a.jsonl"] * len(parts[0]) + ["b.jsonl"] * len(
        parts[1]
    )
    assert [origin and origin.offset for origin in origins] == [
        part.origin(i).offset
        for part in parts
        for i in range(len(part))  # type: ignore[union-attr]
    ]
    assert reference.read_pbin(merged.path).origins is not None
    assert packtok.verify(str(merged.path))["documents"] == len(merged)


def test_merging_files_with_and_without_origins_is_refused(tmp_path: Path) -> None:
    write_lines(tmp_path / "c.jsonl")
    pack(tmp_path / "c.jsonl", tmp_path / "with.pbin")
    pack(tmp_path / "c.jsonl", tmp_path / "without.pbin", origins=False)
    parts = [str(tmp_path / "with.pbin"), str(tmp_path / "without.pbin")]
    for order in (parts, parts[::-1]):
        with pytest.raises(PacktokError, match=r"option origins.* (on|off), .* it is (on|off)"):
            packtok.merge(order, output=str(tmp_path / "m.pbin"))
        assert not (tmp_path / "m.pbin").exists()


def test_inputs_with_fields_of_their_own_are_read_with_them(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    for name, key in (("a", "text"), ("b", "body")):
        (tmp_path / "raw" / name).mkdir(parents=True)
        lines = (json.dumps({key: f"{name} {i} some words"}) + "\n" for i in range(40))
        (tmp_path / "raw" / name / f"{name}.jsonl").write_text("".join(lines))
        metadata = {"name": name, "dataset_path": str(tmp_path / "raw" / name), "description": "d"}
        metadata |= {"date_downloaded": "2026-01-01", "download_source": "s", "data_content": "text"}
        (tmp_path / "raw" / name / "metadata.json").write_text(json.dumps(metadata | {"content_field": key}))
    flags = ("-t", TOKENIZER, "--output-dir", "out", "--origins")
    packtok_cli("tokenize", "raw/a", "raw/b", *flags, cwd=tmp_path)
    (output,) = (tmp_path / "out").glob("*.pbin")
    assert packtok.verify_origins(str(output), str(tmp_path / "raw"))["compared"] == 80


def changed(path: Path, change: Callable[[bytes], bytes]) -> None:
    content = change(path.read_bytes())
    path.unlink()
    path.write_bytes(content)


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    """Returns a pbin of 80 documents; the corpus is in the folder ``raw``."""
    (tmp_path / "raw").mkdir()
    lines = (json.dumps({"text": f"document {i:03} of the corpus"}) + "\n" for i in range(80))
    (tmp_path / "raw" / "c.jsonl").write_text("".join(lines))
    return pack(tmp_path / "raw" / "c.jsonl", tmp_path / "o.pbin").path


def test_a_changed_record_is_named(packed: Path) -> None:
    source = packed.parent / "raw" / "c.jsonl"
    changed(source, lambda content: content.replace(b"document 007", b"document 077"))
    offset = source.read_bytes().index(b'{"text": "document 077')
    with pytest.raises(PacktokError) as caught:
        packtok.verify_origins(str(packed), str(source.parent))
    message = f"{packed}: document 7 differs from {source}, byte {offset} at token "
    assert str(caught.value).startswith(message)


def test_a_moved_record_is_named(packed: Path) -> None:
    source = packed.parent / "raw" / "c.jsonl"
    changed(source, lambda content: content.replace(b'{"text": "document 007', b' {"text":"document 007'))
    packtok.verify_origins(str(packed), str(source.parent))  # The line starts where it did.
    changed(source, lambda content: b" \n" + content[2:])
    with pytest.raises(
        PacktokError, match=r"document 0 came from .*c.jsonl, byte 0, but no document starts there"
    ):
        packtok.verify_origins(str(packed), str(source.parent))


def test_a_source_of_another_length_or_a_missing_one_is_named(packed: Path) -> None:
    source = packed.parent / "raw" / "c.jsonl"
    changed(source, lambda content: content + b"\n")
    with pytest.raises(PacktokError, match=r"c.jsonl: has \d+ bytes, but had \d+ when it was packed"):
        packtok.verify_origins(str(packed), str(source.parent))
    source.unlink()
    with pytest.raises(FileNotFoundError, match=r"c\.jsonl"):
        packtok.verify_origins(str(packed), str(source.parent))


@pytest.mark.parametrize("path", ["../raw/c.jsonl", "/etc/passwd", "a/../../c.jsonl", ""])
def test_a_hostile_file_cannot_name_sources_outside_the_folder(packed: Path, path: str) -> None:
    line = json.dumps({"path": path, "bytes": 1, "format": "jsonl"}).encode() + b"\n"
    changed(packed, lambda file: reference.with_sections(file, {reference.SOURCES: line}))
    with pytest.raises(PacktokError, match="not a path below a folder, so it is not read"):
        packtok.verify_origins(str(packed), str(packed.parent / "raw"))


def test_damaged_origins_are_errors_and_never_wrong(packed: Path) -> None:
    file = packed.read_bytes()
    section = reference.trailer_of(file)[reference.ORIGINS].content
    num_documents = len(PbinReader(packed))
    damaged = [section[:-1], section + b"\0", b"\xff" * len(section), section[16:], b""]
    damaged.append(reference.origins_section([(7, i) for i in range(num_documents)]))
    # A longer encoding of the same origins.
    offsets = [offset for _, offset in reference.origins_of(section, num_documents)]
    long_form = reference.origins_section([(i % 2, offset) for i, offset in enumerate(offsets)])
    damaged.append(long_form)
    for content in damaged:
        packed.unlink()
        packed.write_bytes(reference.with_sections(file, {reference.ORIGINS: content}))
        with pytest.raises(PbinFormatError):
            packtok.verify(str(packed))
        try:
            reader = PbinReader(packed)
        except PbinFormatError:
            continue
        for i in range(num_documents):
            with contextlib.suppress(PbinFormatError):
                reader.origin(i)


def test_documents_packed_by_an_index_have_the_origin_of_their_entry(packed: Path) -> None:
    source = packed.parent / "raw" / "c.jsonl"
    lines = source.read_bytes().splitlines(keepends=True)
    starts = [sum(map(len, lines[:i])) for i in range(len(lines))]
    entries = [(starts[i], len(lines[i]) - 1) for i in (5, 3, 9)]
    index = packed.parent / "c.idx"
    index.write_bytes(pickle.dumps(entries, protocol=4))
    reader = pack(source, packed.parent / "indexed.pbin", index_path=index)
    assert [reader.origin(i).offset for i in range(3)] == [start for start, _ in entries]  # type: ignore[union-attr]
    with pytest.raises(
        PacktokError, match="as if packed by an index; compare the file with packtok verify --corpus CONFIG"
    ):
        packtok.verify_origins(str(reader.path), str(source.parent))


def test_documents_of_a_plugin_are_numbered(tmp_path: Path) -> None:
    (tmp_path / "plug.py").write_text("def docs(corpus):\n    return (f'{corpus} {i}' for i in range(9))\n")
    reader = pack(Path("a"), tmp_path / "o.pbin", source=f"{tmp_path}/plug.py:docs")
    assert [str(reader.origin(i)) for i in (0, 8)] == ["a: document 0", "a: document 8"]
    with pytest.raises(
        PacktokError, match="is of a source plug-in; compare the file with packtok verify --corpus CONFIG"
    ):
        packtok.verify_origins(str(reader.path), str(tmp_path))


def test_commands_show_origins(packed: Path, packtok_cli: PacktokCli) -> None:
    folder = packed.parent
    output = packtok_cli("cat", "o.pbin", "-d", "0:2", cwd=folder).stdout
    assert "--- document 1, " in output
    assert ", from c.jsonl: byte 39" in output
    (document,) = json.loads(packtok_cli("cat", "o.pbin", "-d", "1", "--json", cwd=folder).stdout)
    assert document["origin"] == {"source": "c.jsonl", "offset": 39, "unit": "byte"}
    config = {"dataset": {"paths": str(packed), "context_length": 16}, "loader": {"global_batch_size": 1}}
    (folder / "run.yaml").write_text(yaml.safe_dump(config))
    (row,) = json.loads(packtok_cli("locate", "run.yaml", "--step", "0", "--json", cwd=folder).stdout)
    for part in row["documents"]:
        assert part["origin"] == PbinReader(packed).origin(part["document"]).to_dict()  # type: ignore[union-attr]
    output = packtok_cli("locate", "run.yaml", "--step", "0", cwd=folder).stdout
    assert f"(from c.jsonl: byte {row['documents'][0]['origin']['offset']})" in output
    verified = packtok_cli("verify", "o.pbin", "--origins", "raw", "--json", cwd=folder)
    assert json.loads(verified.stdout)["compared with their origins"] == 80
    inspected = json.loads(packtok_cli("inspect", "o.pbin", "--json", cwd=folder).stdout)
    assert inspected["metadata"]["options"]["origins"] is True
    failed = packtok_cli("verify", "o.pbin", "--origins", "elsewhere", cwd=folder, code=1)
    assert "elsewhere/c.jsonl" in failed.stderr
    os.remove(folder / "o.pbin.tokenizer.json")
    failed = packtok_cli("verify", "o.pbin", "--origins", "raw", cwd=folder, code=2)
    assert "no tokenizer found next to the file; give --tokenizer" in failed.stderr
