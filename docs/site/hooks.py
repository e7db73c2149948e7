"""Hooks of MkDocs: pages from outside docs/, generated pages, and links that work on the site too.

Pages are written to be read in the repository, with relative links. On the site, a link to another page leads
to that page, and a link to any other file, such as examples/corpus.jsonl, to a copy of it.
"""

import html
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import packtok
from packtok.cli import app
from packtok.lazy import homes

ROOT = Path(__file__).resolve().parent.parent.parent
# Pages outside docs/: path in the repository, and path on the site.
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CODE_OF_CONDUCT.md": "code_of_conduct.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "benches/README.md": "benchmarks.md",
    "examples/README.md": "examples/index.md",
    "examples/getting_started/README.md": "examples/getting_started.md",
    "examples/loaders/README.md": "examples/loaders.md",
    "examples/streaming/README.md": "examples/streaming.md",
    "examples/formats/README.md": "examples/formats.md",
    "slurm/README.md": "slurm/scripts.md",
    "tests/fuzz/README.md": "tests/fuzzing.md",
    "tests/golden/README.md": "tests/golden_files.md",
}
# Folders of the code whose README.md is a page.
FOLDERS = ("crates/*", "python/packtok", "python/packtok/*", "scripts", "tests")
CODE = {
    readme.relative_to(ROOT).as_posix(): f"code/{readme.parent.relative_to(ROOT).as_posix()}.md"
    for folder in FOLDERS
    for readme in sorted(ROOT.glob(f"{folder}/README.md"))
}
PAGES |= CODE
SOURCES = {site: repository for repository, site in PAGES.items()}
# Folder for copies of other files.
COPIES = "repository/"
# Public members of classes that also have members for the rest of the package.
MEMBERS = {"PackConfig": ("to_yaml", "to_dict")}
# Code of 100 columns fits.
STYLE = ".md-grid { max-width: 76rem; }"

_FENCE = re.compile(r"^( *)(```+)([^\n]*)\n(.*?\n)?\1\2 *$", re.M | re.S)
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)")


def on_config(config: MkDocsConfig) -> None:
    """Adds the pages of folders of the code to the navigation."""
    (design,) = (section["Design"] for section in config.nav or [] if "Design" in section)
    design.append({"Folders of the code": list(CODE.values())})


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages outside docs/, the generated ones, and copies of the files that pages link to."""
    for repository, site in PAGES.items():
        files.append(File.generated(config, site, abs_src_path=str(ROOT / repository)))
    linked: set[str] = set()
    for file in files.documentation_pages():
        linked.update(_linked_files(file.src_uri, file.content_string))
    for site, page in GENERATED.items():
        files.append(File.generated(config, site, content=page()))
    for repository in sorted(linked):
        files.append(File.generated(config, COPIES + repository, abs_src_path=str(ROOT / repository)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Rewrites links, and removes the marks of code blocks for the tests, such as `no-run`."""
    site = page.file.src_uri

    def rewrite(link: re.Match[str]) -> str:
        target = _site_path(_repository_path(site, link[1]))
        return os.path.relpath(target, PurePosixPath(site).parent).replace(os.sep, "/")

    if site in GENERATED:
        return markdown
    return "".join(
        re.sub(r"\A( *```+\w*)[^\n]*", r"\1", text) if is_code else _LINK.sub(rewrite, text)
        for is_code, text in _split(markdown)
    )


def on_post_build(config: MkDocsConfig) -> None:
    """Writes the style sheet."""
    path = Path(config.site_dir) / str(config.extra_css[0])
    path.parent.mkdir(exist_ok=True)
    path.write_text(STYLE, encoding="utf-8")


def _split(markdown: str) -> Iterator[tuple[bool, str]]:
    """Yields the parts of the text, each with whether it is a fenced block."""
    end = 0
    for fence in _FENCE.finditer(markdown):
        yield False, markdown[end : fence.start()]
        yield True, fence[0]
        end = fence.end()
    yield False, markdown[end:]


