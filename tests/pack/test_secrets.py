"""Values from the environment and credentials in URLs are neither printed nor written.

Each secret is searched for in every byte of standard output, standard error and all created files.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import PacktokCli
from processes import names
from small_tokenizers import small_tokenizer
from stories import TOKENIZER

import packtok
from packtok.config.redact import Redactor

# Characters that a path, a jq string and a token can all contain.
SECRET = "hunter2-Zürich_42"
RESOLVERS = ("${cuda_env:PACKTOK_SECRET}", "${oc.env:PACKTOK_SECRET}", "${oc.env:PACKTOK_SECRET,unused}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a folder whose sources, index and tokenizer are in a folder with a secret name."""
    hidden = tmp_path / SECRET
    hidden.mkdir()
    lines = [json.dumps({"text": text, SECRET: text}) + "\n" for text in ("one", "two", "three")]
    (hidden / "corpus.jsonl").write_text("".join(lines))
    (hidden / "bad.jsonl").write_text('{"text": "good"}\n{"text": 5}\n{"text": "x"')
    (tmp_path / "plain.jsonl").write_text('{"text": "plain"}\n')
    described = json.loads(small_tokenizer(tmp_path).read_text())
    (tmp_path / "small.json").unlink()
    special = {**described["added_tokens"][0], "id": 3, "content": f"<{SECRET}>"}
    described["model"]["vocab"][f"<{SECRET}>"] = 3
    described["added_tokens"].append(special)
    (hidden / "tokenizer.json").write_text(json.dumps(described))
    return tmp_path


def run(cli: PacktokCli, folder: Path, config: str, *more: object, code: int | None) -> str:
    """Returns everything that a run with this config prints."""
    (folder / "pack.yaml").write_text(config)
    command = ("pack", "pack.yaml", *more)
    done = cli(*command, cwd=folder, code=code, env={"PACKTOK_SECRET": SECRET, "HF_HUB_OFFLINE": "1"})
    return done.stdout + done.stderr


def assert_hidden(printed: str, folder: Path, *, secret: str = SECRET, but: tuple[str, ...] = ()) -> None:
    """Asserts that the secret is neither in the output nor in any file or file name of the folder."""
    forms = {secret, json.dumps(secret)[1:-1], secret.encode().hex(), ascii(secret)[1:-1]}
    for form in forms:
        assert form not in printed, printed
        for path in folder.iterdir():
            if path.is_file() and path.name not in but:
                assert form.encode() not in path.read_bytes(), path
                assert form not in path.name


def config(src: str = "plain.jsonl", *, tokenizer: str = TOKENIZER, **settings: str) -> str:
    """Returns a config that packs ``src``; strings are quoted, so that interpolations are valid YAML."""
    values = {"src_path": src, "dst_path": "out.pbin", "report": "report.json", **settings}
    lines = [f"  {key}: {json.dumps(value)}\n" for key, value in values.items()]
    return "settings:\n" + "".join(lines) + f"tokenizer: {json.dumps(tokenizer)}\n"


@pytest.mark.parametrize("value", RESOLVERS)
@pytest.mark.parametrize("on_bad_document", ["skip", "fail"])
def test_secret_in_the_path_of_a_source(
    folder: Path, packtok_cli: PacktokCli, value: str, on_bad_document: str
) -> None:
    text = config(f"{value}/bad.jsonl", on_bad_document=on_bad_document)
    printed = run(packtok_cli, folder, text, code=0 if on_bad_document == "skip" else 1)
    assert_hidden(printed, folder)
    if on_bad_document == "skip":
        assert {"out.pbin", "out.pbin.rejects.jsonl", "report.json"} <= set(names(folder))
    else:
        name = value.partition(",")[0].rstrip("}") + "}"
        assert f"{name}/bad.jsonl:2: byte 17: " in printed


def test_secret_in_the_label_of_a_source(folder: Path, packtok_cli: PacktokCli) -> None:
    # The labels of two sources in different folders start at the common parent, and contain the secret.
    for source in ("bad.jsonl", "corpus.jsonl"):
        text = config().replace('"plain.jsonl"', f'["plain.jsonl", "${{oc.env:PACKTOK_SECRET}}/{source}"]')
        more = ("--on-bad-document", "skip", "--existing", "replace")
        assert_hidden(run(packtok_cli, folder, text, *more, code=0), folder)
        facts = packtok_cli("inspect", "out.pbin", "--json", cwd=folder).stdout
        assert [each["path"] for each in json.loads(facts)["sources"]] == [
            "plain.jsonl",
            f"${{oc.env:PACKTOK_SECRET}}/{source}",
        ]
    assert_hidden(run(packtok_cli, folder, text, "--existing", "skip", code=0), folder)
    (folder / SECRET / "corpus.jsonl").write_text('{"text": "changed"}\n')
    assert_hidden(run(packtok_cli, folder, text, "--existing", "skip", code=1), folder)


