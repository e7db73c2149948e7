"""Checks that `use` items of Rust are in groups: `std`, other crates, then this crate.

    python3 scripts/import_groups.py          lists the files in which they are not
    python3 scripts/import_groups.py --fix    rewrites these files; run `cargo fmt` afterwards

rustfmt sorts the items of a group. Its option that makes groups is only in nightly versions.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("crates", "benches", "tests/fuzz")
# Items that follow one another, each with its attributes, and blank lines between them.
_ITEM = r"(?:{indent}#\[[^\n]*\]\n)*{indent}use [^;]+;\n"
_FIRST = re.compile(r"^([ \t]*)(?:#\[[^\n]*\]\n[ \t]*)*use ", re.M)
_STANDARD = ("std", "core", "alloc")
_OWN = ("crate", "super", "self")


def main() -> int:
    """Checks or rewrites all files; returns the exit status."""
    is_fixing = sys.argv[1:] == ["--fix"]
    wrong = []
    for path in _files():
        text = path.read_text(encoding="utf-8")
        grouped = in_groups(text)
        if grouped == text:
            continue
        if is_fixing:
            path.write_text(grouped, encoding="utf-8")
        else:
            wrong.append(str(path.relative_to(ROOT)))
    for name in wrong:
        print(f"{name}: `use` items are not grouped; run scripts/import_groups.py --fix and cargo fmt")
    if not wrong:
        print("imports are in groups")
    return 1 if wrong else 0


def _files() -> Iterator[Path]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.rs")):
            if "target" not in path.parts:
                yield path


def in_groups(text: str) -> str:
    """Returns a Rust file with all runs of `use` items in groups, between which there is a blank line."""
    parts = []
    end = 0
    while first := _FIRST.search(text, end):
        run = re.compile(rf"(?:{_ITEM.format(indent=first[1])}\n*)+").match(text, first.start())
        if run is None:
            parts.append(text[end : first.end()])
            end = first.end()
            continue
        parts += [text[end : run.start()], _grouped(run[0], first[1])]
        end = run.end()
    return "".join([*parts, text[end:]])


def _grouped(run: str, indent: str) -> str:
    items = re.findall(_ITEM.format(indent=indent), run)
    groups: list[list[str]] = [[], [], []]
    for item in items:
        groups[_group(item)].append(item)
    after = run[len(run.rstrip("\n")) + 1 :]
    return "\n".join("".join(group) for group in groups if group) + after


def _group(item: str) -> int:
    path = re.search(r"use (?:::)?(\w+)", item)
    name = path[1] if path else ""
    return 0 if name in _STANDARD else 2 if name in _OWN else 1


if __name__ == "__main__":
    sys.exit(main())
