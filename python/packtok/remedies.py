"""How messages name options: one wording for each entry point.

Code that several entry points share names an option as `packtok pack` does: by its flag and, in parentheses,
its key in a config, each with the value to set: ``--existing replace (existing: replace)``. An `EntryPoint`
rewrites the option into the form of its caller: the flag alone for a command without a config, the keyword in
Python. A remedy may list alternatives (``…, or …``). Those with an option that the entry point lacks are left
out, unless `INSTEAD` has a replacement.
"""

import difflib
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, ParamSpec, TypeVar

from packtok.errors import PacktokError, rewrite_exception

P = ParamSpec("P")
R = TypeVar("R")

# Replacements for options of `packtok pack`, by entry point.
INSTEAD: dict[str, dict[str, str]] = {
    "packtok count": {"input": "CORPUS"},
    "packtok.count": {"input": "corpus"},
    "packtok tokenizer verify": {"input": "--corpus"},
    "packtok tokenize": {
        "field": "content_field in the metadata",
        "input": "DATASET",
        "num-cpus": "--num-workers",
        "output": "--output-dir",
    },
    "packtok.tokenize": {
        "field": "content_field in the metadata",
        "input": "datasets",
        "output": "output_dir",
    },
    "packtok.run": {"conf": "settings"},
    "packtok.retry": {"conf": "settings"},
    "packtok.create_filtered_tokenized_dataset": {"existing": "file_existence_policy"},
    "packtok.create_shuffled_dataset_chunk": {"existing": "file_existence_policy"},
    "packtok.create_shuffled_jsonl_dataset_chunk": {"existing": "file_existence_policy"},
    "packtok.filter_dataset": {"existing": "file_existence_policy"},
    "packtok.shuffle_jsonl_data": {"existing": "file_existence_policy"},
    "packtok.shuffle_tokenized_data": {"existing": "file_existence_policy"},
    "from_files": {"field": "text_column", "input": "urls", "num-cpus": "the number of CPUs of the process"},
}

# The values of `existing` in terms of Modalities' ``file_existence_policy``.
_MEMBERS = {"skip": "FileExistencePolicy.SKIP", "replace": "FileExistencePolicy.OVERRIDE"}
_POLICIES = re.compile(r"(?<=file_existence_policy to )[a-z]+(?: or [a-z]+)?")

# Entry points that read a config for packing and have few options of `pack` themselves. Messages name the
# options that they lack by their keys.
READ_CONFIGS = (
    "packtok data prepare_instruction_tuning_data",
    "packtok.create_instruction_tuning_data",
    "packtok.prepare_instruction_tuning_data",
)

# A reference to an option of `pack` with its key in a config.
_OPTION = re.compile(
    r"--(?P<flag>[a-z][a-z-]*)(?: (?P<value>[^\s,;()]+)(?= \())? "
    r"\((?P<key>[a-z_.]+)(?:: (?P<set>[^\s,;()]+)| in a config)?\)"
)
_FLAG = re.compile(r"(?<![\w-])--(?P<flag>[a-z][a-z-]+)")
# The option that a message is about, at its start.
_SUBJECT = re.compile(r"--(?P<flag>[a-z][a-z-]+):(?P<key> (?:settings|tokenizer\.config)\.[a-z_]+)?")
_OF_CONFIG = re.compile(r"(?:settings\.[a-z_]+|tokenizer) in a config")


