"""Source plug-ins: packed, sharded and resumed like files; only callers name code."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import PacktokCli
from processes import start, wait_for
from repository import CORPUS, ROOT
from stories import TOKENIZER

import packtok
from packtok import ConfigError, DocumentError, PacktokError

PLUGIN = """
import os, signal, threading, time
from pathlib import Path

import packtok

HERE = Path(__file__).parent
NUM = 9000


def text(corpus, part, i):
    return f"{corpus} {part} {i} " + "ein Wort \\n" * (i % 23)


def killed_at(i):
    if i == 7000 and (HERE / "kill").exists():
        (HERE / "kill").unlink()
        os.kill(os.getpid(), signal.SIGKILL)


def note(start):
    with (HERE / "starts").open("a") as file:
        print(start, file=file)


def whole(corpus):
    note(0)
    for i in range(NUM):
        killed_at(i)
        yield text(corpus, "", i)


def resumable(corpus, start=0):
    note(start)
    for i in range(start, NUM):
        killed_at(i)
        yield text(corpus, "", i)


@packtok.source(parts=lambda corpus: ["a", "b/c", "empty", "d"])
def parts(corpus, part, start=0):
    for i in range(start, 0 if part == "empty" else 2000):
        yield text(corpus, part, i)


def changing(corpus):
    number = len((HERE / "starts").read_text().split()) if (HERE / "starts").exists() else 0
    note(0)
    for i in range(NUM):
        killed_at(i)
        yield f"{number} {i}" + " and more" * 20


def failing(corpus):
    yield "good"
    yield "good too"
    raise LookupError("no such page")


def bad(corpus):
    yield from ["a", None, 5, {"text": "x"}, b"bytes", b"\\xff", "\\ud800", "", "x" * 100]


def one_thread(corpus):
    local, ident = threading.local(), threading.get_ident()
    local.value = "kept"
    for i in range(5000):
        assert (local.value, threading.get_ident()) == ("kept", ident)
        yield str(i)


def endless(corpus):
    (HERE / "started").touch()
    while True:
        time.sleep(0.001)
        yield "again"


def a_text(corpus):
    return "a text"


def at_once(corpus):
    return ["one", "two"]


def two_arguments(corpus, other):
    return []


twice = packtok.source(parts=lambda corpus: ["a", "a"])(lambda corpus, part: [])
no_parts = packtok.source(parts=lambda corpus: [])(lambda corpus, part: [])


def signalled_parts(corpus):
    signal.raise_signal(signal.SIGTERM)
    return ["a"]


