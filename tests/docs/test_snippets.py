"""The code in README.md and the guides: it runs, in order, in one folder, or states why it does not."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs torch (pip install '.[torch]')")

from extent import IS_THOROUGH
from repository import ROOT
from snippets import Reader, Snippet, SnippetError, environment, snippets

# The order of reading; guides that are not listed follow these.
FIRST = [
    "README.md",
    "docs/guides/get_started.md",
    "docs/guides/tokenizers.md",
    "docs/reference/pack_config.md",
    "docs/guides/corpora.md",
    "docs/guides/token_dataset.md",
    "docs/reference/packings_and_splits.md",
    "docs/guides/resume_training.md",
    "docs/guides/dataset_files.md",
    "docs/guides/resume_packing.md",
    "docs/guides/shards.md",
    "examples/getting_started/README.md",
    "examples/loaders/README.md",
]
FOLDERS = ("docs", "examples", "slurm")
OTHERS = {path.relative_to(ROOT).as_posix() for folder in FOLDERS for path in (ROOT / folder).rglob("*.md")}
STORY = [*FIRST, *sorted(OTHERS - set(FIRST))]
# These pages take long, and the tests of their areas run the same commands with less to do.
LONG = {
    "docs/guides/catalog.md",
    "docs/guides/complete_configs.md",
    "docs/guides/corpora.md",
    "docs/guides/instruction_tuning.md",
    "docs/guides/source_plugins.md",
    "docs/guides/teacher_signals.md",
    "docs/guides/tokenizers.md",
    "examples/formats/README.md",
    "examples/loaders/README.md",
}
# Smaller training settings for the guides; these steps suffice to run every program.
SMALLER = {"steps: 600": "steps: 20", "checkpoint_every: 100": "checkpoint_every: 10"}
# These train for a long time, or need that run. In CI, tests/docs/test_getting_started.py starts the same
# programs with less to do.
TRAINING = {
    "examples/getting_started/README.md": (
        "torchrun --standalone --nproc-per-node 2 ",
        "python plot_losses.py ",
    ),
}


class Story:
    """The folder in which all snippets run, and how many have run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "packtok"
        self.env = environment(folder)
        self._done: dict[str, str | SnippetError] = {}
        self.folder.mkdir()
        ignored = shutil.ignore_patterns("data", "runs", "__pycache__", "*.png")
        shutil.copytree(ROOT / "examples", self.folder / "examples", ignore=ignored)
        # The texts on which examples/getting_started trains.
        for name in ("docs", "crates", "python"):
            (self.folder / name).symlink_to(ROOT / name)
        config = self.folder / "examples" / "getting_started" / "small.yaml"
        text = config.read_text(encoding="utf-8")
        for larger, smaller in SMALLER.items():
            assert text.count(larger) == 1
            text = text.replace(larger, smaller)
        config.write_text(text, encoding="utf-8")

    def read(self, document: str) -> str:
        """Runs the snippets of ``document``, after those of the earlier ones, and returns their output.

        Only the thorough run includes long documents, so no other document needs what they write.

        Raises:
            SnippetError: If one of ``document`` fails.
        """
        for name in STORY[: STORY.index(document) + 1]:
            if name not in self._done and (IS_THOROUGH or name not in LONG):
                self._done[name] = self._read(name)
        done = self._done[document]
        if isinstance(done, SnippetError):
            raise done
        return done

    def _read(self, document: str) -> str | SnippetError:
        try:
            with Reader(self.folder, self.env) as reader:
                for snippet in of(document):
                    if IS_THOROUGH or not snippet.code.startswith(TRAINING.get(document, ())):
                        reader.run(snippet)
                return reader.output
        except SnippetError as error:
            return error


def of(document: str) -> list[Snippet]:
    return snippets(Path(document), (ROOT / document).read_text(encoding="utf-8"))


def shell_snippets(document: str) -> list[Snippet]:
    return [snippet for snippet in of(document) if snippet.language == "sh"]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    return Story(tmp_path_factory.mktemp("story"))


@pytest.mark.parametrize(
    "document", [pytest.param(name, marks=pytest.mark.whole) if name in LONG else name for name in STORY]
)
def test_all_snippets_run(story: Story, document: str) -> None:
    story.read(document)


def test_first_command_packs_the_corpus(story: Story) -> None:
    first = shell_snippets("README.md")[0]
    install, _, rest = first.code.partition(".venv/bin/pip install . && ")
    assert install == "python3 -m venv .venv && "
    with Reader(story.folder, story.env) as reader:
        code = rest.replace(".venv/bin/packtok", "packtok")
        reader.run(Snippet(first.place, "sh", code, None))
    assert "documents      96\n" in reader.output


def test_second_command_runs_the_tests() -> None:
    # .ci/run runs the first line of the README that names tests/run.py.
    second = shell_snippets("README.md")[1]
    line = next(line for line in (ROOT / "README.md").read_text().splitlines() if "tests/run.py" in line)
    assert second.code == f"{line}\n"
    assert line == "python3 tests/run.py"


def test_readme_tour_prints_the_shown_output(story: Story) -> None:
    assert story.read("README.md").startswith("96 23765\nThe lighthouse at the end\n")


def test_get_started_ends_with_training_steps_and_the_shown_losses(story: Story) -> None:
    output = story.read("docs/guides/get_started.md")
    losses = {step: float(loss) for step, loss in re.findall(r"^step (\d+): loss ([\d.]+)$", output, re.M)}
    assert list(losses) == ["1", "2", "3", "4", "5"]
    assert losses["5"] < losses["1"] - 0.3
    documented = re.findall(
        r"^step (\d+): loss ([\d.]+)$", (ROOT / "docs/guides/get_started.md").read_text(), re.M
    )
    assert [step for step, _ in documented] == ["1", "5"]
    # Other versions of torch and other processors round differently.
    assert [float(loss) for _, loss in documented] == pytest.approx(
        [losses[step] for step, _ in documented], abs=0.2
    )
    assert "96 23765\n" in output
    assert "The lighthouse at the end\n" in output


