"""Imports the public names of a package on first use, so that importing the package stays cheap.

The stub of the package, `__init__.pyi`, is the only list of its public names: type checkers read it, and so
does this module. Each name has a statement of the form ``from MODULE import NAME as NAME``.
"""

import importlib
import os
import re
from collections.abc import Callable
from functools import cache
from typing import Any

__all__ = ["homes", "lazy_names"]

# A long statement has its names in parentheses.
_DECLARATION = re.compile(r"^from (\S+) import \(?\s*(\w+) as \2\b", re.MULTILINE)


@cache
def homes(package: str) -> dict[str, str]:
    """Returns the module of each public name of a package; for a module, the package itself."""
    folder = importlib.import_module(package).__path__[0]
    with open(os.path.join(folder, "__init__.pyi"), encoding="utf-8") as file:
        declarations = _DECLARATION.findall(file.read())
    return {name: module for module, name in declarations}


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns ``__getattr__`` and ``__dir__`` of a package whose names its stub declares.

    If torch is missing, names that need it raise an error that says how to install it.
    """

    def get(name: str) -> Any:
        if name == "__all__":
            return sorted(homes(package))
        module = importlib.import_module(package)
        home = homes(package).get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from packtok.extras import needing_torch

        with needing_torch(f"{package}.{name}"):
            if home == package:
                value: Any = importlib.import_module(f"{package}.{name}")
            else:
                value = getattr(importlib.import_module(home), name)
        setattr(module, name, value)
        return value

    return get, lambda: sorted(homes(package))
