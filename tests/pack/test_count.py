"""`packtok count` and `packtok tokenizer`: counts against the wheel, output, and failures."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import oracle
import pytest
import zstandard
from command_line import PacktokCli
from extent import extent
from small_tokenizers import unsplit_unigram, wheel_of, word_piece, write_tokenizer
from tokenizers import pre_tokenizers

import packtok
from packtok.cli.count import aligned, chart, grouped, show_rich, table
from packtok.commands.count import count

TEXTS = {
    "a.jsonl": ["Hello world", "Grüße aus Köln", "", "a<|endoftext|>b"],
    "sub/b.jsonl.gz": ["数 🙂 " * 30, "def f(x):\n    return x\n"],
    "sub/c.jsonl.zst": ["x"] * 500,
}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    (folder / "sub").mkdir(parents=True)
    for name, texts in TEXTS.items():
        path = oracle.write_lines(folder / name, texts)
        if name.endswith(".gz"):
            path.write_bytes(gzip.compress(path.read_bytes()))
        if name.endswith(".zst"):
            path.write_bytes(zstandard.compress(path.read_bytes()))
    return folder


def expected_of(name: str, texts: list[str], **options: Any) -> int:
    wheel = wheel_of(packtok.Tokenizer.from_pretrained(name))
    return sum(map(len, oracle.encode(wheel, texts, **options)))


@pytest.mark.parametrize("num_cpus", extent([1, 3], [3]))
def test_counts_equal_those_of_the_wheel(corpus: Path, tmp_path: Path, num_cpus: int) -> None:
    word_piece().save(str(tmp_path / "word_piece.json"))
    names = ["gpt2", "cl100k_base", str(tmp_path / "word_piece.json")]
    report = count(corpus, names, num_cpus=num_cpus)
    assert [Path(source["path"]).relative_to(corpus).as_posix() for source in report["sources"]] == list(
        TEXTS
    )
    for source, texts in zip(report["sources"], TEXTS.values(), strict=True):
        assert source["tokens"] == [expected_of(name, texts) for name in names]
        # The empty text is not an empty document, because WordPiece adds tokens to it.
        assert (source["documents"], source["lines"], source["empty"]) == (len(texts), len(texts), 0)
        assert source["text_bytes"] == sum(len(text.encode()) for text in texts)
    total = report["total"]
    for key in ("documents", "lines", "text_bytes"):
        assert total[key] == sum(source[key] for source in report["sources"])
    per_source = [source["tokens"] for source in report["sources"]]
    assert total["tokens"] == [sum(numbers) for numbers in zip(*per_source, strict=True)]
    assert total["bytes_per_token"] == [total["text_bytes"] / tokens for tokens in total["tokens"]]
    assert [tokenizer["name"] for tokenizer in report["tokenizers"]] == [
        "gpt2",
        "cl100k_base",
        "word_piece.json",
    ]
    without = count(corpus, names[2:], num_cpus=num_cpus, add_special_tokens=False)["total"]
    texts = [text for texts in TEXTS.values() for text in texts]
    assert without["tokens"] == [expected_of(names[2], texts, add_special_tokens=False)]
    assert (without["documents"], without["empty"]) == (len(texts) - 1, 1)


def test_counts_equal_what_packing_writes(corpus: Path, tmp_path: Path) -> None:
    lines = [
        b'{"text": "a b"}',
        b"",
        b'{"text": 5}',
        b'{"other": 1}',
        b'{"text": ""}',
        b"{",
        b'{"text": "c"}',
    ]
    (corpus / "bad.jsonl").write_bytes(b"\n".join(lines))
    report = packtok.pack(
        input=corpus, output=tmp_path / "c.pbin", tokenizer="gpt2", on_bad_document="skip", num_cpus=2
    )
    total = count(corpus, ["gpt2"], on_bad_document="skip")["total"]
    # A single name is one tokenizer, not a list of letters.
    assert count(corpus, "gpt2", on_bad_document="skip")["total"] == total
    counts = [total[name] for name in ("lines", "documents", "empty", "blank", "rejected")]
    assert counts == [report.lines, report.packed, report.empty, report.blank, report.rejected]
    assert counts[1:] == [report.documents, 2, 1, 3]
    # Packing adds an EOD to each document, since no text here ends with one.
    assert total["tokens"] == [report.tokens - report.documents]


@pytest.mark.parametrize("limit", [1, 3, 4, 5, 504])
def test_limit_ends_where_packing_ends(corpus: Path, tmp_path: Path, limit: int) -> None:
    report = packtok.pack(
        input=corpus, output=tmp_path / "c.pbin", tokenizer="gpt2", max_documents=limit, num_cpus=2
    )
    counted = count(corpus, ["gpt2"], max_documents=limit, num_cpus=2)
    total = counted["total"]
    assert (total["documents"], total["lines"]) == (report.documents, report.lines) == (limit, report.lines)
    assert total["tokens"] == [report.tokens - report.documents]
    assert counted["stopped_early"] == report.stopped_early


def test_jq_filter_selects_the_text(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('{"a": ["x", "Hello world"]}\n')
    report = count(path, ["gpt2"], field='.a | join(" ")')
    assert report["total"]["tokens"] == [expected_of("gpt2", ["x Hello world"])]


def test_bad_document_is_named(corpus: Path, packtok_cli: PacktokCli) -> None:
    (corpus / "a.jsonl").write_text('{"text": "a"}\n\n{"text": 5}\n')
    done = packtok_cli("count", "corpus", "-t", "gpt2", cwd=corpus.parent, code=1)
    assert done.stdout == ""
    assert re.fullmatch(
        r"packtok: corpus/a\.jsonl:3: byte 15: \.text is a number, not a string; .*\n", done.stderr
    )
    done = packtok_cli("count", "corpus", "-t", "gpt2", "--on-bad-document", "skip", cwd=corpus.parent)
    assert "lines 505 = 503 documents + 0 empty + 1 blank + 1 rejected" in done.stdout


def test_table_and_chart_are_plain_text_in_a_pipe(corpus: Path, packtok_cli: PacktokCli) -> None:
    done = packtok_cli("count", "corpus", "-t", "gpt2", "-t", "cl100k_base", "-j", "2", cwd=corpus.parent)
    lines = done.stdout.splitlines()
    header = [
        "source",
        "documents",
        "bytes",
        "gpt2 tokens",
        "bytes/token",
        "cl100k_base tokens",
        "bytes/token",
    ]
    assert re.split(r"  +", lines[0]) == header
    assert [line.split()[0] for line in lines[1:5]] == [*(f"corpus/{name}" for name in TEXTS), "total"]
    # All lines have the same width, and the columns are aligned.
    assert len({len(line) for line in lines[:5]}) == 1
    assert lines[6] == "bytes per token"
    assert max(line.count("█") for line in lines[7:9]) == 40
    assert re.fullmatch(
        r"lines 506 = 505 documents \+ 1 empty \+ 0 blank \+ 0 rejected; [0-9.]+ s on 2 threads", lines[10]
    )
    assert done.stderr == ""


def test_json_and_quiet_output(corpus: Path, packtok_cli: PacktokCli) -> None:
    done = packtok_cli("count", "corpus", "-t", "gpt2", "--json", cwd=corpus.parent)
    report = json.loads(done.stdout)
    assert report["total"] == count(corpus, ["gpt2"])["total"]
    done = packtok_cli("count", "corpus", "-t", "gpt2", "--quiet", cwd=corpus.parent)
    total = report["total"]
    assert done.stdout == (
        f"{total['documents']:,} documents, {total['text_bytes']:,} bytes; "
        f"gpt2 {total['tokens'][0]:,} tokens, {total['bytes_per_token'][0]:.3f} bytes per token\n"
    )


def test_two_tokenizers_with_one_name_are_distinguished(corpus: Path, tmp_path: Path) -> None:
    folders = [str(write_tokenizer(tmp_path / name / "same")) for name in ("x", "y")]
    report = count(corpus, folders)
    assert [tokenizer["name"] for tokenizer in report["tokenizers"]] == folders


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["count"], 2, "Missing argument 'CORPUS'"),
        (["count", "corpus"], 2, "Missing option '--tokenizer' / '-t'"),
        (["count", "none", "-t", "gpt2"], 1, "packtok: CORPUS: none: No such file or directory\n"),
        (["count", "corpus", "-t", "none.json"], 1, "packtok: none.json: no such tokenizer file or folder\n"),
        (
            ["count", "corpus", "-t", "gpt2", "--max-documents", "0"],
            2,
            "packtok: --max-documents: is 0; expected at least 1\n",
        ),
        (["count", "corpus", "-t", "gpt2", "--field", ".["], 1, "packtok: "),
        (["tokenizer", "inspect", "none.json"], 1, "packtok: none.json: no such tokenizer file or folder\n"),
        (
            ["tokenizer", "verify", "gpt2", "-c", "none"],
            1,
            "packtok: --corpus: none: No such file or directory\n",
        ),
    ],
)
def test_wrong_usage_is_reported_in_one_line(
    corpus: Path, packtok_cli: PacktokCli, arguments: list[str], code: int, message: str
) -> None:
    done = packtok_cli(*arguments, cwd=corpus.parent, code=code)
    assert message in done.stderr
    assert done.stdout == ""


def test_exception_in_progress_callback_ends_the_count(tmp_path: Path) -> None:
    # All words are new, which takes long enough for a progress report on any machine.
    texts = (" ".join(map(str, range(start, start + 1500))) for start in range(0, 3_000_000, 1500))
    corpus = oracle.write_lines(tmp_path / "c.jsonl", list(texts))
    seen: list[dict[str, int]] = []

    def stop(counts: dict[str, int]) -> None:
        seen.append(counts)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        count(corpus, ["gpt2"], num_cpus=1, on_progress=stop)
    assert len(seen) == 1
    assert seen[0]["bytes_read"] < seen[0]["total_bytes"] == corpus.stat().st_size


def counted(path: str, number: int) -> dict[str, Any]:
    return {
        "path": path,
        "documents": 1,
        "text_bytes": number,
        "tokens": [2 * number],
        "bytes_per_token": [0.5],
    }


def test_many_sources_are_grouped_by_folder_keeping_the_largest() -> None:
    few = [counted(f"f{i}", i) for i in range(20)]
    assert grouped(few) == [(f"f{i}", few[i]) for i in range(20)]
    by_folder = grouped([counted(f"d{i % 3}/f{i}", i) for i in range(30)])
    assert [label for label, _ in by_folder] == ["d0: 10 files", "d1: 10 files", "d2: 10 files"]
    assert by_folder[1][1] == {
        "documents": 10,
        "text_bytes": sum(range(1, 30, 3)),
        "tokens": [2 * sum(range(1, 30, 3))],
        "bytes_per_token": [0.5],
    }
    many = grouped([counted(f"d{i}/f", i) for i in range(100)])
    assert [label for label, _ in many] == [f"d{i}: 1 files" for i in range(81, 100)] + ["81 more folders"]
    assert sum(group["text_bytes"] for _, group in many) == sum(range(100))


def test_terminal_control_characters_are_escaped() -> None:
    source = counted("a\x1b[31m", 4)
    report = {"tokenizers": [{"name": "t\x07"}], "sources": [source | {"lines": 1}], "total": source}
    header, rows = table(report | {"stopped_early": False})
    assert header[3] == "t\\x07 tokens"
    assert rows[0] == ["a\\x1b[31m", "1", "4", "8", "0.500"]
    assert aligned([["a", "1"], ["bcd", "234"]]) == ["a      1", "bcd  234"]


@pytest.mark.parametrize(("columns", "is_table"), [(100, True), (60, False)])
def test_numbers_are_never_truncated_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: int, is_table: bool
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    header = ["source", "documents", "bytes", "one/[red]name tokens", "bytes/token"]
    rows = [["folder/" * 20, "1", "2", "1,234,567,890,123", "1.234"], ["total", "1", "2", "3", "4"]]
    show_rich(header, rows)
    out = capsys.readouterr().out
    assert all(cell in out for row in rows for cell in row[1:])
    assert "one/[red]name" in out
    assert (max(len(line) for line in out.splitlines()) <= columns) == is_table


def test_chart_has_no_bar_without_tokens() -> None:
    assert chart(["a", "bb"], [None, 2.0]) == [
        "bytes per token",
        " a  " + 40 * " " + "  -",
        "bb  " + 40 * "█" + "  2.000",
    ]


def test_inspect_shows_the_components_of_a_file(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    folder = write_tokenizer(tmp_path / "mine", {"eos_token": "</s>"})
    out = packtok_cli("tokenizer", "inspect", "mine", cwd=tmp_path).stdout
    tokenizer = packtok.Tokenizer.from_pretrained(folder)
    for row in (
        r"name +mine",
        r"file +mine/tokenizer\.json",
        rf"fingerprint +{tokenizer.fingerprint}",
        r"vocabulary +258 ids, of 2 bytes each in a pbin",
        r"EOS +'</s>'",
        r"engine +packtok: .*",
        r"special +'<s>' = 256, '</s>' = 257",
        r"model +BPE, 256 entries, 0 merges: applied by packtok",
        r"decoder +ByteLevel: used for decoding only; ids do not depend on it",
        r"truncation +none",
    ):
        assert re.search(f"^{row}$", out, re.M), row
    facts = json.loads(packtok_cli("tokenizer", "inspect", "mine", "--json", cwd=tmp_path).stdout)
    assert facts["path"] == "mine/tokenizer.json"
    assert [component["name"] for component in facts["components"] if component["is_used"]] == [
        "added_tokens",
        "pre_tokenizer",
        "model",
        "decoder",
    ]
    assert (
        json.loads(packtok_cli("tokenizer", "inspect", "gpt2", "--json", cwd=tmp_path).stdout)["path"] is None
    )


def test_inspect_explains_the_reference_engine(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    wheel = word_piece()
    wheel.pre_tokenizer = pre_tokenizers.Punctuation()
    wheel.enable_truncation(5)
    wheel.save(str(tmp_path / "w.json"))
    out = packtok_cli("tokenizer", "inspect", "w.json", cwd=tmp_path).stdout
    assert re.search(
        r"^engine +tokenizers 0\.23\.2: it is the engine of the tokenizers library; packtok's fast "
        r"engine does not cover this tokenizer, because its pre-tokenizer Punctuation does not remove "
        r"whitespace$",
        out,
        re.M,
    )
    assert re.search(r"^time +may be worse than linear in the length of a text; a pattern fails ", out, re.M)
    assert re.search(r"^normalizer +BertNormalizer: applied by tokenizers 0\.23\.2$", out, re.M)
    assert re.search(
        r'^post_processor +BertProcessing: adds "\[CLS\]" = 1 before and "\[SEP\]" = 2 after each document$',
        out,
        re.M,
    )
    assert re.search(r"^truncation +set: ignored: texts are not truncated; .*$", out, re.M)


@pytest.mark.parametrize(
    ("pre_tokenizer", "words"),
    [
        (pre_tokenizers.BertPreTokenizer(), "words that may contain an added token"),
        (pre_tokenizers.Whitespace(), "words not seen before"),
    ],
)
def test_inspect_names_words_that_fall_back_to_the_reference_engine(
    tmp_path: Path, packtok_cli: PacktokCli, pre_tokenizer: pre_tokenizers.PreTokenizer, words: str
) -> None:
    tokenizer = word_piece()
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.save(str(tmp_path / "w.json"))
    out = packtok_cli("tokenizer", "inspect", "w.json", cwd=tmp_path).stdout
    assert re.search(rf"^engine +packtok: .*; {words} fall back to tokenizers 0\.23\.2$", out, re.M)


def test_verify_compares_engines(corpus: Path, packtok_cli: PacktokCli, tmp_path: Path) -> None:
    folder = write_tokenizer(tmp_path / "mine")
    out = packtok_cli("tokenizer", "verify", folder, "--corpus", corpus, cwd=tmp_path).stdout
    assert re.search(r"^lines +506 = 505 documents \+ 1 empty \+ 0 blank \+ 0 rejected$", out, re.M)
    tokens = count(corpus, [str(folder)])["total"]["tokens"][0]
    assert re.search(rf"^tokens +{tokens:,}$", out, re.M)
    assert out.splitlines()[-1] == "packtok and tokenizers 0.23.2 give the same ids"


def test_verify_reports_if_there_is_nothing_to_compare(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    unsplit_unigram().save(str(tmp_path / "w.json"))
    out = packtok_cli("tokenizer", "verify", "w.json", cwd=tmp_path).stdout
    assert out.startswith("nothing to compare: w.json uses tokenizers 0.23.2")


def test_comparing_no_documents_fails(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    (tmp_path / "c.jsonl").write_text('{"body": "a"}\n{"body": "b"}\n')
    folder = write_tokenizer(tmp_path / "mine")
    words = ("tokenizer", "verify", folder, "-c", "c.jsonl", "--on-bad-document", "skip", "--quiet")
    done = packtok_cli(*words, cwd=tmp_path, code=1)
    assert (done.stdout, done.stderr) == (
        "",
        "packtok: no document of the corpus was compared: 2 were rejected; set --field, or remove "
        "--on-bad-document to see why\n",
    )
    done = packtok_cli(*words, "--field", ".body", cwd=tmp_path)
    assert done.stdout == "packtok and tokenizers 0.23.2 give the same ids\n"
