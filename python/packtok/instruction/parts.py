"""Divides conversations among the partitions and writes each to its JSONL file, one line at a time."""

import json
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from packtok.errors import ConfigError, DocumentError
from packtok.instruction.chat import BadConversationError, ChatTemplate
from packtok.instruction.config import InstructionConfig
from packtok.instruction.folder import NewFile
from packtok.progress import Progress

TEXT_KEY = "chat"
# Longer lines are errors, which bounds the memory.
MAX_LINE_BYTES = 1 << 30
_REPORTED_LINES = 1 << 10
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Written:
    """The conversations of each partition that has a file, and the lines without one."""

    conversations: dict[str, int]
    blank: int


def template_of(config: InstructionConfig) -> ChatTemplate:
    """Returns the compiled template of a config.

    Raises:
        ConfigError: If its syntax is invalid.
    """
    try:
        return ChatTemplate(
            config.template,
            data=config.template_data,
            role_mapping=config.role_mapping,
            messages_key=config.messages_key,
        )
    except ConfigError as error:
        raise ConfigError(f"{config.path}: {error}") from None


def write_parts(
    config: InstructionConfig, template: ChatTemplate, folder: Path, on_progress: Progress | None
) -> Written:
    """Renders all conversations into a JSONL file for each partition with a percentage above 0.

    The partition of a conversation is that of Modalities with the same seed and the same template.

    Raises:
        DocumentError: If a line is no conversation that the template can render; names file and line.
    """
    names, weights = tuple(config.percentages), tuple(config.percentages.values())
    conversations = {name: 0 for name, weight in config.percentages.items() if weight}
    blank = 0
    encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
    with ExitStack() as stack, _seeded(config.seed):
        files = {
            name: stack.enter_context(NewFile(folder / config.name(name, ".jsonl"))) for name in conversations
        }
        for number, line in _lines(config.src_path, on_progress):
            if not line.strip():
                blank += 1
                continue
            try:
                entry = _entry(line)
                # The draw comes before rendering, as in Modalities, because the filter `random` draws numbers
                # too.
                name = random.choices(names, weights=weights)[0]
                entry[TEXT_KEY] = template.render(entry)
                text = _encoded(encoder, entry)
            except BadConversationError as error:
                raise DocumentError(f"{config.src_path}:{number}: {error}") from None
            files[name].write(text)
            conversations[name] += 1
    return Written(conversations, blank)


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seeds Python's generator, which Jinja's filter `random` uses too, and restores its state afterwards."""
    state = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(state)


def _lines(path: Path, on_progress: Progress | None) -> Iterator[tuple[int, bytes]]:
    """Yields the lines of a file with their numbers from 1."""
    total_bytes = path.stat().st_size
    bytes_read = number = 0
    with path.open("rb") as file:
        while line := _line(file, path, number + 1):
            bytes_read += len(line)
            number += 1
            yield number, line.removeprefix(_BOM) if number == 1 else line
            if on_progress is not None and number % _REPORTED_LINES == 0:
                on_progress({"bytes_read": bytes_read, "total_bytes": total_bytes, "documents": number})


def _line(file: BinaryIO, path: Path, number: int) -> bytes:
    line = file.readline(MAX_LINE_BYTES + 1)
    if len(line) > MAX_LINE_BYTES:
        raise DocumentError(f"{path}:{number}: the line is longer than 1 GiB; shorten or remove it")
    return line


def _entry(line: bytes) -> dict[str, Any]:
    try:
        entry = json.loads(line.decode(), parse_constant=_refuse)
    except UnicodeDecodeError as error:
        raise BadConversationError(
            f"byte {error.start} of the line is not UTF-8; convert the file to UTF-8 JSON lines"
        ) from None
    except (ValueError, RecursionError) as error:
        raise BadConversationError(f"not valid JSON: {error}; correct or remove the line") from None
    if not isinstance(entry, dict):
        raise BadConversationError(
            f"a JSON object was expected, found {type(entry).__name__}; correct or remove the line"
        )
    return entry


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no JSON")


def _encoded(encoder: json.JSONEncoder, entry: dict[str, Any]) -> bytes:
    try:
        return (encoder.encode(entry) + "\n").encode()
    except UnicodeEncodeError:
        problem = "it contains half of a surrogate pair, which UTF-8 cannot represent"
    except (ValueError, RecursionError):
        problem = "it contains a number or nesting that cannot be written as JSON"
    raise BadConversationError(f"{problem}; correct or remove the line") from None