@dataclass(frozen=True)
class EntryPoint:
    """A command or a Python function, and the options that its caller can give."""

    name: str
    options: frozenset[str]
    """As flags without the leading dashes."""
    style: Literal["flag", "keyword"]
    takes_config: bool = False

    @property
    def instead(self) -> dict[str, str]:
        """The replacements for options that the caller lacks."""
        return INSTEAD.get(self.name, {})

    def worded(self, text: str) -> str:
        """Returns a message that names options as the caller gives them."""
        if self.style == "flag" and self.takes_config:
            return text
        if self.name in READ_CONFIGS:
            text = self._with_keys(text)
        # The first part states the problem, the others are remedies.
        problem, *remedies = text.split("; ")
        subject = _SUBJECT.match(problem)
        if subject is not None:
            problem = self._subject(subject) + problem[subject.end() :]
        available = [self._available(remedy) for remedy in remedies]
        # A remedy that names another command keeps the flags of that command.
        spelled = [
            remedy if "packtok " in remedy else self._spelled(remedy) for remedy in available if remedy
        ]
        return "; ".join((self._spelled(problem), *spelled))

    def _with_keys(self, text: str) -> str:
        """Returns a message that names options that the caller lacks by their keys in a config."""

        def subject(match: re.Match[str]) -> str:
            if match["flag"] in self.options or not match["key"]:
                return match[0]
            return match["key"].lstrip()

        def option(match: re.Match[str]) -> str:
            if match["flag"] in self.options:
                return match[0]
            value = match["set"] or match["value"]
            return match["key"] if value is None else f"{match['key']}: {value}"

        def flag(match: re.Match[str]) -> str:
            key = None if match["flag"] in self.options else _keys_of_flags().get(match["flag"])
            return match[0] if key is None else key

        return _FLAG.sub(flag, _OPTION.sub(option, _SUBJECT.sub(subject, text)))

    def reword(self, error: BaseException) -> None:
        """Words the messages of an error of packtok, and of those that it came from."""
        if isinstance(error, PacktokError | ValueError | OSError):
            rewrite_exception(error, self._tree)

    def _tree(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(self._tree, value))
        return self.worded(value) if isinstance(value, str) else value

    def _subject(self, match: re.Match[str]) -> str:
        flag = match["flag"]
        key = match["key"] if match["key"] and self.takes_config else ""
        name = self.instead.get(flag, f"--{flag}" if self.style == "flag" else _keyword(flag))
        return f"{name}:{key}"

    def _available(self, remedy: str) -> str:
        """Returns the alternatives of a remedy that the caller can use, as one text; empty if none."""
        if "packtok " in remedy:
            # The options belong to another command.
            return remedy
        available = [
            choice for choice in remedy.removeprefix("or, ").split(", or ") if self._is_available(choice)
        ]
        return ", or ".join(available)

    def _is_available(self, text: str) -> bool:
        if not self.takes_config and _OF_CONFIG.search(text):
            return False
        return all(self.has(flag) for flag in flags_of_pack_in(text))

    def has(self, flag: str) -> bool:
        """Returns whether the caller can set an option of `pack`, or has a replacement."""
        return flag in self.options or flag in self.instead

    def _spelled(self, text: str) -> str:
        text = _OPTION.sub(self._option, text)
        if "file_existence_policy" in self.instead.values():
            text = _POLICIES.sub(_members, text)
        return text if self.style == "flag" else _FLAG.sub(self._flag, text)

    def _option(self, match: re.Match[str]) -> str:
        flag, value = match["flag"], match["value"]
        if flag in self.instead:
            return self.instead[flag]
        if self.style == "flag":
            return f"--{flag}" if value is None else f"--{flag} {value}"
        value = match["set"] or value
        if "." in match["key"]:
            # A setting of the cluster has the same form in Python as on the command line.
            return match["key"] if value is None else f"{match['key']}={value}"
        named = _keyword(flag) if value is None else f"{_keyword(flag)}={_literal(value)}"
        has_other_key = self.takes_config and match["key"] != _keyword(flag)
        return f"{named} ({match['key']} in a config)" if has_other_key else named

    def _flag(self, match: re.Match[str]) -> str:
        flag = match["flag"]
        return self.instead.get(flag, _keyword(flag) if flag in self.options else match[0])


def _members(match: re.Match[str]) -> str:
    return " or ".join(_MEMBERS.get(value, value) for value in match[0].split(" or "))


