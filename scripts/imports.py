"""Checks that no files of a crate import each other in a circle.

    python3 scripts/imports.py            checks; prints errors and exits with 1
    python3 scripts/imports.py --graph    prints every import between files

Reads the sources as text. An import of a name that a module re-exports counts as an import of the file that
defines it. Tests are not read. Cargo checks the directions between crates, and import-linter those of the
Python package: see pyproject.toml.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
Graph = Mapping[str, set[str]]


@dataclass
class RustFile:
    """A module of a crate: its definitions, its re-exports, and the paths that it names."""

    defined: set[str] = field(default_factory=set)
    exported: dict[str, tuple[str, ...]] = field(default_factory=dict)
    named: set[tuple[str, ...]] = field(default_factory=set)


_DEFINITION = re.compile(
    r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:(?:const|async|unsafe|extern\s+\"C\")\s+)*"
    r"(?:fn|struct|enum|union|trait|type|const|static|macro_rules!)\s+(?:mut\s+)?(\w+)",
    re.M,
)
_USE = re.compile(r"^[ \t]*(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);", re.M)
_MODULE = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+);", re.M)
_INLINE = re.compile(r"(?<![\w:])((?:crate|super|self)(?:::\w+)+)")


def rust_graph(crate: Path) -> dict[str, set[str]]:
    """Returns the imports between the files of a crate, by module path."""
    files = {_module_of(crate, path): path for path in _sources(crate)}
    parsed = {module: _parse(path.read_text(encoding="utf-8"), module) for module, path in files.items()}
    graph: dict[str, set[str]] = {}
    for module, file in parsed.items():
        imported = {_resolved(name, module, parsed) for name in file.named}
        graph["::".join(module) or "crate"] = {
            "::".join(name) or "crate" for name in imported if name is not None and name != module
        }
    return graph


def _sources(crate: Path) -> Iterator[Path]:
    for path in sorted((crate / "src").rglob("*.rs")):
        if path.name != "tests.rs":
            yield path


def _module_of(crate: Path, path: Path) -> tuple[str, ...]:
    parts = path.relative_to(crate / "src").with_suffix("").parts
    return parts[:-1] if parts[-1] in ("mod", "lib") else parts


def _parse(text: str, module: tuple[str, ...]) -> RustFile:
    text = re.split(r"^#\[cfg\(test\)\]\s*\nmod tests", text, maxsplit=1, flags=re.M)[0]
    text = re.sub(r"//[^\n]*", "", text)
    # `pub(in path)` names a module without importing from it.
    text = re.sub(r"\bpub\(in [^)]*\)", "pub(crate)", text)
    file = RustFile(defined=set(_DEFINITION.findall(text)))
    for public, tree in _USE.findall(text):
        for path, alias in _leaves(tree):
            absolute = _absolute(path, module)
            if public:
                file.exported[alias] = absolute
            else:
                file.named.add(absolute)
    without_uses = _USE.sub("", text)
    for written in _INLINE.findall(without_uses):
        file.named.add(_absolute(tuple(written.split("::")), module))
    for child in _MODULE.findall(text):
        for written in re.findall(rf"(?<![\w:]){child}((?:::\w+)+)", without_uses):
            file.named.add((*module, child, *written.split("::")[1:]))
    return file


def _leaves(tree: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yields every path of a use tree with the name it is bound to."""
    tree = tree.strip()
    brace = tree.find("{")
    if brace < 0:
        path, _, alias = (part.strip() for part in tree.partition(" as "))
        parts = tuple(part.strip() for part in path.split("::"))
        if parts[-1] == "self":
            parts = parts[:-1]
        yield parts, alias or (parts[-1] if parts else "")
        return
    prefix = tuple(part.strip() for part in tree[:brace].rstrip(": \n").split("::"))
    depth, start = 0, brace + 1
    for i, char in enumerate(tree[brace:], brace):
        depth += (char == "{") - (char == "}")
        if (char == "," and depth == 1) or (char == "}" and depth == 0):
            if tree[start:i].strip():
                for leaf, alias in _leaves(tree[start:i]):
                    is_self = leaf in ((), ("",))
                    yield (prefix if is_self else prefix + leaf), (prefix[-1] if is_self else alias)
            start = i + 1


def _absolute(path: tuple[str, ...], module: tuple[str, ...]) -> tuple[str, ...]:
    """Returns a path from the crate's root. A path that may belong to another crate starts with ``?``."""
    if path[0] == "crate":
        return path[1:]
    if path[0] == "self":
        return module + path[1:]
    if path[0] == "super":
        while path and path[0] == "super":
            module, path = module[:-1], path[1:]
        return module + path
    return ("?", *path)


def _resolved(
    name: tuple[str, ...], module: tuple[str, ...], parsed: Mapping[tuple[str, ...], RustFile]
) -> tuple[str, ...] | None:
    """Returns the module that defines ``name``; ``None`` if it is in another crate."""
    if name[0:1] == ("?",):
        # The first part may be a module declared in this file.
        name = module + name[1:]
        if name[: len(module) + 1] not in parsed:
            return None
    here: tuple[str, ...] = ()
    for i, part in enumerate(name):
        if (*here, part) in parsed:
            here = (*here, part)
            continue
        file = parsed[here]
        if part in file.defined or part not in file.exported:
            return here
        target = file.exported[part]
        return _resolved(target + name[i + 1 :], here, parsed)
    return here


def cycles(graph: Graph) -> list[list[str]]:
    """Returns the sets of files that import each other in a cycle, largest first."""
    reached = {node: _reached(node, graph) for node in graph}
    sets = {
        tuple(sorted(other for other in reached[node] if node in reached.get(other, ())))
        for node in graph
        if node in reached[node]
    }
    return sorted(map(list, sets), key=len, reverse=True)


def _reached(start: str, graph: Graph) -> set[str]:
    """Returns everything that a file imports, directly or indirectly."""
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph.get(waiting.pop(), set()) - reached
        reached |= new
        waiting += new
    return reached


def graphs() -> dict[str, dict[str, set[str]]]:
    """Returns the imports within each crate."""
    return {crate.name: rust_graph(crate) for crate in sorted((ROOT / "crates").iterdir()) if crate.is_dir()}


def main(arguments: Sequence[str]) -> int:
    """Checks or prints the imports; returns the exit status."""
    if "--graph" in arguments:
        for name, graph in graphs().items():
            for module, imported in sorted(graph.items()):
                print(f"{name} {module}: {' '.join(sorted(imported))}")
        return 0
    faults = [
        f"{name}: these import each other: {', '.join(members)}"
        for name, graph in graphs().items()
        for members in cycles(graph)
    ]
    print("\n".join(faults) or "no files import each other in a circle")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