signalled = packtok.source(parts=signalled_parts)(lambda corpus, part: ["text"])
NOT_CALLABLE = 5
"""


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    path = tmp_path / "my_source.py"
    path.write_text(PLUGIN)
    return path


def pack(plugin: Path, name: str, output: str, **options: object) -> packtok.PackReport:
    arguments = {"input": "wiki", "tokenizer": TOKENIZER, **options}
    return packtok.pack(source=f"{plugin}:{name}", output=plugin.parent / output, **arguments)  # type: ignore[arg-type]


def contents(path: Path) -> list[bytes]:
    reader = packtok.PbinReader(path)
    return [bytes(reader[i]) for i in range(len(reader))]


@pytest.mark.parametrize("name", ["whole", "parts"])
def test_output_does_not_depend_on_threads_and_equals_that_of_the_same_texts_in_a_file(
    plugin: Path, name: str
) -> None:
    for threads in (1, 2, 7):
        pack(plugin, name, f"{threads}.pbin", num_cpus=threads)
    packed = {(plugin.parent / f"{threads}.pbin").read_bytes() for threads in (1, 2, 7)}
    assert len(packed) == 1
    texts = documents_of(plugin, name)
    corpus = plugin.parent / "same.jsonl"
    corpus.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    packtok.pack(input=corpus, output=plugin.parent / "file.pbin", tokenizer=TOKENIZER)
    assert contents(plugin.parent / "1.pbin") == contents(plugin.parent / "file.pbin")


def test_exception_of_a_signal_handler_in_a_plugin_reaches_the_caller(plugin: Path) -> None:
    def stop(*_: object) -> None:
        raise SystemExit(15)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        with pytest.raises(SystemExit, match="15"):
            pack(plugin, "signalled", "signalled.pbin")
    finally:
        signal.signal(signal.SIGTERM, before)


def documents_of(plugin: Path, name: str) -> list[str]:
    scope: dict[str, object] = {"__file__": str(plugin)}
    exec(plugin.read_text(), scope)
    if name == "whole":
        return list(scope["whole"]("wiki"))  # type: ignore[operator]
    return [text for part in ("a", "b/c", "empty", "d") for text in scope["parts"]("wiki", part)]  # type: ignore[operator]


@pytest.mark.parametrize(("name", "num_shards"), [("parts", 1), ("parts", 3), ("parts", 9), ("whole", 2)])
def test_joined_shards_equal_one_run(plugin: Path, name: str, num_shards: int) -> None:
    pack(plugin, name, "whole.pbin", input=["wiki", "news"])
    for shard in range(num_shards):
        pack(plugin, name, "shards", input=["wiki", "news"], shard=f"{shard}/{num_shards}")
    packtok.join(plugin.parent / "shards", plugin.parent / "joined.pbin")
    assert (plugin.parent / "joined.pbin").read_bytes() == (plugin.parent / "whole.pbin").read_bytes()


@pytest.mark.faults
@pytest.mark.parametrize("name", ["whole", "resumable"])
def test_killed_run_resumes_with_equal_bytes(plugin: Path, packtok_cli: PacktokCli, name: str) -> None:
    folder = plugin.parent
    expected = pack(plugin, name, "expected.pbin")
    (folder / "starts").unlink()
    (folder / "kill").touch()
    arguments = ("pack", "--source", f"my_source.py:{name}", "-i", "wiki", "-t", TOKENIZER, "-o", "out.pbin")
    small = (*arguments, "-j", "1", "--set", "span_bytes=1")
    packtok_cli(*small, cwd=folder, code=-signal.SIGKILL)
    done = packtok_cli(*small, cwd=folder)
    assert expected.documents == 9000
    assert "resumed" in done.stdout or name == "resumable"
    starts = [int(line) for line in (folder / "starts").read_text().split()]
    assert starts[0] == 0
    assert (starts[1] > 0) == (name == "resumable"), starts
    assert (folder / "out.pbin").read_bytes() == (folder / "expected.pbin").read_bytes()


@pytest.mark.faults
def test_plugin_that_yields_other_documents_cannot_resume(plugin: Path, packtok_cli: PacktokCli) -> None:
    folder = plugin.parent
    (folder / "kill").touch()
    arguments = ("pack", "--source", "my_source.py:changing", "-i", "wiki", "-t", TOKENIZER, "-o", "out.pbin")
    small = (*arguments, "-j", "1", "--set", "span_bytes=1")
    packtok_cli(*small, cwd=folder, code=-signal.SIGKILL)
    done = packtok_cli(*small, "-q", cwd=folder, code=1)
    assert done.stderr == (
        "packtok: my_source.py:changing: wiki: yields other documents than in the interrupted run; make it "
        "yield the same ones every time, or pack again from the start with --restart (restart: true)\n"
    )
    packtok_cli(*small, "--restart", cwd=folder)


def test_exception_names_plugin_corpus_and_document(plugin: Path, packtok_cli: PacktokCli) -> None:
    with pytest.raises(PacktokError) as raised:
        pack(plugin, "failing", "out.pbin")
    line = PLUGIN.split("\n").index('    raise LookupError("no such page")') + 1
    assert str(raised.value) == (
        f"my_source.py:failing: wiki: document 3: LookupError: no such page ({plugin}, line {line})"
    )
    arguments = ("--source", "my_source.py:failing", "-i", "wiki", "-o", "o.pbin", "-t", TOKENIZER)
    packtok_cli("pack", *arguments, cwd=plugin.parent, code=1)
    assert not list(plugin.parent.glob("o.pbin*"))


def test_bad_documents_are_counted_and_listed(plugin: Path) -> None:
    with pytest.raises(DocumentError, match="wiki: document 2: the document is None, not a text; make the"):
        pack(plugin, "bad", "out.pbin")
    report = pack(plugin, "bad", "out.pbin", on_bad_document="skip", max_document_bytes=50, max_rejects="80%")
    assert (report.lines, report.packed, report.empty, report.rejected) == (9, 2, 1, 6)
    assert report.rejects_path is not None
    rejects = [json.loads(line) for line in Path(report.rejects_path).read_text().splitlines()]
    assert [(reject["document"], reject["reason"]) for reject in rejects] == [
        (2, "the document is None, not a text"),
        (3, "the document is an int, not a text"),
        (4, "the document is a dict, not a text"),
        (6, "the text is not UTF-8 at byte 1"),
        (7, "the text is not UTF-8 at byte 1"),
        (9, rejects[-1]["reason"]),
    ]
    assert "100 bytes" in rejects[-1]["reason"]
    assert {reject["source"] for reject in rejects} == {"wiki"}


def test_one_thread_runs_all_of_a_part(plugin: Path) -> None:
    assert pack(plugin, "one_thread", "out.pbin", num_cpus=4).documents == 5000


def test_existing_output_is_kept_if_the_plugin_yields_the_same(plugin: Path) -> None:
    pack(plugin, "parts", "out.pbin")
    assert pack(plugin, "parts", "out.pbin", existing="skip").skipped_existing
    with pytest.raises(PacktokError, match="its option source"):
        pack(plugin, "whole", "out.pbin", existing="skip")
    plugin.write_text(PLUGIN.replace("ein Wort", "kein Wort"))
    with pytest.raises(PacktokError, match="its source 0"):
        pack(plugin, "parts", "out.pbin", existing="skip")


def test_interruption_ends_a_run_whose_plugin_never_ends(plugin: Path) -> None:
    process = start(
        "pack",
        "--source",
        "my_source.py:endless",
        "-i",
        "wiki",
        "-t",
        TOKENIZER,
        "-o",
        "out.pbin",
        cwd=plugin.parent,
    )
    wait_for((plugin.parent / "started").exists, "the plug-in has started", seconds=60)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    assert "interrupted" in error
    # A limit on documents ends the plug-in too.
    assert pack(plugin, "endless", "limited.pbin", max_documents=3).documents == 3


def test_count_verify_and_plan_read_the_plugin(plugin: Path, packtok_cli: PacktokCli) -> None:
    folder, source = plugin.parent, ("--source", "my_source.py:parts")
    counted = packtok.count("wiki", TOKENIZER, source=f"{plugin}:parts")
    assert counted["total"]["documents"] == 6000
    assert [source["path"] for source in counted["sources"]] == ["wiki/a", "wiki/b/c", "wiki/empty", "wiki/d"]
    pack(plugin, "parts", "out.pbin")
    (folder / "pack.yaml").write_text(
        "settings: {src_path: wiki, dst_path: out.pbin}\n"
        f"tokenizer: {{config: {{pretrained_model_name_or_path: {TOKENIZER}}}}}\n"
    )
    packtok_cli("verify", "out.pbin", "--corpus", "pack.yaml", *source, cwd=folder)
    planned = packtok_cli(
        "plan", "pack.yaml", "-o", "shards", "--shards", 3, *source, "--json", cwd=folder
    ).stdout
    assert json.loads(planned)["num_sources"] == 4
    done = packtok_cli(
        "pack",
        "pack.yaml",
        "-o",
        "shards",
        "--shard",
        0,
        "--source",
        "my_source.py:whole",
        cwd=folder,
        code=1,
    )
    assert "options.source" in done.stderr


def test_tasks_of_a_cluster_receive_the_plugin(plugin: Path, packtok_cli: PacktokCli) -> None:
    arguments = ("--source", "my_source.py:parts", "-i", "wiki", "-t", TOKENIZER, "-o", "out.pbin")
    packtok_cli("run", "--no-submit", "pack", *arguments, cwd=plugin.parent)
    scripts = list(plugin.parent.rglob("*.sbatch"))
    assert any("--source=my_source.py:parts" in script.read_text() for script in scripts)


def test_config_cannot_name_code(plugin: Path, packtok_cli: PacktokCli) -> None:
    message = (
        "settings.source cannot be set in a config, because it names code to run; give it as packtok pack "
        "--source, or as source to packtok.pack"
    )
    config = {
        "settings": {"src_path": "wiki", "dst_path": "o.pbin", "source": f"{plugin}:whole"},
        "tokenizer": {"config": {"pretrained_model_name_or_path": TOKENIZER}},
    }
    (plugin.parent / "pack.yaml").write_text(json.dumps(config))
    with pytest.raises(ConfigError) as raised:
        packtok.pack(config)
    assert str(raised.value) == message
    for more in ((), ("--source", "my_source.py:whole")):
        done = packtok_cli("pack", "pack.yaml", *more, cwd=plugin.parent, code=2)
        assert done.stderr == f"packtok: pack.yaml: {message}\n"
    assert not (plugin.parent / "starts").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("{file}:none", "source: {file} has no 'none'; it has text, killed_at, note, whole, resumable, "),
        ("{file}:NOT_CALLABLE", "source: my_source.py:NOT_CALLABLE is of type int; expected a function"),
        ("{file}:two_arguments", "two_arguments(corpus, other) cannot be called with (corpus); declare"),
        ("{folder}/none.py:f", "source: {folder}/none.py: No such file"),
        ("no_such_module:f", "source: no_such_module:f cannot be imported: ModuleNotFoundError: "),
        ("nothing", "source: no plug-in 'nothing'; expected my_source.py:function, "),
        (":f", "source: ':f' names no plug-in; expected "),
    ],
)
def test_wrong_names_are_explained(plugin: Path, name: str, message: str) -> None:
    values = {"file": plugin, "folder": plugin.parent}
    with pytest.raises(ConfigError) as raised:
        packtok.pack(
            input="wiki", output=plugin.parent / "o.pbin", tokenizer=TOKENIZER, source=name.format(**values)
        )
    assert message.format(**values) in str(raised.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a_text", "wiki: TypeError: the function returned a str; expected an iterable of texts"),
        ("twice", 'wiki: its part "a" is listed twice; expected distinct names'),
        ("no_parts", "wiki: the list of its parts is empty; expected at least one"),
    ],
)
def test_wrong_plugins_are_explained(plugin: Path, name: str, message: str) -> None:
    with pytest.raises(PacktokError) as raised:
        pack(plugin, name, "o.pbin")
    assert message in str(raised.value)


def test_options_that_describe_files_are_refused(plugin: Path) -> None:
    for options in ({"format": "csv"}, {"text_separator": "x"}):
        with pytest.raises(ConfigError, match="it describes files, but source reads the inputs"):
            pack(plugin, "at_once", "o.pbin", **options)
    report = pack(plugin, "at_once", "o.pbin", field=".body")
    assert report.warnings == (
        "settings.jq_pattern has no effect: the documents of a source plug-in are texts",
    )
    assert report.source == "my_source.py:at_once"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "crawl_of_mine.py").write_text("def documents(corpus):\n    return [corpus, 'b']\n")
    info = tmp_path / "crawl_of_mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: crawl-of-mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[packtok.sources]\nmy-crawl = crawl_of_mine:documents\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("crawl_of_mine", None)


@pytest.mark.usefixtures("installed")
def test_installed_plugin_is_found_by_its_name(tmp_path: Path) -> None:
    for source in ("my-crawl", "crawl_of_mine:documents"):
        report = packtok.pack(
            input="wiki", output=tmp_path / "o.pbin", tokenizer=TOKENIZER, source=source, existing="replace"
        )
        assert (report.documents, report.source) == (2, source)
    with pytest.raises(ConfigError, match="installed: datasets, my-crawl"):
        packtok.pack(input="wiki", output=tmp_path / "o.pbin", tokenizer=TOKENIZER, source="other")


FAULTY = """
import packtok