def flags_of_pack_in(text: str) -> set[str]:
    """Returns the options of `pack` that a text names by their flags, without the dashes."""
    from packtok.config.options import OPTIONS

    known = {flag[2:] for option in OPTIONS.values() for flag in option.flags or () if flag.startswith("--")}
    return {match["flag"] for match in _FLAG.finditer(text)} & known


def _keys_of_flags() -> dict[str, str]:
    """Returns the key in a config of each flag of `pack`, without the dashes."""
    from packtok.config.options import OPTIONS

    return {
        flag[2:]: option.key
        for option in OPTIONS.values()
        for flag in option.flags or ()
        if flag.startswith("--")
    }


def _keyword(flag: str) -> str:
    return flag.replace("-", "_")


def _literal(value: str) -> str:
    if value in ("true", "false"):
        return value.title()
    return value if value.isdigit() else f'"{value}"'


# The entry point that is running in this thread.
_current: ContextVar[EntryPoint | None] = ContextVar("entry_point", default=None)


def worded_here(text: str) -> str:
    """Returns a message as the current entry point words it."""
    point = _current.get()
    return text if point is None else point.worded(text)


@contextmanager
def entered(point: EntryPoint) -> Iterator[None]:
    """Makes ``point`` the current entry point, unless there is one, and words errors that leave the block."""
    if _current.get() is not None:
        yield
        return
    token = _current.set(point)
    try:
        yield
    except BaseException as error:
        point.reword(error)
        raise
    finally:
        _current.reset(token)


# The decorated functions of the modules that are loaded, by name.
FUNCTIONS: dict[str, Callable[[], EntryPoint]] = {}


def entry_point(*lacks: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorates a public function, whose messages then name options by its keywords.

    Args:
        *lacks: Options of `pack` that the function has not, although it has ``**options``.
    """

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            point = of_function(function, lacks)
            with entered(point):
                _check_keywords(function, point, kwargs)
                return function(*args, **kwargs)

        FUNCTIONS[_name_of(function)] = lambda: of_function(function, lacks)
        return called

    return decorated


def _check_keywords(function: Callable[..., Any], point: EntryPoint, keywords: Iterable[str]) -> None:
    """Raises a `TypeError` for a keyword that is no option of `pack`, if the function has ``**options``.

    Suggests a keyword, also for the key of a config.
    """
    from packtok.config.options import OPTIONS

    parameters = inspect.signature(function).parameters
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    for name in keywords:
        if name in parameters or name in OPTIONS:
            continue
        known = {keyword for keyword in OPTIONS if keyword.replace("_", "-") in point.options}
        keyword_of = {option.name: keyword for keyword, option in OPTIONS.items() if keyword in known}
        keyword_of |= {keyword: keyword for keyword in known}
        near = difflib.get_close_matches(name, keyword_of, n=1)
        hint = f"; did you mean {keyword_of[near[0]]!r}?" if near else ""
        raise TypeError(f"{point.name}() has no option {name!r}{hint}")


@functools.cache
def of_function(function: Callable[..., Any], lacks: tuple[str, ...] = ()) -> EntryPoint:
    """Returns a function as an entry point; arguments as of `entry_point`."""
    from packtok.config.options import OPTIONS

    parameters = inspect.signature(function).parameters
    names = set(parameters)
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        names |= set(OPTIONS) - set(lacks)
    options = frozenset(name.replace("_", "-") for name in names)
    return EntryPoint(_name_of(function), options, "keyword", takes_config="config" in parameters)


def _name_of(function: Callable[..., Any]) -> str:
    is_method = "." in function.__qualname__
    return function.__name__ if is_method else f"packtok.{function.__name__}"


def of_command(words: Iterable[str], command: Any) -> EntryPoint:
    """Returns a command of the program, as Click describes it, as an entry point."""
    options = {
        name.lstrip("-")
        for parameter in command.params
        for name in (*parameter.opts, *parameter.secondary_opts)
    }
    takes_config = any(parameter.name == "config" for parameter in command.params)
    return EntryPoint(" ".join(words), frozenset(options), "flag", takes_config)
