"""Renders conversations with a Jinja2 template, as Modalities does.

Templates run in Jinja's sandbox, which refuses access to Python's internals and changes of objects. Filters
and globals are Jinja's own, with ``tojson`` and ``raise_exception`` as in Hugging Face's chat templates.
"""

import json
from collections.abc import Mapping
from typing import Any

from jinja2 import TemplateError, TemplateSyntaxError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from packtok.errors import ConfigError

# Exceptions of rendering a template with valid syntax: Jinja's errors, and errors of operations on values.
_RENDERING_ERRORS = (
    TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
_ROLE_KEYS = ("role", "from")
_NUM_LISTED = 10


class BadConversationError(Exception):
    """A conversation cannot be rendered; the message is a phrase with the remedy."""


class ChatTemplate:
    """A compiled template with everything that it needs besides the messages."""

    def __init__(
        self, template: str, *, data: Mapping[str, Any], role_mapping: Mapping[str, str], messages_key: str
    ) -> None:
        """Compiles ``template``.

        Raises:
            ConfigError: If its syntax is invalid.
        """
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.filters["tojson"] = _tojson
        environment.globals["raise_exception"] = _raise_exception
        try:
            # YAML puts each tag on a line of its own, and the line ends belong to no text.
            self._template = environment.from_string(template.replace("}\n{", "}{"))
        except TemplateSyntaxError as error:
            raise ConfigError(
                f"jinja2_chat_template: line {error.lineno}: {_phrase(error)}; correct the template"
            ) from None
        self._data = data
        self._role_mapping = role_mapping
        self._messages_key = messages_key

    def render(self, entry: dict[str, Any]) -> str:
        """Maps the roles of a conversation, in ``entry`` itself, and returns its text.

        Raises:
            BadConversationError: If a key is missing, a role is unknown, or the template raises an error.
        """
        if self._messages_key not in entry:
            raise BadConversationError(
                f"has no key {self._messages_key!r}, but {_listed(entry)}; set settings.messages_key to the "
                "key of the messages"
            )
        messages = entry[self._messages_key]
        if not isinstance(messages, list) or not all(isinstance(turn, dict) for turn in messages):
            raise BadConversationError(
                f"{self._messages_key!r} is no list of objects; set settings.messages_key to the key of the "
                "messages"
            )
        for turn in messages:
            self._map_role(turn)
        try:
            text = self._template.render(messages=messages, chat_template_data=self._data)
            text.encode()
        except UnicodeEncodeError:
            raise BadConversationError(
                "its text contains half of a surrogate pair, which UTF-8 cannot represent; correct the line"
            ) from None
        except _RENDERING_ERRORS as error:
            raise BadConversationError(
                f"jinja2_chat_template raised {type(error).__name__}: {_phrase(error)}; correct the template "
                "or the line"
            ) from None
        return text

    def _map_role(self, turn: dict[str, Any]) -> None:
        for key in _ROLE_KEYS:
            if key not in turn:
                continue
            role = turn[key]
            if not isinstance(role, str) or role not in self._role_mapping:
                raise BadConversationError(
                    f"the {key} {role!r} is none of {_listed(self._role_mapping)}; add it to "
                    "instruction_data_transformation.role_mapping"
                )
            turn[key] = self._role_mapping[role]


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _raise_exception(message: str) -> None:
    raise TemplateError(message)


def _phrase(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0].rstrip(".") if lines else "without a message"


def _listed(keys: Mapping[str, Any]) -> str:
    names = ", ".join(map(repr, list(keys)[:_NUM_LISTED]))
    more = len(keys) - _NUM_LISTED
    return (f"{names} and {more:,} more" if more > 0 else names) or "no keys"
