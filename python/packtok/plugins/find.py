"""Finds the plug-in that the option ``source`` names, and calls it for the compiled module.

Code runs only because the caller names it; a config file cannot (`packtok.config.load`).
"""

import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from packtok.config.options import DATASETS
from packtok.errors import ConfigError
from packtok.plugins.declare import PARTS_ATTRIBUTE
from packtok.plugins.plugin import Plugin

GROUP = "packtok.sources"
_FORMS = "my_source.py:function, module:function, datasets, or an entry point of the group " + GROUP


def find_plugin(source: str, fields: Mapping[str, str]) -> Plugin:
    """Returns the plug-in that ``source`` names.

    Args:
        source: ``my_source.py:function``, ``module:function``, ``datasets`` or the name of an entry point.
        fields: The jq pattern of each corpus, for `datasets`, whose documents have columns.

    Raises:
        ConfigError: If there is no such plug-in, or it cannot be imported.
    """
    if source == DATASETS:
        from packtok.plugins.hf_datasets import datasets_plugin

        return datasets_plugin(fields)
    if ":" not in source:
        return _declared(source, _entry_point(source))
    path, _, name = source.rpartition(":")
    if not path or not name:
        raise ConfigError(f"--source: {source!r} names no plug-in; expected {_FORMS}")
    module = _file(Path(path)) if path.endswith(".py") else _module(source, path)
    function = getattr(module, name, None)
    if function is None:
        known = [attribute for attribute, value in vars(module).items() if _is_own_function(value, module)]
        raise ConfigError(f"--source: {path} has no {name!r}; it has {', '.join(known) or 'no functions'}")
    return _declared(f"{os.path.basename(path)}:{name}", function)


def _declared(name: str, function: Any) -> Plugin:
    if not callable(function):
        kind = type(function).__name__
        raise ConfigError(f"--source: {name} is of type {kind}; expected a function from corpus to documents")
    parts = getattr(function, PARTS_ATTRIBUTE, None)
    parameters = inspect.signature(function).parameters
    is_resumable = "start" in parameters
    try:
        inspect.signature(function).bind(
            "corpus", *(("part",) if parts is not None else ()), **({"start": 0} if is_resumable else {})
        )
    except TypeError:
        expected = "(corpus, part)" if parts is not None else "(corpus)"
        raise ConfigError(
            f"--source: {name}{inspect.signature(function)} cannot be called with {expected}"
            f"{' and start' if is_resumable else ''}; declare parts with @packtok.source(parts=…), if any"
        ) from None
    return Plugin(name, function, parts, is_resumable)


def _is_own_function(value: Any, module: ModuleType) -> bool:
    return inspect.isfunction(value) and value.__module__ == module.__name__


def _entry_point(name: str) -> Any:
    import importlib.metadata

    entry_points = list(importlib.metadata.entry_points(group=GROUP, name=name))
    if not entry_points:
        known = sorted(
            {entry_point.name for entry_point in importlib.metadata.entry_points(group=GROUP)} | {DATASETS}
        )
        raise ConfigError(f"--source: no plug-in {name!r}; expected {_FORMS}; installed: {', '.join(known)}")
    if len({entry_point.value for entry_point in entry_points}) > 1:
        values = " and ".join(entry_point.value for entry_point in entry_points)
        raise ConfigError(f"--source: {name!r} names several plug-ins, {values}; give module:function")
    try:
        return entry_points[0].load()
    except Exception as error:
        raise _import_error(name, error) from error


def _module(source: str, path: str) -> ModuleType:
    try:
        return importlib.import_module(path)
    except Exception as error:
        raise _import_error(source, error) from error


def _file(path: Path) -> ModuleType:
    """Imports a file; modules next to it can be imported too, as by a script."""
    if not path.is_file():
        raise ConfigError(f"--source: {path}: No such file")
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"--source: {path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    # The registration allows pickling of classes in the file. A module that is already imported keeps its
    # name.
    sys.modules.setdefault(path.stem, module)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        if sys.modules.get(path.stem) is module:
            del sys.modules[path.stem]
        raise _import_error(str(path), error) from error
    return module


def _import_error(name: str, error: Exception) -> ConfigError:
    return ConfigError(f"--source: {name} cannot be imported: {type(error).__name__}: {error}")