@pytest.mark.parametrize(
    ("settings", "tokenizer", "code"),
    [
        # In a filter, both when it works and when an error shows it.
        ({"jq_pattern": '.["${oc.env:PACKTOK_SECRET}"] // .text'}, TOKENIZER, 0),
        ({"jq_pattern": '.["${oc.env:PACKTOK_SECRET}"]'}, TOKENIZER, 1),
        ({"jq_pattern": '.text + "${oc.env:PACKTOK_SECRET}" | tonumber'}, TOKENIZER, 1),
        ({"jq_pattern": 'error("${oc.env:PACKTOK_SECRET}")'}, TOKENIZER, 1),
        ({"jq_pattern": ".text | ${oc.env:PACKTOK_SECRET}"}, TOKENIZER, 1),
        ({"jq_pattern": '"${oc.env:PACKTOK_SECRET}" | repeat(.) | empty'}, TOKENIZER, 1),
        # In all options that are paths.
        ({"src_path": "${oc.env:PACKTOK_SECRET}/none.jsonl"}, TOKENIZER, 1),
        ({"src_path": "${oc.env:PACKTOK_SECRET}/*.none"}, TOKENIZER, 1),
        ({"src_path": "${oc.env:PACKTOK_SECRET}/[.jsonl"}, TOKENIZER, 1),
        ({"dst_path": "${oc.env:PACKTOK_SECRET}/out.pbin"}, TOKENIZER, 0),
        ({"dst_path": "plain.jsonl/${oc.env:PACKTOK_SECRET}"}, TOKENIZER, 1),
        ({"dst_path": "${oc.env:PACKTOK_SECRET}"}, TOKENIZER, 1),
        ({"report": "${oc.env:PACKTOK_SECRET}/report.json"}, TOKENIZER, 0),
        ({"report": "none-${oc.env:PACKTOK_SECRET}/report.json"}, TOKENIZER, 1),
        ({"index_path": "${oc.env:PACKTOK_SECRET}/none.idx"}, TOKENIZER, None),
        ({"index_path": "${oc.env:PACKTOK_SECRET}/corpus.jsonl"}, TOKENIZER, 1),
        # The secret as the tokenizer and its tokens.
        ({"eod_token": "</s>"}, "${oc.env:PACKTOK_SECRET}", 0),
        ({}, "${oc.env:PACKTOK_SECRET}", 2),
        ({}, "${oc.env:PACKTOK_SECRET}/corpus.jsonl", 1),
        ({}, "${oc.env:PACKTOK_SECRET}/none", 1),
        ({}, "some/${oc.env:PACKTOK_SECRET}", 1),
        ({"eod_token": "<${oc.env:PACKTOK_SECRET}>"}, "${oc.env:PACKTOK_SECRET}", 0),
        ({"eod_token": "<${oc.env:PACKTOK_SECRET}>"}, TOKENIZER, 1),
        ({"eod_token": "</s>", "bos_token": "<${oc.env:PACKTOK_SECRET}>"}, "${oc.env:PACKTOK_SECRET}", 0),
        # The secret as invalid values.
        ({"num_cpus": "${oc.env:PACKTOK_SECRET}"}, TOKENIZER, 2),
        ({"existing": "${oc.env:PACKTOK_SECRET}"}, TOKENIZER, 2),
        ({"${oc.env:PACKTOK_SECRET}": "1"}, TOKENIZER, 2),
    ],
)
def test_secret_anywhere_in_the_config(
    folder: Path, packtok_cli: PacktokCli, settings: dict[str, str], tokenizer: str, code: int | None
) -> None:
    source = {"src_path": "plain.jsonl", **settings}
    text = config(source.pop("src_path"), tokenizer=tokenizer, **source)
    printed = run(packtok_cli, folder, text, code=code)
    # The tokenizer's own file belongs to the user: its copy next to the output has the same contents.
    assert_hidden(printed, folder, but=("out.pbin.tokenizer.json",))
    assert_hidden(
        run(packtok_cli, folder, text, "--print-config", code=None), folder, but=("out.pbin.tokenizer.json",)
    )


def test_secret_from_a_flag_or_an_override(folder: Path, packtok_cli: PacktokCli) -> None:
    more = ("--set", "src_path=${oc.env:PACKTOK_SECRET}/bad.jsonl", "--on-bad-document", "skip")
    assert_hidden(run(packtok_cli, folder, config(), *more, code=0), folder)
    more = ("--input", "${oc.env:PACKTOK_SECRET}/none.jsonl", "--existing", "replace")
    assert_hidden(run(packtok_cli, folder, config(), *more, code=1), folder)