runs = [0]


def other_each_time(corpus):
    runs[0] += 1
    return ["same", f"run {runs[0]}", "same"]


def wrong_start(corpus, start=0):
    return [str(i) for i in range(max(start - 1, 0), 9)]


def no_text(corpus):
    return ["a", 5]


@packtok.source(parts=lambda corpus: ["a", "a"])
def twice(corpus, part):
    return []
"""


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("other_each_time", "c: a second run yields another document 2"),
        ("wrong_start", "c: with start=1 it yields another document 2"),
        ("no_text", "c: document 2 is of type int; expected a text"),
        ("twice", "c: its parts are ['a', 'a']; expected distinct names, at least one"),
    ],
)
def test_checker_finds_faults(tmp_path: Path, name: str, fault: str) -> None:
    (tmp_path / "faulty.py").write_text(FAULTY)
    report = packtok.check_source(f"{tmp_path}/faulty.py:{name}", "c")
    assert report["faults"][0] == fault


def test_example_passes_the_checker_and_packs_the_stories_by_language(
    tmp_path: Path, packtok_cli: PacktokCli
) -> None:
    source = "examples/source/story_source.py:documents"
    done = packtok_cli("source", "check", source, "examples/corpus.jsonl", cwd=ROOT)
    assert done.stdout.startswith("story_source.py:documents: ")
    assert "96 documents" in done.stdout
    assert "resumes with start" in done.stdout
    packtok_cli(
        "pack",
        "--source",
        source,
        "-i",
        "examples/corpus.jsonl",
        "-t",
        TOKENIZER,
        "-o",
        tmp_path / "o.pbin",
        cwd=ROOT,
    )
    reader, tokenizer = packtok.PbinReader(tmp_path / "o.pbin"), packtok.Tokenizer.from_pretrained(TOKENIZER)
    stories = [json.loads(line) for line in CORPUS.read_text().splitlines()]
    by_language = sorted(stories, key=lambda story: story["lang"])
    assert [tokenizer.decode(reader[i][:-1]) for i in range(len(reader))] == [
        story["text"] for story in by_language
    ]


def test_checker_exits_with_1_on_a_fault(tmp_path: Path, packtok_cli: PacktokCli) -> None:
    (tmp_path / "faulty.py").write_text(FAULTY)
    done = packtok_cli("source", "check", "faulty.py:no_text", "c", "-q", cwd=tmp_path, code=1)
    assert done.stdout == "c: document 2 is of type int; expected a text\n"