def _linked_files(site: str, markdown: str) -> Iterator[str]:
    """Yields the files of the repository that a page links to, except pages."""
    for is_code, text in _split(markdown):
        for link in [] if is_code else _LINK.findall(text):
            path = _repository_path(site, link)
            if _site_path(path) == COPIES + path and (ROOT / path).is_file():
                yield path


def _repository_path(site: str, link: str) -> str:
    """Returns the path in the repository that a link of a page leads to."""
    source = SOURCES.get(site, f"docs/{site}")
    return os.path.normpath(PurePosixPath(source).parent / link).replace(os.sep, "/")


def _site_path(repository: str) -> str:
    """Returns the path on the site of a file of the repository."""
    if repository.startswith("docs/"):
        return repository.removeprefix("docs/")
    return PAGES.get(repository, COPIES + repository)


def command_line() -> str:
    """Returns the page of the command line, generated from the commands."""
    program = typer.main.get_command(app)
    context = program.context_class(program, info_name="packtok")
    lines = ["# Command line", "", _plain(program.help), ""]
    lines += ["This page shows what `packtok COMMAND --help` prints.", ""]
    for command, path in _commands(program, context):
        if hasattr(command, "commands"):
            continue
        lines += [f"## {path.command_path}", "", _plain(command.help), "", "```text"]
        lines += [command.get_usage(path).removeprefix("Usage: "), "```", ""]
        records = [record for param in command.get_params(path) if (record := param.get_help_record(path))]
        if records:
            # As HTML, because code in a Markdown table cannot contain a vertical bar.
            lines += ["<table>", *(_row(name, text) for name, text in records), "</table>"]
        lines.append("")
    return "\n".join(lines)


def _commands(command: Any, context: Any) -> Iterator[tuple[Any, Any]]:
    yield command, context
    for name, child in getattr(command, "commands", {}).items():
        if not child.hidden:
            yield from _commands(child, child.context_class(child, info_name=name, parent=context))


def _row(name: str, text: str) -> str:
    return f"<tr><td><code>{html.escape(name)}</code></td><td>{html.escape(text)}</td></tr>"


def _plain(text: str | None) -> str:
    """Returns a text as Markdown that displays it unchanged."""
    return re.sub(r"([|*_<>\[\]\\])", r"\\\1", " ".join((text or "").split()))


STREAMING = (
    *("CheckpointableDataset", "CheckpointableIterator", "interleave_datasets", "concat_datasets"),
    *("merge_states", "braceexpand", "testing.check_resumption", "testing.check_ranks"),
)


def python_api() -> str:
    """Returns the page of the Python API: every public name of the package, grouped by purpose."""
    groups: dict[str, list[str]] = {
        title: [] for title in ("Packing and files", "Tokenizers and readers", "Training", "Errors")
    }
    for name in packtok.__all__:
        if name != "__version__":
            groups[_group(name)].append(name)
    lines = ["# Python API", "", "The public names of `packtok`, and all of their arguments.", ""]
    for title, names in groups.items():
        lines += [f"## {title}", ""]
        for name in sorted(names, key=_rank):
            lines += [f"::: packtok.{name}", ""]
            if name in MEMBERS:
                lines[-1:] = ["    options:", f"      members: [{', '.join(MEMBERS[name])}]", ""]
    lines += ["## Streaming", "", "The names of `packtok.stream` ([guide](../guides/streaming.md)).", ""]
    for name in STREAMING:
        lines += [f"::: packtok.stream.{name}", "    options:", "      inherited_members: true", ""]
    return "\n".join(lines)


def _rank(name: str) -> tuple[bool, bool, str]:
    """Returns the position of a name in its group: `pack`, other functions, classes."""
    return name != "pack", name[0].isupper(), name


def _group(name: str) -> str:
    if name.endswith("Error"):
        return "Errors"
    home = homes("packtok")[name]
    if home in ("packtok", "packtok._packtok"):
        return "Training" if name == "collate" else "Tokenizers and readers"
    if home.startswith(("packtok.commands.", "packtok.config", "packtok.packer.")):
        return "Packing and files"
    return "Training"


GENERATED = {"reference/cli.md": command_line, "reference/api.md": python_api}