def test_training_is_two_snippets() -> None:
    for document, starts in TRAINING.items():
        runs = [snippet.code for snippet in of(document) if snippet.reason is None]
        assert [sum(code.startswith(start) for code in runs) for start in starts] == [1, 1]


def test_few_snippets_are_exempt() -> None:
    exempt = [
        snippet.place
        for document in STORY
        for snippet in of(document)
        if snippet.language not in ("text", "json", "yaml", "hexdump") and snippet.reason is not None
    ]
    runs = [snippet for document in STORY for snippet in of(document) if snippet.reason is None]
    assert len(exempt) < len(runs), exempt


TERMS = ("pbin", "EOD", "span", "global batch")


def prose(document: str) -> str:
    """Returns the text of a guide without code, link targets and headings."""
    text = (ROOT / document).read_text(encoding="utf-8")
    for left_out in (r"^ *```.*?^ *```$", r"^#.*?$", r"`[^`]*`", r"(?<=\])\([^)]*\)"):
        text = re.sub(left_out, "", text, flags=re.M | re.S)
    return " ".join(text.split())


@pytest.mark.parametrize("document", FIRST)
@pytest.mark.parametrize("term", TERMS)
def test_terms_are_explained_on_first_use(document: str, term: str) -> None:
    """A term is explained in bold, as in ``a **pbin**: …``, or by a link to its explanation."""
    text = prose(document)
    first = re.search(rf"\b{term}s?\b", text)
    if first is None:
        assert document != "docs/guides/get_started.md"
        return
    explained = re.search(rf"\*\*{term}s?\*\*|\[{term}s?\]", text)
    assert explained is not None, f"{document} uses {term!r} without an explanation"
    assert explained.start() < first.start(), text[first.start() - 60 : first.end() + 20]


def marked(text: str) -> list[Snippet]:
    return snippets(Path("guide.md"), text)


@pytest.mark.parametrize(
    ("info", "message"),
    [
        ("sh norun", "guide.md:2: unknown mark 'norun'; the only one is 'no-run: REASON'"),
        ("sh no-run", "guide.md:2: unknown mark 'no-run'; the only one is 'no-run: REASON'"),
        ("sh no-run: ", "guide.md:2: unknown mark 'no-run:'; the only one is 'no-run: REASON'"),
        ("python skip", "guide.md:2: unknown mark 'skip'; the only one is 'no-run: REASON'"),
        (
            "bash",
            "guide.md:2: unknown language 'bash'; known are sh, python, console, text, json, yaml, hexdump",
        ),
        ("", "guide.md:2: unknown language ''; known are sh, python, console, text, json, yaml, hexdump"),
        (
            "yaml no-run: why",
            "guide.md:2: unknown language 'yaml'; known are sh, python, console, text, json, yaml, hexdump",
        ),
    ],
)
def test_unknown_mark_is_an_error(info: str, message: str) -> None:
    with pytest.raises(SnippetError) as raised:
        marked(f"text\n```{info}\ntrue\n```\n")
    assert str(raised.value) == message


def test_unclosed_block_is_an_error() -> None:
    with pytest.raises(SnippetError, match=r"guide\.md:1: the block is not closed"):
        marked("```sh\ntrue\n")


def run_all(text: str, tmp_path: Path) -> str:
    folder = tmp_path / "folder"
    folder.mkdir()
    with Reader(folder, environment(tmp_path)) as reader:
        for snippet in marked(text):
            reader.run(snippet)
        return reader.output


def test_snippets_share_folder_and_variables(tmp_path: Path) -> None:
    text = (
        "```sh\nmkdir a\ncd a\necho 1 >one\n```\n- in a list\n"
        "\n  ```python\n  x = open('one').read()\n  ```\n"
        "```sh no-run: fails\nfalse\n```\n```sh\ncat one\n```\n```python\nprint(int(x) + 1)\n```\n"
    )
    assert run_all(text, tmp_path) == "1\n2\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```sh\nfalse\ntrue\n```\n", "guide.md:1: exit status 1"),
        ("```sh\nnone-such | cat\n```\n", "guide.md:1: exit status 127"),
        ("```python\nraise ValueError('no')\n```\n", "guide.md:1: failed\nTraceback"),
        ("```python\nimport sys\nsys.exit(0)\n```\n", "guide.md:1: failed"),
        ("```python\nimport os\nos._exit(0)\n```\n", "guide.md:1: failed"),
        ("```python\n1 + 1  # 3\n```\n", "guide.md:1: 1 + 1 is 2, not 3"),
        ("```console\n$ echo a\nb\n```\n", "guide.md:1: $ echo a\nprints\na\n\nand not\nb\n"),
        ("```console\n$ printf 'a\\nb'\na\n```\n", "prints\na\nb\nand not\na\n"),
    ],
)
def test_failing_snippet_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SnippetError) as raised:
        run_all(text, tmp_path)
    assert message in str(raised.value)


def test_shown_output_can_be_abbreviated(tmp_path: Path) -> None:
    text = "```console\n$ echo took 5 s; echo b; echo c\ntook … s\n…\n$ echo d  # again\nd\n```\n"
    assert run_all(text, tmp_path) == "took 5 s\nb\nc\nd\n"


def test_values_in_comments_are_compared_without_spaces(tmp_path: Path) -> None:
    assert run_all("```python\n[1,  2]  # [1, 2]: two numbers\n'a'  # not a value\n```\n", tmp_path) == ""
