"""`packtok tokenize --to cepe-npy`: byte for byte the files of CEPE's script, without its losses.

`saved_by_the_script` implements the script with `tokenizers` and NumPy.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
import sentencepiece
import tokenizers
from command_line import PacktokCli
from extent import extent
from processes import start
from stories import TOKENIZER

import packtok
from packtok.commands.data import list_files
from packtok.commands.token_folder import inspect_folder, verify_folder

BOS, EOS = "<s>", "</s>"
TEXTS = ["one day", "", "  spaces and </s> a special token", "Ünïcödé\n\ttabs", "<s>already enclosed</s>"]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a tokenizer whose post-processor adds tokens that the script leaves out."""
    made = tokenizers.Tokenizer.from_file(TOKENIZER)
    made.add_special_tokens([BOS, EOS])
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single=f"{BOS}:0 $A:0 {BOS}:0", special_tokens=[(BOS, made.token_to_id(BOS))]
    )
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    made.save(str(path))
    return path


def saved_by_the_script(lines: list[str], tokenizer: Path, dtype: str | None = None) -> bytes:
    """Returns the file that the script saves for the lines of a corpus file."""
    loaded = tokenizers.Tokenizer.from_file(str(tokenizer))
    bos, eos = loaded.token_to_id(BOS), loaded.token_to_id(EOS)
    texts = [json.loads(line)["text"] for line in lines]
    all_ids = [[bos, *loaded.encode(text, add_special_tokens=False).ids, eos] for text in texts]
    data = np.concatenate([[len(all_ids)], [len(ids) for ids in all_ids], *all_ids])
    return saved(data if dtype is None else data.astype(dtype))


def saved(data: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, data)
    return buffer.getvalue()


