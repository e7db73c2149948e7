"""Checks which modules import which: no cycles between files, and only the directions listed here.

    python3 tests/imports.py            checks; prints what is wrong and exits with 1
    python3 tests/imports.py --graph    prints every import between files

Reads the sources as text. An import of a name that a module re-exports counts as an import of the file that
defines it. Tests are not read.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
Graph = Mapping[str, set[str]]

# The crates that each crate may use.
CRATES: dict[str, tuple[str, ...]] = {
    "packtok-pbin": (),
    "packtok-tokenizer": (),
    "packtok-store": (),
    "packtok-core": ("packtok-pbin", "packtok-tokenizer", "packtok-store"),
    "packtok-py": ("packtok-pbin", "packtok-tokenizer", "packtok-store", "packtok-core"),
}


@dataclass
class RustFile:
    """A module of a crate: what it defines, what it re-exports, and the paths that it names."""

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
    """The imports between the files of a crate, by module path."""
    files = {_module_of(crate, path): path for path in _sources(crate)}
    parsed = {module: _parse(path.read_text(encoding="utf-8"), module) for module, path in files.items()}
    graph: dict[str, set[str]] = {}
    for module, file in parsed.items():
        found = {_resolved(name, module, parsed) for name in file.named}
        graph["::".join(module) or "crate"] = {
            "::".join(one) or "crate" for one in found if one is not None and one != module
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
    """Every path of a use tree with the name that it gets."""
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
                for path, alias in _leaves(tree[start:i]):
                    is_self = path in ((), ("",))
                    yield (prefix if is_self else prefix + path), (prefix[-1] if is_self else alias)
            start = i + 1


def _absolute(path: tuple[str, ...], module: tuple[str, ...]) -> tuple[str, ...]:
    """A path from the crate's root; it starts with ``?`` if it may be of another crate."""
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
    """The module that defines what ``name`` names; ``None`` if it is of another crate."""
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


def python_graph(package: Path) -> dict[str, set[str]]:
    """The imports between the modules of the Python package that run when a module is imported."""
    modules = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    graph: dict[str, set[str]] = {}
    for name, path in modules.items():
        found = set()
        for node in _top_level(ast.parse(path.read_text(encoding="utf-8")).body):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif node.module is not None:
                found |= {
                    full if (full := f"{node.module}.{alias.name}") in modules else node.module
                    for alias in node.names
                }
        graph[name] = {one for one in found if one in modules and one != name}
    return graph


def _top_level(body: Iterable[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.dump(node.test):
            yield from _top_level([*node.body, *node.orelse])


def cycles(graph: Graph) -> list[list[str]]:
    """The sets of files that import each other in a circle, largest first."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            members = []
            while True:
                member = stack.pop()
                members.append(member)
                if member == node:
                    break
            if len(members) > 1:
                found.append(sorted(members))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return sorted(found, key=len, reverse=True)


def graphs() -> dict[str, dict[str, set[str]]]:
    """The imports within each crate and within the Python package."""
    found = {crate: rust_graph(ROOT / "crates" / crate) for crate in CRATES}
    return found | {"python": python_graph(ROOT / "python" / "packtok")}


def main(arguments: Sequence[str]) -> int:
    """Checks, or prints the imports; the exit status."""
    sys.setrecursionlimit(10_000)
    if "--graph" in arguments:
        for name, graph in graphs().items():
            for module, imported in sorted(graph.items()):
                print(f"{name} {module}: {' '.join(sorted(imported))}")
        return 0
    faults = [
        f"{name}: {len(members)} files import each other: {', '.join(members)}"
        for name, graph in graphs().items()
        for members in cycles(graph)
    ]
    print("\n".join(faults) or "no import cycles")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
