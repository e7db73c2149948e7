"""A merged file equals one that is packed at once; incompatible or damaged parts are rejected."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import oracle
import pytest
import reference
from command_line import PacktokCli
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import packtok
from packtok.commands.merge import merge

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    return oracle.byte_level(tmp_path / "tokenizer.json")


def pack(corpus: Path | list[Path], output: Path, tokenizer: Path | str, **options: Any) -> Path:
    inputs = [str(path) for path in corpus] if isinstance(corpus, list) else str(corpus)
    packtok.pack(input=inputs, output=output, tokenizer=str(tokenizer), **({"existing": "replace"} | options))
    return output


def assert_equal(merged: Path, at_once: Path) -> None:
    """Asserts that header, data, index, offsets, checksums and counts are equal."""
    content, other = merged.read_bytes(), at_once.read_bytes()
    pbin, expected = reference.read_pbin(merged), reference.read_pbin(at_once)
    common = len(reference.modalities_bytes(expected.documents, expected.width))
    assert content[:common] == other[:common]
    sections, expected_sections = reference.trailer_of(content), reference.trailer_of(other)
    assert sections[reference.OFFSETS] == expected_sections[reference.OFFSETS]
    assert sections[reference.DATA_CHECKSUMS] == expected_sections[reference.DATA_CHECKSUMS]
    assert pbin.documents == expected.documents
    assert pbin.metadata is not None
    assert expected.metadata is not None
    parts = pbin.metadata.pop("parts")
    assert pbin.metadata == expected.metadata
    assert sum(part["documents"] for part in parts) == len(pbin.documents)
    assert sum(part["tokens"] for part in parts) == sum(map(len, pbin.documents))


@pytest.mark.whole
def test_merging_parts_of_real_corpora(shared: Path, tmp_path: Path) -> None:
    for name, key, cuts in [
        ("redpajama/train", "raw_content", (3, 200, 511)),
        ("modalities/lorem_long", "text", (250,)),
    ]:
        lines = oracle.lines_of(shared / f"{name}.jsonl")
        bounds = [0, *cuts, len(lines)]
        corpora, parts = [], []
        for i, (start, stop) in enumerate(itertools.pairwise(bounds)):
            corpus = tmp_path / f"{key}{i}.jsonl"
            corpus.write_bytes(b"".join(line + b"\n" for line in lines[start:stop]))
            options = {"field": f".{key}", "eod": oracle.EOD}
            parts.append(pack(corpus, tmp_path / f"{key}{i}.pbin", shared / "tokenizers/gpt2", **options))
            corpora.append(corpus)
        at_once = pack(corpora, tmp_path / "at_once.pbin", shared / "tokenizers/gpt2", **options)
        merged = tmp_path / f"{key}.pbin"
        report = merge([str(part) for part in parts], str(merged))
        assert report["num_parts"] == len(parts)
        assert_equal(merged, at_once)
        assert reference.read_pbin(merged).sources == reference.read_pbin(at_once).sources
        theirs = (shared / f"{name}.pbin").read_bytes()
        assert merged.read_bytes()[: len(theirs)] == theirs


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
@given(
    corpora=st.lists(st.lists(TEXT, max_size=6), min_size=1, max_size=4),
    empty=st.sampled_from(["skip", "keep"]),
)
def test_merging_equals_packing_at_once(
    tmp_path: Path, tokenizer: Path, corpora: list[list[str]], empty: str
) -> None:
    sources, parts = [], []
    for i, texts in enumerate(corpora):
        sources.append(oracle.write_lines(tmp_path / f"{i}.jsonl", texts))
        parts.append(pack(sources[-1], tmp_path / f"{i}.pbin", tokenizer, empty_document=empty))
    at_once = pack(sources, tmp_path / "at_once.pbin", tokenizer, empty_document=empty)
    merged = tmp_path / "merged.pbin"
    merge([str(part) for part in parts], str(merged), existing="replace")
    assert_equal(merged, at_once)
    # The documents do not depend on the order of merging.
    nested = tmp_path / "nested.pbin"
    merge([str(parts[0])], str(nested), existing="replace")
    for part in parts[1:]:
        again = tmp_path / "again.pbin"
        merge([str(nested), str(part)], str(again), existing="replace")
        again.replace(nested)
    assert_equal(nested, at_once)


def test_checksums_recombine_if_parts_end_inside_a_checksum_chunk(tmp_path: Path, tokenizer: Path) -> None:
    sources, parts = [], []
    for i, num_texts in enumerate((3, 900, 2000, 1)):
        source = oracle.write_lines(
            tmp_path / f"{i}.jsonl", [f"document {i} {j} " + "xyz" * 150 for j in range(num_texts)]
        )
        sources.append(source)
        parts.append(pack(source, tmp_path / f"{i}.pbin", tokenizer))
    at_once = pack(sources, tmp_path / "at_once.pbin", tokenizer)
    assert len(reference.read_pbin(at_once).crcs) >= 3
    merge([str(part) for part in parts], str(tmp_path / "merged.pbin"))
    assert_equal(tmp_path / "merged.pbin", at_once)


def test_single_path_is_one_part(tmp_path: Path, tokenizer: Path) -> None:
    (tmp_path / "parts").mkdir()
    part = pack(
        oracle.write_lines(tmp_path / "a.jsonl", ["one", "two"]), tmp_path / "parts" / "a.pbin", tokenizer
    )
    for source in (str(part), part, part.parent, str(part.parent)):
        merged = tmp_path / "merged.pbin"
        merge(source, str(merged), existing="replace")
        assert_equal(merged, part)


def test_parts_are_listed_and_their_sources_kept(tmp_path: Path, tokenizer: Path) -> None:
    texts = {"one": ["a", ""], "two": ["the", "b"]}
    parts = []
    for name, lines in texts.items():
        corpus = oracle.write_lines(tmp_path / f"{name}.jsonl", lines)
        parts.append(pack(corpus, tmp_path / f"{name}.pbin", tokenizer))
    merge([str(part) for part in parts], str(tmp_path / "merged.pbin"))
    pbin = reference.read_pbin(tmp_path / "merged.pbin")
    assert pbin.metadata is not None
    data = [part.read_bytes()[12:][: int.from_bytes(part.read_bytes()[:8], "little")] for part in parts]
    assert pbin.metadata["parts"] == [
        {"name": "one.pbin", "documents": 1, "tokens": 2, "data_crc32c": reference.crc32c(data[0])},
        {"name": "two.pbin", "documents": 2, "tokens": 4, "data_crc32c": reference.crc32c(data[1])},
    ]
    assert [source["path"] for source in pbin.sources] == ["one.jsonl", "two.jsonl"]
    assert str(tmp_path).encode() not in (tmp_path / "merged.pbin").read_bytes()


@pytest.fixture
def parts(tmp_path: Path, tokenizer: Path) -> list[Path]:
    """Returns two compatible parts."""
    texts = {"one": ["a thing", "b"], "two": ["the", "c"]}
    return [
        pack(oracle.write_lines(tmp_path / f"{name}.jsonl", lines), tmp_path / f"{name}.pbin", tokenizer)
        for name, lines in texts.items()
    ]


def refused(
    parts: list[Path], output: Path, error: type[Exception] = packtok.PacktokError, **options: Any
) -> str:
    """Returns the error of a merge that must fail and leave no files."""
    before = sorted(output.parent.iterdir())
    with pytest.raises(error) as caught:
        merge([str(part) for part in parts], str(output), **options)
    assert sorted(output.parent.iterdir()) == before
    return str(caught.value)


def test_parts_with_other_tokenizers_or_options_are_rejected(
    tmp_path: Path, tokenizer: Path, parts: list[Path]
) -> None:
    corpus, output, other = tmp_path / "two.jsonl", tmp_path / "out.pbin", tmp_path / "other.pbin"
    first = parts[0]

    def differs(what: str, value: str, expected: str) -> str:
        return (
            f"{other}: {what} is {value}, in {first} it is {expected}; pack all parts with the same options"
        )

    second = oracle.byte_level(tmp_path / "second.json", merges=(("t", "h"),))
    pack(corpus, other, second)
    prints = [packtok.Tokenizer.from_file(str(path)).fingerprint for path in (second, tokenizer)]
    expected = differs("tokenizer fingerprint", *(f'"{print}"' for print in prints))
    assert refused([first, other], output) == expected

    for option, value, changed, before in [
        ("empty_document", "keep", '"keep"', '"skip"'),
        ("special_tokens_in_text", "text", '"text"', '"parse"'),
        ("add_special_tokens", False, "false", "true"),
        ("max_document_bytes", 999, "999", "1073741824"),
        ("max_documents", 1, "1", "unset"),
        ("max_tokens", 9, "9", "unset"),
        ("field", '.["text"]|.', r'".[\"text\"]|."', '".text"'),
    ]:
        pack(corpus, other, tokenizer, **{option: value})
        assert refused([first, other], output) == differs(option, changed, before)

    pack(corpus, other, tokenizer, eod="<|bos|>")
    assert refused([first, other], output) == differs(
        "EOD", '"<|bos|>" with id 301', '"<|endoftext|>" with id 300'
    )
    pack(corpus, other, tokenizer, bos="<|bos|>")
    assert refused([first, other], output) == differs("BOS", '"<|bos|>" with id 301', "unset")


def test_parts_with_another_token_width_are_rejected(tmp_path: Path, parts: list[Path]) -> None:
    wide = oracle.byte_level(tmp_path / "wide.json", vocab_size=70_000)
    other = pack(tmp_path / "two.jsonl", tmp_path / "other.pbin", wide)
    message = refused([parts[0], other], tmp_path / "out.pbin")
    assert str(other) in message
    assert str(parts[0]) in message
    assert "4" in message
    assert "2" in message


def test_parts_without_trailer_need_a_tokenizer(tmp_path: Path, tokenizer: Path, parts: list[Path]) -> None:
    plain = tmp_path / "plain.pbin"
    documents = reference.read_pbin(parts[1]).documents
    for origin in (0, 12):
        plain.write_bytes(reference.modalities_bytes(documents, 2, origin))
        assert str(plain) in refused([parts[0], plain], tmp_path / "out.pbin")
        merged = tmp_path / f"merged{origin}.pbin"
        merge([str(parts[0]), str(plain)], str(merged), tokenizer=str(tokenizer))
        assert reference.read_pbin(merged).documents == reference.read_pbin(parts[0]).documents + documents
    other = oracle.byte_level(tmp_path / "other.json", merges=(("t", "h"),))
    assert str(parts[0]) in refused([parts[0], plain], tmp_path / "out.pbin", tokenizer=str(other))


@pytest.mark.parametrize("where", ["data", "offsets", "metadata", "tail", "cut"])
def test_damaged_part_is_rejected(tmp_path: Path, parts: list[Path], where: str) -> None:
    whole = parts[1].read_bytes()
    places: dict[str, Callable[[], int]] = {
        "data": lambda: 13,
        "offsets": lambda: whole.index(reference.START_MAGIC) + 9,
        "metadata": lambda: whole.index(b'"counts"'),
        "tail": lambda: len(whole) - 20,
    }
    if where == "cut":
        parts[1].write_bytes(whole[:-1])
    else:
        at = places[where]()
        parts[1].write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    message = refused(parts, tmp_path / "out.pbin", packtok.PbinFormatError)
    assert str(parts[1]) in message


def test_existing_output_is_kept_by_default(tmp_path: Path, parts: list[Path]) -> None:
    output = tmp_path / "out.pbin"
    output.write_bytes(b"precious")
    refused(parts, output, FileExistsError)
    assert output.read_bytes() == b"precious"
    assert str(output) in refused(parts, output, packtok.PbinFormatError, existing="skip")
    merge([str(part) for part in parts], str(output), existing="replace")
    before = output.stat()
    assert merge([str(part) for part in parts], str(output), existing="skip")["skipped_existing"]
    after = output.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    message = refused(parts[::-1], output, existing="skip")
    start = f"{output}: the existing output differs from what this run would write: its list of parts is "
    assert message.startswith(start)
    message = refused(parts[:1], output, existing="skip")
    assert "its list of parts is 2 parts, expected 1 parts" in message


def test_output_is_not_a_part(tmp_path: Path, parts: list[Path]) -> None:
    before = parts[0].read_bytes()
    assert str(parts[0]) in refused(parts, parts[0], ValueError, existing="replace")
    assert parts[0].read_bytes() == before


def test_command_reports_its_result(tmp_path: Path, parts: list[Path], packtok_cli: PacktokCli) -> None:
    packtok_cli("merge", *parts, tmp_path / "out.pbin", cwd=tmp_path)
    facts = json.loads(packtok_cli("inspect", "out.pbin", "--json", cwd=tmp_path).stdout)
    assert facts["documents"] == 4
    done = packtok_cli("merge", *parts, tmp_path / "out.pbin", cwd=tmp_path, code=1)
    assert len(done.stderr.splitlines()) == 1
    assert "out.pbin" in done.stderr


def test_files_of_other_formats_are_joined(tmp_path: Path) -> None:
    for name in ("a", "b"):
        oracle.write_lines(tmp_path / f"{name}.jsonl", [f"one {name}", f"and two {name}"])
        pack(tmp_path / f"{name}.jsonl", tmp_path / f"{name}.pbin", "gpt2")
        packtok.convert(tmp_path / f"{name}.pbin", tmp_path / "x" / name, to="megatron")
    merge([str(tmp_path / "a.pbin"), str(tmp_path / "b.pbin")], str(tmp_path / "pbins.pbin"))
    expected = reference.read_pbin(tmp_path / "pbins.pbin").documents
    for parts in ([tmp_path / "x"], [tmp_path / "a.pbin", tmp_path / "x" / "b"]):
        joined = merge(list(map(str, parts)), str(tmp_path / "joined.pbin"), existing="replace")
        assert (joined["documents"], joined["tokens"]) == (4, sum(map(len, expected)))
        assert reference.read_pbin(tmp_path / "joined.pbin").documents == expected
        metadata = packtok.PbinReader(tmp_path / "joined.pbin").metadata
        assert metadata["tokenizer"] == packtok.PbinReader(tmp_path / "a.pbin").metadata["tokenizer"]