def write(path: Path, lines: list[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def stories(number: int, seed: int) -> list[str]:
    return [json.dumps({"text": text}) for text in story_texts(number, seed)]


def story_texts(number: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    words = ["once", "a", "day", "the", "key", "was", "lost", "in", "snow", ",", "and", "found", "again."]
    return [" ".join(rng.choices(words, k=rng.randrange(1, 60))) for _ in range(number)]


@pytest.fixture
def corpus(tmp_path: Path) -> dict[str, list[str]]:
    """Writes a corpus below ``root`` and returns its lines by file, in natural order."""
    files = {
        "arxiv/a2.jsonl": [json.dumps({"text": text}) for text in TEXTS],
        "arxiv/a10.jsonl": stories(30, 1),
        "book/deep/b.jsonl.gz": stories(50, 2),
        "book/one.jsonl": stories(1, 3),
    }
    for name, lines in files.items():
        write(tmp_path / "root" / name, lines)
    return files


def npy_of(name: str) -> str:
    return name.removesuffix(".gz").removesuffix(".jsonl") + ".npy"


def tokenize(source: str | Path | list[str], output: Path, tokenizer: Path, **options: Any) -> dict[str, Any]:
    return packtok.tokenize(
        str(source) if isinstance(source, Path) else source,
        str(tokenizer),
        output,
        to="cepe-npy",
        **options,
    )


def published(folder: Path) -> dict[str, bytes]:
    """Returns all files of an output folder by name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("dtype", ["int64", "uint32"])
@pytest.mark.parametrize("num_cpus", [1, 3])
def test_files_are_those_of_the_script(
    corpus: dict[str, list[str]], tmp_path: Path, tokenizer: Path, dtype: str, num_cpus: int
) -> None:
    output = tmp_path / "out"
    counts = tokenize(tmp_path / "root", output, tokenizer, dtype=dtype, num_cpus=num_cpus)
    for name, lines in corpus.items():
        expected = saved_by_the_script(lines, tokenizer, None if dtype == "int64" else dtype)
        assert (output / npy_of(name)).read_bytes() == expected, name
    assert (counts["files"], counts["written"], counts["documents"]) == (4, 4, 86)
    names = {npy_of(name) for name in corpus}
    assert published(output).keys() == {
        *names,
        *(f"{name}.done.json" for name in names),
        "tokenizer.json",
        "tokens.done.json",
    }


def test_sentencepiece_models_give_the_ids_of_their_library(tmp_path: Path) -> None:
    texts = [*story_texts(400, 5), "Ünïcödé"]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_prefix=str(tmp_path / "tokenizer"),
        vocab_size=90,
        model_type="bpe",
        byte_fallback=False,
        minloglevel=2,
    )
    lines = [json.dumps({"text": text}) for text in ["", *texts[:40]]]
    write(tmp_path / "root" / "a.jsonl", lines)
    model = tmp_path / "tokenizer.model"
    tokenize(tmp_path / "root", tmp_path / "out", model)
    library = sentencepiece.SentencePieceProcessor(model_file=str(model))
    ids = [[library.bos_id(), *library.encode(json.loads(line)["text"]), library.eos_id()] for line in lines]
    expected = saved(np.concatenate([[len(ids)], [len(ids_of_text) for ids_of_text in ids], *ids]))
    assert (tmp_path / "out" / "a.npy").read_bytes() == expected


def test_the_list_may_be_anywhere_and_no_folder_name_matters(
    corpus: dict[str, list[str]], tmp_path: Path, tokenizer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The script needs "redpajama/" in each path and a working folder in which the list resolves.
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    counts = list_files(tmp_path / "root", elsewhere / "all_jsonl.txt")
    listed = (elsewhere / "all_jsonl.txt").read_text().splitlines()
    assert listed == list(corpus)
    assert counts["files"] == 4
    expected = tokenize(tmp_path / "root", tmp_path / "out", tokenizer)
    monkeypatch.chdir(tmp_path)
    again = tokenize(
        f"@{elsewhere / 'all_jsonl.txt'}", tmp_path / "again", tokenizer, root=str(tmp_path / "root")
    )
    assert published(tmp_path / "again") == published(tmp_path / "out")
    assert {**again, "output_dir": None} == {**expected, "output_dir": None}
    list_files(tmp_path / "root", tmp_path / "root" / "all_jsonl.txt")
    tokenize("@root/all_jsonl.txt", tmp_path / "third", tokenizer)
    assert published(tmp_path / "third") == published(tmp_path / "out")


def test_lists_have_absolute_paths_on_request_and_are_not_overwritten(
    corpus: dict[str, list[str]], tmp_path: Path
) -> None:
    output = tmp_path / "all.txt"
    list_files(tmp_path / "root", output, absolute=True)
    assert output.read_text() == "".join(f"{tmp_path / 'root' / name}\n" for name in corpus)
    with pytest.raises(FileExistsError):
        list_files(tmp_path / "root", output)
    list_files(tmp_path / "root", output, absolute=True, existing="skip")
    with pytest.raises(packtok.PacktokError, match="the existing list differs"):
        list_files(tmp_path / "root", output, existing="skip")
    list_files(tmp_path / "root", output, existing="replace")
    assert output.read_text().splitlines() == list(corpus)


def test_lists_work_wherever_inputs_do(
    corpus: dict[str, list[str]], tmp_path: Path, tokenizer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = ["# a comment", "", "arxiv/a10.jsonl\r", str(tmp_path / "root" / "book" / "one.jsonl")]
    (tmp_path / "root" / "some.txt").write_text("\n".join(lines))
    packtok.pack(input="@root/some.txt", output="a.pbin", tokenizer=str(tokenizer))
    packtok.pack(
        input=["root/arxiv/a10.jsonl", "root/book/one.jsonl"], output="b.pbin", tokenizer=str(tokenizer)
    )
    assert Path("a.pbin").read_bytes() == Path("b.pbin").read_bytes()
    assert packtok.count("@root/some.txt", "gpt2")["total"]["documents"] == 31
    write(tmp_path / "@x", stories(3, 1))
    assert packtok.count("./@x", "gpt2", format="jsonl")["total"]["documents"] == 3


def test_a_missing_file_of_a_list_names_list_and_line(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    (tmp_path / "list.txt").write_text("\ngone.jsonl\n")
    done = packtok_cli("count", "@list.txt", "-t", "gpt2", cwd=tmp_path, code=1)
    assert done.stderr == (
        "packtok: gone.jsonl: list.txt:2: the list names gone.jsonl, which cannot be read; write absolute "
        "paths, or set --root if relative lines do not start at the folder of the list\n"
    )
    (tmp_path / "list.txt").write_text("# nothing\n")
    done = packtok_cli("count", "@list.txt", "-t", "gpt2", cwd=tmp_path, code=1)
    assert done.stderr == (
        "packtok: list.txt: the list names no file; a file whose own name starts with @ is given as ./@name\n"
    )


def test_empty_files_have_the_dtype_of_all_others(tmp_path: Path, tokenizer: Path) -> None:
    # The script saves float64.
    write(tmp_path / "root" / "a.jsonl", [])
    write(tmp_path / "root" / "b.jsonl", stories(2, 1))
    for dtype in ("int64", "uint32"):
        tokenize(tmp_path / "root", tmp_path / dtype, tokenizer, dtype=dtype)
        assert (tmp_path / dtype / "a.npy").read_bytes() == saved(np.array([0], dtype=dtype))


def test_bad_lines_end_the_run_or_are_listed(tmp_path: Path, tokenizer: Path) -> None:
    # The script drops lines that are not JSON and ends with a KeyError without a text.
    good = stories(3, 4)
    write(tmp_path / "root" / "x" / "a.jsonl", [good[0], "{no json", good[1], '{"title": 1}'])
    write(tmp_path / "root" / "x" / "b.jsonl", [good[2]])
    with pytest.raises(packtok.DocumentError, match=r"a\.jsonl:2: byte 82: malformed JSON"):
        tokenize(tmp_path / "root", tmp_path / "out", tokenizer)
    assert not list((tmp_path / "out").rglob("*.npy"))
    counts = tokenize(tmp_path / "root", tmp_path / "out", tokenizer, on_bad_document="skip")
    assert counts["rejected"] == 2
    rejects = (tmp_path / "out" / "x" / "a.npy.rejects.jsonl").read_text().splitlines()
    assert [json.loads(line)["line"] for line in rejects] == [2, 4]
    assert not (tmp_path / "out" / "x" / "b.npy.rejects.jsonl").exists()
    expected = saved_by_the_script([good[0], good[1]], tokenizer)
    assert (tmp_path / "out" / "x" / "a.npy").read_bytes() == expected


def test_a_failed_run_leaves_no_empty_folder(
    tmp_path: Path, tokenizer: Path, packtok_cli: PacktokCli
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text("broken\n")
    (tmp_path / "there").mkdir()
    for out, form in (
        ("new/a", ("--to", "cepe-npy")),
        ("new", ()),
        ("there", ()),
        ("there", ("--to", "cepe-npy")),
    ):
        packtok_cli("tokenize", "in/a.jsonl", *form, "-t", tokenizer, "-o", out, cwd=tmp_path, code=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "there"]
    # The command removes no folder that existed before.
    assert list((tmp_path / "there").iterdir()) == []


@pytest.mark.parametrize("num_shards", extent([1, 2, 5, 9], [3]))
def test_shards_of_any_number_are_one_run(
    corpus: dict[str, list[str]], tmp_path: Path, tokenizer: Path, packtok_cli: PacktokCli, num_shards: int
) -> None:
    write(tmp_path / "root" / "empty.jsonl", [])
    bad = ["{no json", *stories(40, 8), "[]"]
    write(tmp_path / "root" / "zz.jsonl", bad)
    command = ("tokenize", "root", "--to", "cepe-npy", "-t", tokenizer, "--on-bad-document", "skip", "-q")
    packtok_cli(*command, "--output-dir", "one", cwd=tmp_path)
    for shard in range(num_shards):
        packtok_cli(*command, "--output-dir", "many", "--shard", f"{shard}/{num_shards}", cwd=tmp_path)
        if shard == 0:
            assert not list((tmp_path / "many").rglob("*.npy"))
    packtok_cli(*command, "--output-dir", "many", "--join", cwd=tmp_path)
    many = published(tmp_path / "many")
    many = {name: content for name, content in many.items() if not name.startswith("tokens.shards/")}
    assert many == published(tmp_path / "one")


@pytest.mark.parametrize("num_tasks", [1, 3])
def test_tasks_of_a_slurm_array_tokenize_all_files(
    corpus: dict[str, list[str]], tmp_path: Path, tokenizer: Path, packtok_cli: PacktokCli, num_tasks: int
) -> None:
    # The script is submitted with --array=0, and each of its tasks takes one file.
    command = ("tokenize", "root", "--to", "cepe-npy", "-t", tokenizer, "-q")
    packtok_cli(*command, "--output-dir", "one", cwd=tmp_path)
    array = {"MIN": "0", "MAX": f"{num_tasks - 1}", "COUNT": f"{num_tasks}"}
    for task in range(num_tasks):
        env = {f"SLURM_ARRAY_TASK_{name}": value for name, value in {**array, "ID": f"{task}"}.items()}
        packtok_cli(*command, "--output-dir", "many", "--shard", "auto", cwd=tmp_path, env=env)
    packtok_cli(*command, "--output-dir", "many", "--join", cwd=tmp_path)
    many = published(tmp_path / "many")
    assert {name: content for name, content in many.items() if not name.startswith("tokens.shards/")} == (
        published(tmp_path / "one")
    )


def test_task_0_alone_is_not_taken_for_the_whole_array(
    corpus: dict[str, list[str]], tmp_path: Path, tokenizer: Path, packtok_cli: PacktokCli
) -> None:
    command = ("tokenize", "root", "--to", "cepe-npy", "-t", tokenizer, "-q", "--output-dir", "out")
    packtok_cli(*command, "--shard", "0/3", cwd=tmp_path)
    done = packtok_cli(*command, "--join", cwd=tmp_path, code=1)
    assert "1-2 of 3" in done.stderr
    assert not list((tmp_path / "out").rglob("*.npy"))


def test_complete_files_are_kept_and_new_ones_added(
    corpus: dict[str, list[str]], tmp_path: Path, tokenizer: Path
) -> None:
    output = tmp_path / "out"
    tokenize(tmp_path / "root", output, tokenizer)
    times = {path: path.stat().st_mtime_ns for path in output.rglob("*.npy")}
    (output / "book" / "one.npy").unlink()
    write(tmp_path / "root" / "new.jsonl", stories(4, 9))
    counts = tokenize(tmp_path / "root", output, tokenizer)
    assert (counts["files"], counts["written"], counts["kept"]) == (5, 2, 3)
    changed = {path.name for path, at in times.items() if path.stat().st_mtime_ns != at}
    assert changed == {"one.npy"}
    assert tokenize(tmp_path / "root", output, tokenizer)["written"] == 0
    expected = tmp_path / "expected"
    tokenize(tmp_path / "root", expected, tokenizer)
    assert published(output) == published(expected)


def test_another_plan_or_source_is_an_error(
    corpus: dict[str, list[str]], tmp_path: Path, tokenizer: Path
) -> None:
    output = tmp_path / "out"
    tokenize(tmp_path / "root", output, tokenizer)
    first = output / "arxiv" / "a2.npy"
    remedy = "set existing to replace, or choose another output_dir"
    with pytest.raises(packtok.PacktokError) as caught:
        tokenize(tmp_path / "root", output, tokenizer, dtype="uint32")
    assert str(caught.value) == (
        f"{first}: the existing file was written with another dtype: int64, expected uint32; {remedy}"
    )
    with pytest.raises(packtok.PacktokError, match=r"another BOS: \"<s>\" \(512\), expected \"</s>\""):
        tokenize(tmp_path / "root", output, tokenizer, bos=EOS)
    source = tmp_path / "root" / "arxiv" / "a2.jsonl"
    size = source.stat().st_size
    write(source, stories(1, 1))
    with pytest.raises(packtok.PacktokError) as caught:
        tokenize(tmp_path / "root", output, tokenizer)
    assert str(caught.value) == (
        f"{first}: the existing file was made from arxiv/a2.jsonl of {size:,} bytes, and {source} has "
        f"{source.stat().st_size:,}; {remedy}"
    )
    tokenize(tmp_path / "root", output, tokenizer, dtype="uint32", existing="replace")
    assert first.read_bytes() == saved_by_the_script(stories(1, 1), tokenizer, "uint32")


def test_a_torn_file_is_an_error_and_not_skipped(
    corpus: dict[str, list[str]], tmp_path: Path, tokenizer: Path
) -> None:
    # The script considers any existing file complete.
    output = tmp_path / "out"
    tokenize(tmp_path / "root", output, tokenizer)
    torn = output / "book" / "deep" / "b.npy"
    torn.write_bytes(torn.read_bytes()[:-8])
    with pytest.raises(packtok.PacktokError, match=r"b\.npy: the existing file has .* it is damaged"):
        tokenize(tmp_path / "root", output, tokenizer)
    # The script leaves a torn file without a marker.
    Path(f"{torn}.done.json").unlink()
    with pytest.raises(packtok.PacktokError, match=r"b\.npy: the file exists, has no marker, and differs"):
        tokenize(tmp_path / "root", output, tokenizer)
    torn.unlink()
    tokenize(tmp_path / "root", output, tokenizer)
    assert torn.read_bytes() == saved_by_the_script(corpus["book/deep/b.jsonl.gz"], tokenizer)


def test_files_with_one_name_are_an_error(tmp_path: Path, tokenizer: Path) -> None:
    write(tmp_path / "root" / "a.jsonl", stories(1, 1))
    write(tmp_path / "root" / "a.jsonl.gz", stories(1, 1))
    with pytest.raises(ValueError, match=r"both would become a\.npy; rename one"):
        tokenize(tmp_path / "root", tmp_path / "out", tokenizer)


def test_wrong_usage_is_explained(tmp_path: Path, packtok_cli: PacktokCli, tokenizer: Path) -> None:
    write(tmp_path / "a.jsonl", stories(1, 1))
    command = ("tokenize", "a.jsonl", "--to", "cepe-npy", "-o", "out")
    for arguments, message in [
        (
            ("-t", tokenizer, "--dtype", "uint16"),
            "--dtype: is uint16; expected int64 or uint32; the ",
        ),
        (("-t", tokenizer, "--dtype", "float32"), "--dtype: is float32; expected int64 or uint32"),
        (("-t", tokenizer, "--token-dtype", "uint32"), "--token-dtype cannot be given with --to cepe-npy"),
        (("-t", tokenizer, "--add-special-tokens"), "--add-special-tokens: cannot be set with --to cepe-npy"),
        (("-t", TOKENIZER), "has no BOS token and no special token <s>; special tokens are <|endoftext|>"),
        ((), "--tokenizer: is missing; --to cepe-npy needs it"),
    ]:
        done = packtok_cli(*command, *arguments, cwd=tmp_path, code=2)
        assert message in done.stderr
    done = packtok_cli("tokenize", "a.jsonl", "-o", "out", "--dtype", "int64", cwd=tmp_path, code=2)
    assert "--dtype needs --to" in done.stderr
    assert not (tmp_path / "out").exists()


def test_bos_and_eos_can_be_given(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", [json.dumps({"text": "hello"})])
    end = "<|endoftext|>"
    packtok.tokenize(
        str(tmp_path / "a.jsonl"), "gpt2", tmp_path / "out", to="cepe-npy", bos=end, eod=end, split="all"
    )
    assert packtok.PbinReader(tmp_path / "out" / "a.npy")[0].tolist() == [50256, 31373, 50256]


def test_folders_are_verified(corpus: dict[str, list[str]], tmp_path: Path, tokenizer: Path) -> None:
    output, listed = tmp_path / "out", tmp_path / "root" / "all_jsonl.txt"
    list_files(tmp_path / "root", listed)
    tokenize(tmp_path / "root", output, tokenizer)
    report = verify_folder(output, against=listed)
    assert (report["files"], report["documents"], report["missing"], report["faults"]) == (4, 86, [], [])
    assert report["unchecked"] == []
    torn, changed, wide = (output / name for name in ("arxiv/a2.npy", "arxiv/a10.npy", "book/deep/b.npy"))
    torn.write_bytes(torn.read_bytes()[:-8])
    for path, id in ((changed, 5), (wide, 70_000)):
        array = np.load(path)
        array[-1] = id
        np.save(path, array)
    (output / "book" / "one.npy").unlink()
    report = verify_folder(output, against=listed)
    assert [file["npy"] for file in report["missing"]] == ["book/one.npy"] * 2
    assert report["missing"][1]["reason"] == f"line 4 of {listed}"
    errors = {Path(fault["path"]).name: fault["error"] for fault in report["faults"]}
    assert "the file is truncated" in errors["a2.npy"]
    assert "crc32c is" in errors["a10.npy"]
    assert "id 70000" in errors["b.npy"]


def test_folders_of_the_script_are_verified_without_pickle(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    # The check of the script reads files as pickles, and crashes on each of them.
    folder = tmp_path / "arxiv"
    folder.mkdir()
    (folder / "a.npy").write_bytes(saved(np.array([1, 2, 7, 8])))
    (folder / "b.npy").write_bytes(saved(np.concatenate([[0], []])))
    done = packtok_cli("verify", tmp_path, cwd=tmp_path)
    assert done.stdout.endswith(f"{tmp_path} is valid\n")
    (folder / "c.npy").write_bytes(b"\x80\x04\x95\x00.")
    done = packtok_cli("verify", tmp_path, "--json", cwd=tmp_path, code=1)
    (fault,) = json.loads(done.stdout)["faults"]
    assert fault["path"] == str(folder / "c.npy")


def test_no_name_is_left_out_of_the_check(tmp_path: Path, tokenizer: Path) -> None:
    # The check of the script skips paths that contain "stackexchange".
    write(tmp_path / "root" / "stackexchange" / "a.jsonl", stories(2, 1))
    listed = tmp_path / "root" / "all_jsonl.txt"
    list_files(tmp_path / "root", listed)
    output = tmp_path / "out"
    tokenize(tmp_path / "root", output, tokenizer)
    assert verify_folder(output, against=listed)["missing"] == []
    (output / "stackexchange" / "a.npy").unlink()
    assert [file["npy"] for file in verify_folder(output, against=listed)["missing"]] == [
        "stackexchange/a.npy"
    ] * 2


def test_domains_are_counted_in_chunks_within_documents(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    for domain, lengths in (("arxiv", [5000, 100, 8192]), ("book", [4095]), ("book", [4096, 12288])):
        folder = tmp_path / "out" / domain
        folder.mkdir(parents=True, exist_ok=True)
        ids = [1] * sum(lengths)
        (folder / f"{len(lengths)}.npy").write_bytes(saved(np.array([len(lengths), *lengths, *ids])))
    facts = inspect_folder(tmp_path / "out")
    assert facts["domains"] == [
        {"domain": "arxiv", "files": 1, "documents": 3, "tokens": 13292, "chunks": 3},
        {"domain": "book", "files": 2, "documents": 3, "tokens": 20479, "chunks": 4},
    ]
    assert facts["total"] == {"files": 3, "documents": 6, "tokens": 33771, "chunks": 7}
    done = packtok_cli("inspect", "out", "--chunk-tokens", 100, "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["total"]["chunks"] == 50 + 1 + 81 + 40 + 40 + 122
    assert "3 chunks of 4,096" in packtok_cli("inspect", "out", cwd=tmp_path).stdout


def test_documents_are_decoded_with_the_tokenizer_of_the_folder(
    corpus: dict[str, list[str]], tmp_path: Path, tokenizer: Path, packtok_cli: PacktokCli
) -> None:
    tokenize(tmp_path / "root", tmp_path / "out", tokenizer)
    done = packtok_cli("cat", tmp_path / "out" / "arxiv" / "a10.npy", "-d", "3", "--json", cwd=tmp_path)
    (document,) = json.loads(done.stdout)
    assert document["text"] == f"<s>{story_texts(30, 1)[3]}</s>"


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory, tokenizer: Path) -> tuple[Path, dict[str, bytes], float]:
    """Returns a corpus of several files, the output of a whole run, and its duration in seconds."""
    folder = tmp_path_factory.mktemp("many")
    for i in range(8):
        write(folder / "root" / f"{i}.jsonl", stories(4000, i))
    started = time.monotonic()
    process = start(*_command(tokenizer, folder), cwd=folder)
    process.communicate()
    assert process.returncode == 0
    return folder, published(folder / "out"), time.monotonic() - started


def _command(tokenizer: Path, folder: Path, output: str = "out") -> Iterator[object]:
    yield from ("tokenize", folder / "root", "--to", "cepe-npy", "-t", tokenizer, "-o", output, "-q")


def test_runs_killed_at_any_moment_produce_the_same_files(
    many: tuple[Path, dict[str, bytes], float], tmp_path: Path, tokenizer: Path, packtok_cli: PacktokCli
) -> None:
    folder, expected, seconds = many
    rng = random.Random(7)
    for _ in range(extent(30, 1)):
        process = start(*_command(tokenizer, folder), cwd=tmp_path)
        time.sleep(seconds * (0.3 + 0.7 * rng.random()))
        process.kill()
        process.communicate()
        for name, content in published(tmp_path / "out").items() if (tmp_path / "out").exists() else ():
            # A file under its final name is complete, and a marker never precedes its file.
            if name in expected and not name.startswith("tokens.done"):
                assert content == expected[name], name
    packtok_cli(*_command(tokenizer, folder), cwd=tmp_path)
    left = {
        name: content for name, content in published(tmp_path / "out").items() if not name.endswith(".tmp")
    }
    assert left == expected


def test_run_writes_the_files_with_tasks(
    corpus: dict[str, list[str]], tmp_path: Path, tokenizer: Path, packtok_cli: PacktokCli
) -> None:
    done = packtok_cli(
        "run",
        "--no-submit",
        "--json",
        "--array-tasks",
        2,
        "tokenize",
        "root",
        "--to",
        "cepe-npy",
        "-t",
        tokenizer,
        "-o",
        "out",
        cwd=tmp_path,
    )
    result = json.loads(done.stdout)
    assert result["outdir"] == str(tmp_path / "out" / "tokens.shards")
    assert "--array=0-1 " in result["commands"][0]
    assert (tmp_path / "out" / "tokens.shards" / "plan.jsonl").is_file()
    status = json.loads(packtok_cli("status", "out/tokens.shards", "--json", cwd=tmp_path).stdout)
    assert status["shards"] == 2


def test_shards_for_kempnerforge(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a", "b"):
        oracle.write_lines(tmp_path / "in" / f"{name}.jsonl", [f"one {name}", "two"])
    packtok.pack(input=str(tmp_path / "in"), output=str(tmp_path / "a.pbin"), tokenizer="gpt2")
    packtok.convert(tmp_path / "a.pbin", tmp_path / "x", to="npy")
    arguments = ("tokenize", "in", "--to", "npy", "-o", "y", "-t", "gpt2")
    packtok_cli(*arguments, cwd=tmp_path)
    names = ["metadata.yaml", "shard_00000.npy", "tokenizer.json", "tokenizer_config.json"]
    assert sorted(path.name for path in (tmp_path / "y").iterdir() if path.name[0] != ".") == names
    assert (tmp_path / "y" / names[1]).read_bytes() == (tmp_path / "x" / names[1]).read_bytes()
    assert not (tmp_path / "y" / ".tokenized").exists()
    assert "the folder is complete already" in packtok_cli(*arguments, cwd=tmp_path, code=1).stderr
    packtok_cli(*arguments, "--existing", "skip", cwd=tmp_path)
    # A run that was killed before its last step has shards without a description.
    (tmp_path / "y" / "metadata.yaml").unlink()
    packtok_cli(*arguments, cwd=tmp_path)
    packtok_cli(*arguments, "--existing", "replace", "--dtype", "uint32", cwd=tmp_path)
    assert np.load(tmp_path / "y" / names[1]).dtype == "uint32"
    done = packtok_cli(*arguments, "--shard", "0/2", cwd=tmp_path, code=2)
    assert "--outdir cannot be given with --to npy" in done.stderr