def test_secret_in_verify_with_a_corpus(folder: Path, packtok_cli: PacktokCli) -> None:
    env = {"PACKTOK_SECRET": SECRET}
    run(packtok_cli, folder, config("${oc.env:PACKTOK_SECRET}/corpus.jsonl"), code=0)
    command = ("verify", "out.pbin", "--corpus", "pack.yaml")
    done = packtok_cli(*command, cwd=folder, env=env)
    assert_hidden(done.stdout + done.stderr, folder)
    (folder / SECRET / "corpus.jsonl").write_text('{"text": "changed"}\n')
    done = packtok_cli(*command, cwd=folder, env=env, code=1)
    assert "differs" in done.stderr or "documents" in done.stderr
    assert_hidden(done.stdout + done.stderr, folder)


def test_secret_in_python(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACKTOK_SECRET", SECRET)
    monkeypatch.chdir(folder)
    tree = {"settings": {"src_path": "${oc.env:PACKTOK_SECRET}/bad.jsonl"}, "tokenizer": TOKENIZER}
    report = packtok.pack(tree, output="out.pbin", on_bad_document="skip")
    assert_hidden(repr(report) + json.dumps(report.to_dict()), folder)
    with pytest.raises(packtok.DocumentError) as caught:
        packtok.pack(tree, output="other.pbin")
    assert_hidden(repr(caught.value) + str(caught.value), folder)
    with pytest.raises(OSError, match=r"\$\{oc\.env:PACKTOK_SECRET\}") as refused:
        packtok.pack(tree, input="${oc.env:PACKTOK_SECRET}/none.jsonl", output="other.pbin")
    assert_hidden(repr(refused.value) + str(refused.value), folder)


URLS = (
    "https://user:SECRET@example.org/c.jsonl",
    "https://SECRET@example.org/c.jsonl",
    "https://example.org/c.jsonl?token=SECRET",
    "https://example.org/c.jsonl#SECRET",
    "s3://key:SECRET@bucket/c.jsonl?X-Amz-Signature=SECRET&a=b",
    "https://user:pass@word@SECRET@example.org/c.jsonl",
    "https://user:SECRET/with/slash@example.org/c.jsonl",
    "https://user:SECRET?mark@example.org/c.jsonl",
    "hdfs://user:SECRET@[::1]:9000/c.jsonl",
)


@pytest.mark.parametrize("url", URLS)
def test_credentials_in_urls(folder: Path, packtok_cli: PacktokCli, url: str) -> None:
    secret = "s3cr3tPassw0rd"
    url = url.replace("SECRET", secret)
    (folder / "pack.yaml").unlink(missing_ok=True)
    good = {"-i": "plain.jsonl", "-o": "out.pbin", "-t": TOKENIZER}
    for option, more in (("-i", ("--print-config",)), ("-i", ()), ("-t", ())):
        arguments = [part for pair in {**good, option: url}.items() for part in pair]
        done = packtok_cli("pack", *arguments, *more, cwd=folder, code=None, env={"HF_HUB_OFFLINE": "1"})
        assert_hidden(done.stdout + done.stderr, folder, secret=secret)
    for more in (("--eod", url), ("--field", f'"{url}" + .none')):
        arguments = [part for pair in good.items() for part in pair]
        done = packtok_cli("pack", *arguments, *more, cwd=folder, code=None, env={"HF_HUB_OFFLINE": "1"})
        assert_hidden(done.stdout + done.stderr, folder, secret=secret)
        for path in folder.glob("out.pbin*"):
            path.unlink()


@pytest.mark.parametrize("option", ["-o", "--report"])
def test_url_instead_of_a_file_is_rejected(folder: Path, packtok_cli: PacktokCli, option: str) -> None:
    url = "s3://key:s3cr3tPassw0rd@bucket/out.pbin"
    before = names(folder)
    arguments = {"-i": "plain.jsonl", "-o": "out.pbin", "-t": TOKENIZER, option: url}
    done = packtok_cli("pack", *(part for pair in arguments.items() for part in pair), cwd=folder, code=None)
    assert done.returncode in (1, 2)
    assert names(folder) == before
    (line,) = done.stderr.splitlines()
    assert "s3://***@bucket/out.pbin" in line
    assert_hidden(done.stdout + done.stderr, folder, secret="s3cr3tPassw0rd")


def test_short_values_are_not_secret() -> None:
    assert Redactor((("1", "${oc.env:RANK}"),))("1 of 10") == "1 of 10"
