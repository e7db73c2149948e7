"""``max_rejects``: how many documents may be rejected in a run, in a shard and in all shards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import PacktokCli
from processes import names, write_corpus
from stories import TOKENIZER

import packtok
from packtok.config import load_config
from packtok.errors import ConfigError, PacktokError

GOOD, BAD, BLANK, EMPTY = '{"text": "a"}\n', '{"body": "b"}\n', " \n", '{"text": ""}\n'
WHY = "field .text is missing; the object has .body"
SKIP = {"tokenizer": TOKENIZER, "on_bad_document": "skip"}
EXPECTED = "expected a number such as 100, or a percentage from 0% to 100% such as 0.5%"


def corpus(folder: Path, *lines: str) -> Path:
    path = folder / "c.jsonl"
    path.write_text("".join(lines))
    return path


def pack(folder: Path, **options: Any) -> packtok.PackReport:
    return packtok.pack(input=folder / "c.jsonl", output=folder / "o.pbin", **{**SKIP, **options})


def failure(folder: Path, **options: Any) -> str:
    """Returns the error of a run that must fail, without the folder's name."""
    with pytest.raises(PacktokError) as caught:
        pack(folder, **options)
    notes = [*getattr(caught.value, "__notes__", ())]
    return "; ".join([str(caught.value), *notes]).replace(f"{folder}/", "")


