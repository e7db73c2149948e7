"""The id that a tokenizer appends to every text, read from its ``tokenizer.json``."""

import json
from pathlib import Path
from typing import Any

from packtok.errors import ConfigError
from packtok.tokenizer.find import TOKENIZER_FILE

__all__ = ["TOKENIZER_FILE", "separator_of"]


def separator_of(tokenizer_path: Path) -> int | None:
    """Returns the id that the post-processor appends to a single text; ``None`` if it appends none.

    The post-processors that append tokens are those of the ``tokenizers`` library: ``TemplateProcessing``,
    ``BertProcessing`` and ``RobertaProcessing``, alone or in a ``Sequence``.

    Raises:
        ConfigError: If the file is not a tokenizer.json.
        OSError: If it cannot be read.
    """
    try:
        return _appended(json.loads(tokenizer_path.read_bytes()).get("post_processor"))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(f"{tokenizer_path}: is not a tokenizer.json: {error}") from None


def _appended(processor: Any) -> int | None:
    match processor:
        case {"type": "Sequence", "processors": [*processors]}:
            appended = [_appended(one) for one in processors]
            return next((one for one in reversed(appended) if one is not None), None)
        case {
            "type": "TemplateProcessing",
            "single": [*_, {"SpecialToken": {"id": name}}],
            "special_tokens": {**tokens},
        }:
            token: Any = tokens.get(name) or {}
            ids = token.get("ids")
            return int(ids[-1]) if ids else None
        case {"type": "BertProcessing" | "RobertaProcessing", "sep": [_, int(separator)]}:
            return separator
    return None
