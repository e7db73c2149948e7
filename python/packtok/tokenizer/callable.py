"""The result of `Tokenizer.as_hf`: a tokenizer for code that calls ``tokenizer(text)["input_ids"]``.

The class implements only the interface that data preparation needs. Unknown arguments are errors, so that
none is silently ignored.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from packtok._packtok import Tokenizer

__all__ = ["CallableTokenizer"]


class CallableTokenizer:
    """Callable wrapper of a `Tokenizer` that returns lists instead of arrays; pickles like the tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer

    def __repr__(self) -> str:
        return f"{self.tokenizer!r}.as_hf()"

    def __len__(self) -> int:
        """Highest id + 1, including added tokens."""
        return self.tokenizer.vocab_size

    def __call__(
        self,
        text: str | Iterable[str],
        *,
        add_special_tokens: bool = True,
        return_attention_mask: bool = True,
    ) -> dict[str, Any]:
        """Returns ``input_ids`` and ``attention_mask``: lists for one text, lists of lists for several."""
        ids: Any
        mask: Any
        if isinstance(text, str):
            ids = self.encode(text, add_special_tokens=add_special_tokens)
            mask = [1] * len(ids)
        else:
            flat, offsets = self.tokenizer.encode_batch(text, add_special_tokens=add_special_tokens)
            every, ends = flat.tolist(), offsets.tolist()
            ids = [every[start:stop] for start, stop in pairwise(ends)]
            mask = [[1] * len(sequence) for sequence in ids]
        return {"input_ids": ids} | ({"attention_mask": mask} if return_attention_mask else {})

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        """Returns the ids of a text."""
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=add_special_tokens).tolist()
        return ids

    def decode(self, token_ids: Any, *, skip_special_tokens: bool = False) -> str:
        """Returns the text of a list of ids or of a single id."""
        ids = [token_ids] if isinstance(token_ids, int) else token_ids
        return self.tokenizer.decode(ids, skip_special_tokens=skip_special_tokens)

    def convert_tokens_to_ids(self, tokens: str | Sequence[str]) -> Any:
        """Returns the id of a token, or of each token in a list; ``None`` for unknown tokens."""
        if isinstance(tokens, str):
            return self.tokenizer.token_to_id(tokens)
        return [self.tokenizer.token_to_id(token) for token in tokens]

    @property
    def vocab_size(self) -> int:
        """Highest id + 1, including added tokens."""
        return self.tokenizer.vocab_size

    @property
    def eos_token(self) -> str | None:
        """The end-of-sequence token; ``None`` if the tokenizer's files do not name one."""
        return self.tokenizer.eos_token

    @property
    def eos_token_id(self) -> int | None:
        """The id of `eos_token`."""
        token = self.tokenizer.eos_token
        return None if token is None else self.tokenizer.token_to_id(token)