def test_packing_nothing_fails_and_keeps_the_rejects(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    corpus(tmp_path, BAD, BLANK, BAD)
    arguments = ("pack", "-i", "c.jsonl", "-o", "o.pbin", "-t", TOKENIZER, "--on-bad-document", "skip")
    done = packtok_cli(*arguments, cwd=tmp_path, code=1)
    assert done.stdout == ""
    assert done.stderr.removeprefix("packtok: checking the engine, once for this tokenizer\n") == (
        "packtok: o.pbin: nothing was packed: all 2 documents were rejected; the first is c.jsonl:1: "
        f"{WHY}; see o.pbin.rejects.jsonl; fix the corpus or the options, or allow an empty output with "
        "--max-rejects 100% (max_rejects: 100%)\n"
    )
    assert names(tmp_path) == ["c.jsonl", "o.pbin.rejects.jsonl"]
    rejects = [json.loads(line) for line in (tmp_path / "o.pbin.rejects.jsonl").read_text().splitlines()]
    assert [reject["line"] for reject in rejects] == [1, 3]
    # The next run needs no --restart, and removes the rejects.
    packtok_cli(*arguments, "--field", ".body", cwd=tmp_path)
    assert names(tmp_path) == ["c.jsonl", "o.pbin", "o.pbin.tokenizer.json"]


@pytest.mark.parametrize("limit", [None, 2, "2", "99.9%"])
def test_packing_nothing_fails_under_any_limit_below_all(tmp_path: Path, limit: int | str | None) -> None:
    corpus(tmp_path, BAD, BAD)
    assert "nothing was packed: all 2 documents were rejected" in failure(tmp_path, max_rejects=limit)


def test_all_documents_can_be_rejected_on_request(tmp_path: Path) -> None:
    corpus(tmp_path, BAD, BAD)
    report = pack(tmp_path, max_rejects="100%")
    assert (report.documents, report.rejected) == (0, 2)
    assert report.warnings == ("no document was packed; the output is valid but empty",)


@pytest.mark.parametrize("lines", [(), (BLANK, BLANK), (EMPTY, BLANK, EMPTY)])
@pytest.mark.parametrize("limit", [None, 0, "0%"])
def test_corpus_without_rejects_can_be_empty(
    tmp_path: Path, lines: tuple[str, ...], limit: int | str | None
) -> None:
    corpus(tmp_path, *lines)
    report = pack(tmp_path, max_rejects=limit)
    assert (report.documents, report.rejected) == (0, 0)
    assert report.warnings == ("no document was packed; the output is valid but empty",)


def test_empty_documents_and_rejects_count_as_nothing_packed(tmp_path: Path) -> None:
    corpus(tmp_path, EMPTY, BAD, BLANK)
    assert failure(tmp_path).startswith(
        "o.pbin: nothing was packed: 1 of 2 documents was rejected; the first"
    )
    assert pack(tmp_path, empty_document="keep").documents == 1


def test_number_is_the_maximum_of_rejects(tmp_path: Path) -> None:
    corpus(tmp_path, GOOD, BAD, GOOD, BAD, BAD)
    assert pack(tmp_path, max_rejects=3).rejected == 3
    (tmp_path / "o.pbin").unlink()
    assert failure(tmp_path, max_rejects=1) == (
        f"o.pbin: more documents were rejected than max_rejects allows (1); the first is c.jsonl:2: {WHY}; "
        "see o.pbin.rejects.jsonl; fix the corpus or the options, or raise max_rejects"
    )
    # The run stops at the first reject over the limit.
    assert len((tmp_path / "o.pbin.rejects.jsonl").read_text().splitlines()) == 2
    assert not (tmp_path / "o.pbin.partial").exists()


def test_percentage_is_of_all_documents_and_checked_at_the_end(tmp_path: Path) -> None:
    # Blank lines are not documents; empty documents are.
    corpus(tmp_path, BAD, BLANK, BLANK, GOOD, EMPTY, GOOD)
    assert pack(tmp_path, max_rejects="25%").rejected == 1
    (tmp_path / "o.pbin").unlink()
    assert failure(tmp_path, max_rejects="24.9%") == (
        "o.pbin: 1 of 4 documents was rejected, but max_rejects allows 24.9%; the first is c.jsonl:1: "
        f"{WHY}; see o.pbin.rejects.jsonl; fix the corpus or the options, or raise max_rejects"
    )


def test_rejects_beyond_a_document_limit_do_not_count(tmp_path: Path) -> None:
    corpus(tmp_path, GOOD, BAD, BAD)
    assert pack(tmp_path, max_rejects=0, max_documents=1).rejected == 0
    # If the first good document exceeds the limit on tokens, earlier rejects do not fail the run.
    corpus(tmp_path, BAD, GOOD)
    assert pack(tmp_path, max_tokens=1, existing="replace").documents == 0


@pytest.mark.parametrize("limit", [7, "1%", None])
def test_failure_does_not_depend_on_threads(tmp_path: Path, limit: int | str | None) -> None:
    write_corpus(tmp_path / "c.jsonl", 2_000_000, bad_every=40)
    options = {"max_rejects": limit} if limit is not None else {"field": ".none"}
    results = set()
    for num_cpus in (1, 2, 7):
        results.add(failure(tmp_path, num_cpus=num_cpus, restart=True, **options))
        rejects = (tmp_path / "o.pbin.rejects.jsonl").read_bytes()
        results.add(str(hash(rejects)))
        assert names(tmp_path) == ["c.jsonl", "o.pbin.rejects.jsonl"]
    assert len(results) == 2


@pytest.mark.parametrize("limit", [3, "9%"])
def test_failed_replacement_keeps_the_output_and_its_rejects(tmp_path: Path, limit: int | str) -> None:
    corpus(tmp_path, GOOD, BAD)
    pack(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name != "c.jsonl"}
    corpus(tmp_path, GOOD, BAD, BAD, BAD, BAD, BAD)
    message = failure(tmp_path, max_rejects=limit, existing="replace")
    assert "; see o.pbin.failed.rejects.jsonl; " in message
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    pack(tmp_path, existing="replace")
    assert names(tmp_path) == ["c.jsonl", *sorted(before)]


def test_skipped_output_is_checked_like_the_run_that_made_it(tmp_path: Path) -> None:
    corpus(tmp_path, GOOD, BAD, BAD)
    pack(tmp_path)
    assert pack(tmp_path, existing="skip", max_rejects=2).skipped_existing
    assert failure(tmp_path, existing="skip", max_rejects="1%") == (
        f"o.pbin: 2 of 3 documents were rejected, but max_rejects allows 1%; the first is c.jsonl:2: {WHY}; "
        "see o.pbin.rejects.jsonl; fix the corpus or the options, or raise max_rejects"
    )


def test_failed_run_resumes_under_a_higher_limit(tmp_path: Path) -> None:
    write_corpus(tmp_path / "c.jsonl", 3_000_000, bad_every=40)
    expected = packtok.pack(input=tmp_path / "c.jsonl", output=tmp_path / "expected.pbin", **SKIP)
    limit = expected.rejected - 1
    options: dict[str, Any] = {"span_bytes": 200_000}
    kept = "; finished work is kept next to the output; run the same command again to resume"
    message = failure(tmp_path, max_rejects=limit, **options)
    assert message.endswith(kept)
    # Running again, which resumes, gives the same error.
    assert failure(tmp_path, max_rejects=limit, **options) == message
    assert failure(tmp_path, max_rejects="1%", **options).endswith(kept)
    lower = failure(tmp_path, max_rejects=limit // 2, **options)
    assert f"than max_rejects allows ({limit // 2})" in lower
    report = pack(tmp_path, max_rejects=limit + 1, **options)
    assert report.resumed_bytes > 0
    assert (tmp_path / "o.pbin").read_bytes() == (tmp_path / "expected.pbin").read_bytes()
    assert (tmp_path / "o.pbin.rejects.jsonl").read_bytes() == (
        tmp_path / "expected.pbin.rejects.jsonl"
    ).read_bytes()


@pytest.mark.parametrize(
    "value", ["", "-1", -1, "101%", "100.1%", "-1%", "1.5", 1.5, True, "many", "5 %", "%", [5], 2**64]
)
def test_invalid_limit_is_wrong_usage(value: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(None, {"input": "a", "output": "b", "tokenizer": TOKENIZER, "max_rejects": value})
    assert str(caught.value) == f"--max-rejects: settings.max_rejects is {value!r}; {EXPECTED}"


def test_every_command_reports_an_invalid_limit_alike(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    corpus(tmp_path, GOOD)
    common = ("-i", "c.jsonl", "-o", "o", "-t", TOKENIZER, "--max-rejects", "101%")
    message = f"packtok: --max-rejects: settings.max_rejects is '101%'; {EXPECTED}\n"
    for command in (("pack",), ("plan", "--shards", "2"), ("run", "--no-submit", "pack")):
        assert packtok_cli(*command, *common, cwd=tmp_path, code=2).stderr == message
    packtok_cli("plan", *common[:-2], "--shards", 1, cwd=tmp_path)
    done = packtok_cli("join", "o", "-o", "x.pbin", "--max-rejects", "x", cwd=tmp_path, code=2)
    assert done.stderr == f"packtok: --max-rejects: is 'x'; {EXPECTED}\n"


@pytest.mark.parametrize(("value", "line"), [("1%", "max_rejects: 1%\n"), ("007", "max_rejects: 7\n")])
def test_printed_config_has_the_limit(tmp_path: Path, packtok_cli: PacktokCli, value: str, line: str) -> None:
    common = ("-i", "c.jsonl", "-o", "o", "-t", TOKENIZER, "--on-bad-document", "skip")
    printed = packtok_cli("pack", *common, "--max-rejects", value, "--print-config", cwd=tmp_path).stdout
    assert line in printed
    (tmp_path / "pack.yaml").write_text(printed)
    assert packtok_cli("pack", "pack.yaml", "--print-config", cwd=tmp_path).stdout == printed


def test_limit_without_skipping_is_reported_as_having_no_effect(tmp_path: Path) -> None:
    corpus(tmp_path, GOOD)
    report = pack(tmp_path, on_bad_document="fail", max_rejects=5)
    assert report.warnings == (
        "settings.max_rejects has no effect: on_bad_document is fail, so the first bad document stops the "
        "run; set it to skip",
    )


def shards(folder: Path, num_shards: int, **options: Any) -> None:
    for k in range(num_shards):
        packtok.pack(
            input=folder / "c.jsonl", output=folder / "out", shard=f"{k}/{num_shards}", **SKIP, **options
        )


def joined(folder: Path, **options: Any) -> str:
    """Returns the error of a join that must fail and write nothing."""
    with pytest.raises(PacktokError) as caught:
        packtok.join(folder / "out", folder / "x.pbin", **options)
    assert not [name for name in names(folder) if name.startswith("x.pbin")]
    return str(caught.value).replace(f"{folder}/", "")


def test_percentage_is_checked_when_shards_are_joined(tmp_path: Path) -> None:
    # All rejects are in the first shard.
    corpus(tmp_path, *[BAD] * 20, *[GOOD] * 60)
    shards(tmp_path, 4, max_rejects="20%")
    message = (
        f"out: 20 of 80 documents were rejected, but max_rejects allows 20%; the first is c.jsonl:1: {WHY}; "
        "see out/*.rejects.jsonl; fix the corpus or the options, or raise max_rejects"
    )
    assert joined(tmp_path) == message
    assert joined(tmp_path, manifest=True) == message
    assert "max_rejects allows 19;" not in joined(tmp_path, max_rejects=19)
    packtok.join(tmp_path / "out", tmp_path / "m.jsonl", manifest=True, max_rejects=20)
    packtok.join(tmp_path / "out", tmp_path / "x.pbin", max_rejects="25%")
    pack(tmp_path)
    for suffix in ("", ".rejects.jsonl", ".tokenizer.json"):
        assert (tmp_path / f"x.pbin{suffix}").read_bytes() == (tmp_path / f"o.pbin{suffix}").read_bytes()


def test_number_applies_to_each_shard_and_to_all_together(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    corpus(tmp_path, *[GOOD, GOOD, BAD, GOOD] * 10)
    shards(tmp_path, 2, max_rejects=9)
    assert joined(tmp_path).startswith("out: more documents were rejected than max_rejects allows (9); ")
    common = ("-i", "c.jsonl", "-o", "out", "-t", TOKENIZER, "--on-bad-document", "skip", "--max-rejects", 3)
    # A complete shard is checked as well.
    again = packtok_cli("pack", *common, "--shard", 0, cwd=tmp_path, code=1)
    packed = packtok_cli("pack", *common, "--shard", 0, "--existing", "replace", cwd=tmp_path, code=1)
    for done, name in ((again, "rejects"), (packed, "failed.rejects")):
        assert done.stderr == (
            "packtok: out/shard-00000-of-00002.pbin: more documents were rejected than max_rejects "
            f"allows (3); the first is c.jsonl:3: {WHY}; see "
            f"out/shard-00000-of-00002.pbin.{name}.jsonl; fix the corpus or the options, or raise "
            "--max-rejects (max_rejects)\n"
        )
    # The complete shard is unchanged.
    packtok.join(tmp_path / "out", tmp_path / "x.pbin", max_rejects=10)


def test_shards_with_only_rejects_fail_only_if_all_shards_do(tmp_path: Path) -> None:
    corpus(tmp_path, *[BAD] * 20, *[GOOD] * 20)
    shards(tmp_path, 4)
    assert packtok.join(tmp_path / "out", tmp_path / "x.pbin")["documents"] == 20


def test_shards_without_any_document_are_not_joined(tmp_path: Path) -> None:
    corpus(tmp_path, *[BAD] * 20)
    shards(tmp_path, 3)
    assert joined(tmp_path) == (
        f"out: nothing was packed: all 20 documents were rejected; the first is c.jsonl:1: {WHY}; see "
        "out/*.rejects.jsonl; fix the corpus or the options, or allow an empty output with "
        'max_rejects="100%"'
    )
    assert packtok.join(tmp_path / "out", tmp_path / "x.pbin", max_rejects="100%")["documents"] == 0


def test_cluster_run_passes_the_limit_to_the_tasks_and_to_the_join(
    tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    corpus(tmp_path, GOOD)
    config = "settings: {src_path: c.jsonl, dst_path: o.pbin, on_bad_document: skip, max_rejects: 0.10%}\n"
    (tmp_path / "pack.yaml").write_text(config + "tokenizer: gpt2\n")
    packtok_cli("run", "--no-submit", "pack", "pack.yaml", cwd=tmp_path)
    assert "--max-rejects=0.1%" in (tmp_path / "o.pbin.shards/join.sbatch").read_text()
    packtok_cli("run", "--no-submit", "pack", "pack.yaml", "--max-rejects", 7, cwd=tmp_path)
    assert "--max-rejects=7" in (tmp_path / "o.pbin.shards/pack.sbatch").read_text()
    assert "--max-rejects=7" in (tmp_path / "o.pbin.shards/join.sbatch").read_text()


def test_empty_index_is_a_failure(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    (tmp_path / "c.txt").write_text("one\n\ntwo\n")
    done = packtok_cli("index", "c.txt", "--on-bad-document", "skip", cwd=tmp_path, code=1)
    assert done.stderr.startswith(
        "packtok: c.txt: nothing was indexed: none of the 2 non-blank lines is valid JSON; the first is "
        "c.txt:1: "
    )
    assert done.stderr.endswith("; see c.idx.rejects.jsonl\n")
    assert names(tmp_path) == ["c.idx.rejects.jsonl", "c.txt"]
