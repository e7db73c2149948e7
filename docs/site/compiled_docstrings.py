"""Gives the compiled classes their docstrings, which are in the Rust sources and not in the stub."""

import importlib
from typing import Any

import griffe


class CompiledDocstrings(griffe.Extension):
    """Reads the docstrings of `packtok._packtok` from the installed package."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Adds the docstrings to a package that has been read."""
        if "_packtok" in pkg.members:
            _add_docstrings(pkg["_packtok"], importlib.import_module("packtok._packtok"))


def _add_docstrings(stub: griffe.Module | griffe.Class, compiled: Any) -> None:
    for name, member in stub.members.items():
        # Skip special methods, whose docstrings are those of `object`.
        if isinstance(member, griffe.Alias) or name.startswith("__") or not hasattr(compiled, name):
            continue
        value = getattr(compiled, name)
        has_docstring = member.is_class or member.is_function or "property" in member.labels
        if has_docstring and member.docstring is None and value.__doc__:
            member.docstring = griffe.Docstring(value.__doc__, parent=member)
        if isinstance(member, griffe.Class):
            _add_docstrings(member, value)
