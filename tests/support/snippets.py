"""Runs the code blocks of Markdown files as a reader would: in order, in one folder.

The info string of a fence determines the kind of block. ``sh`` and ``python`` blocks are run. ``console``
blocks contain commands after ``$ `` with their output to stdout, in which ``…`` stands for anything.
``no-run: REASON`` after the language exempts a block. Blocks of the languages in `DATA` are not code.
Anything else is an error.

Shell blocks of one file share the current folder, Python blocks of one file share their variables.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RUN = ("sh", "python", "console")
DATA = ("text", "json", "yaml", "hexdump")
TIMEOUT_SECONDS = 600


class SnippetError(AssertionError):
    """A snippet that fails, or that has an unknown mark."""


@dataclass(frozen=True)
class Snippet:
    """A fenced block of a Markdown file."""

    place: str
    """File and 1-based line of the fence."""
    language: str
    code: str
    reason: str | None
    """The reason not to run the snippet; ``None`` if it runs."""


def snippets(path: Path, text: str) -> list[Snippet]:
    """Returns the fenced blocks of ``text``, the content of ``path``.

    Raises:
        SnippetError: If the mark of a fence is unknown or a fence is not closed.
    """
    snippets: list[Snippet] = []
    fence: tuple[str, int, str] | None = None
    code: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        marker = re.match(r"\s*(```+|~~~+)(.*)", line)
        if fence is None and marker:
            fence, code = (marker[1], number, marker[2].strip()), []
        elif fence is not None and marker and marker[1].startswith(fence[0]) and not marker[2].strip():
            snippets.append(_snippet(f"{path}:{fence[1]}", fence[2], textwrap.dedent("\n".join(code)) + "\n"))
            fence = None
        else:
            code.append(line)
    if fence is not None:
        raise SnippetError(f"{path}:{fence[1]}: the block is not closed")
    return snippets


def _snippet(place: str, info: str, code: str) -> Snippet:
    language, _, mark = info.partition(" ")
    if language in DATA and not mark:
        return Snippet(place, language, code, "not code")
    if language not in RUN:
        known = ", ".join((*RUN, *DATA))
        raise SnippetError(f"{place}: unknown language {language!r}; known are {known}")
    if not mark:
        return Snippet(place, language, code, None)
    word, colon, reason = mark.partition(":")
    if word != "no-run" or not colon or not reason.strip():
        raise SnippetError(f"{place}: unknown mark {mark!r}; the only one is 'no-run: REASON'")
    return Snippet(place, language, code, reason.strip())


class Reader:
    """Runs the snippets of one Markdown file in ``folder``, from its beginning."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self._folder = folder
        self._env = env
        self._python: _PythonSession | None = None
        self.output = ""
        """The output of all snippets so far."""

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        if self._python is not None:
            self._python.close()

    def run(self, snippet: Snippet) -> None:
        """Runs a snippet, unless it is exempt.

        Raises:
            SnippetError: If it fails, or its output differs from the shown one.
        """
        if snippet.reason is not None:
            return
        if snippet.language == "python":
            self._python = self._python or _PythonSession(self._folder, self._env)
            self.output += self._python.run(snippet)
        elif snippet.language == "sh":
            self.output += self._shell(snippet.code, snippet.place)
        else:
            for command, expected in _commands(snippet):
                output = self._shell(command, snippet.place)
                if not _shows(expected, output):
                    raise SnippetError(f"{snippet.place}: $ {command}\nprints\n{output}\nand not\n{expected}")
                self.output += output

    def _shell(self, code: str, place: str) -> str:
        with tempfile.NamedTemporaryFile("r", encoding="utf-8") as left_in:
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", f"{code}\npwd >'{left_in.name}'"],
                cwd=self._folder,
                env=self._env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                encoding="utf-8",
                check=False,
                timeout=TIMEOUT_SECONDS,
            )
            if done.returncode != 0:
                raise SnippetError(f"{place}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
            self._folder = Path(left_in.read().rstrip("\n"))
        return done.stdout


def _commands(snippet: Snippet) -> Iterator[tuple[str, str]]:
    """Yields the commands of a console block, each with the output shown below it."""
    for part in re.split(r"^\$ ", snippet.code, flags=re.M)[1:]:
        command, _, expected = part.partition("\n")
        yield command, expected


def _shows(expected: str, output: str) -> bool:
    """Returns whether ``found`` is the output that a block shows, ignoring trailing spaces of lines."""
    lines = [re.escape(line.rstrip()).replace("…", ".*") for line in expected.rstrip().splitlines()]
    pattern = "\n".join(lines)
    # On a line of its own, ``…`` matches any number of lines.
    pattern = re.sub(r"(^|\n)\.\*(?=\n|$)", r"\1(?s:.*)", pattern)
    return (
        re.fullmatch(pattern, "\n".join(line.rstrip() for line in output.rstrip().splitlines())) is not None
    )


# Runs blocks that it receives as JSON lines. If an expression's line ends with a comment that starts like a
# value, the value is compared with the comment, ignoring the number of spaces.
_DRIVER = r"""
import ast, json, re, sys, traceback

def packed(text):
    return re.sub(r"\s+", "", text)

def run(code, place, namespace):
    lines = code.splitlines()
    for node in ast.parse(code, place).body:
        if not isinstance(node, ast.Expr):
            exec(compile(ast.Module([node], []), place, "exec"), namespace)
            continue
        value = eval(compile(ast.Expression(node.value), place, "eval"), namespace)
        comment = lines[node.end_lineno - 1].encode()[node.end_col_offset:].decode().strip().lstrip("# ")
        if re.match(r"array\(|['\[{]|-?\d+$", comment) and "..." not in comment:
            if not packed(comment).startswith(packed(repr(value))):
                raise AssertionError(f"{place}: {ast.unparse(node)} is {value!r}, not {comment}")

namespace = {"__name__": "__main__"}
for line in sys.stdin:
    block = json.loads(line)
    try:
        run(block["code"], block["place"], namespace)
        status = "ok"
    except BaseException:
        traceback.print_exc(file=sys.stdout)
        status = "failed"
    print(f"\0{status}", flush=True)
"""


class _PythonSession:
    """An interpreter that keeps its variables between blocks."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _DRIVER],
            cwd=folder,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
        )

    def run(self, snippet: Snippet) -> str:
        """Runs a block and returns its output.

        Raises:
            SnippetError: If it fails.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        watchdog = threading.Timer(TIMEOUT_SECONDS, self._process.kill)
        watchdog.start()
        try:
            self._process.stdin.write(json.dumps({"code": snippet.code, "place": snippet.place}) + "\n")
            self._process.stdin.flush()
            output = ""
            for line in self._process.stdout:
                before, end, status = line.partition("\0")
                output += before
                if end and status == "ok\n":
                    return output
                if end:
                    break
        finally:
            watchdog.cancel()
        raise SnippetError(f"{snippet.place}: failed\n{output}")

    def close(self) -> None:
        """Stops the interpreter."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=TIMEOUT_SECONDS)
        self._process.stdout.close()


def environment(folder: Path) -> dict[str, str]:
    """Returns a reader's environment: the programs of this interpreter's environment, and no network."""
    programs = {
        "python": "",
        "packtok": "-c 'from packtok.cli import main; main()'",
        "torchrun": "-m torch.distributed.run",
    }
    programs_folder = folder / "bin"
    programs_folder.mkdir(parents=True)
    for name, arguments in programs.items():
        program = programs_folder / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n', encoding="utf-8")
        program.chmod(0o755)
    changed: dict[str, Any] = {
        "PATH": f"{programs_folder}{os.pathsep}{os.environ['PATH']}",
        "XDG_CACHE_HOME": folder / "cache",
        "HF_HUB_OFFLINE": "1",
        "PYTHONIOENCODING": "utf-8",
        "COLUMNS": "200",
    }
    return {**os.environ, **{name: str(value) for name, value in changed.items()}}
