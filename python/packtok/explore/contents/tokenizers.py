"""The tokenizers with which pages decode and compare: of files, built-in, and below the folder.

A name in a file or in metadata is never opened as a path and never looked up on a hub: it only selects a
built-in tokenizer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

from packtok._packtok import Tokenizer
from packtok.errors import TokenizerError
from packtok.explore.contents.packed import Packed, Recent
from packtok.explore.files import NotServedError, Root
from packtok.tokenizer.find import TOKENIZER_FILE

_MAX_FILE_BYTES = 256 << 20
_MAX_TOKENIZERS = 12


@dataclass(frozen=True)
class Decoder:
    """The tokenizer of a file, or the reason why its text cannot be shown."""

    tokenizer: Tokenizer | None
    reason: str = ""

    @property
    def special_ids(self) -> frozenset[int]:
        """Ids of special tokens."""
        if self.tokenizer is None:
            return frozenset()
        return frozenset(token_id for _, token_id in self.tokenizer.special_tokens)


class Tokenizers:
    """Loads tokenizers, and keeps those that were used last.

    Args:
        root: Where files are read.
        default: The tokenizer that the user named for files that do not say theirs.
    """

    def __init__(self, root: Root, default: Tokenizer | None = None) -> None:
        self._root = root
        self.default = default
        self._recent = Recent(_MAX_TOKENIZERS)

    def decoder(self, packed: Packed) -> Decoder:
        """Returns the tokenizer that made a file, checked by its fingerprint."""
        reasons: list[str] = []
        for find in self._candidates(packed):
            try:
                tokenizer = find()
            except NotServedError:
                continue
            except TokenizerError as error:
                reasons.append(f"a tokenizer next to the file cannot be read: {error}")
                continue
            if packed.fingerprint in (None, tokenizer.fingerprint):
                return Decoder(tokenizer)
            reasons.append(
                f"tokenizer {tokenizer.name} has the fingerprint {tokenizer.fingerprint}, but the file was "
                f"packed with {packed.fingerprint}"
            )
        if packed.tokenizer_name is None:
            reasons.append("the file does not say which tokenizer it was packed with; give --tokenizer")
        elif not reasons:
            reasons.append(
                f"the file was packed with tokenizer {packed.tokenizer_name}, which is neither built in nor "
                "next to the file; give --tokenizer"
            )
        return Decoder(None, "; ".join(dict.fromkeys(reasons)))

    def builtin(self, name: str) -> Tokenizer:
        """Returns a tokenizer that is built in."""
        return self._recent.value(("builtin", name), lambda: Tokenizer.builtin(name))

    def from_file(self, name: str) -> Tokenizer:
        """Returns the tokenizer in a `tokenizer.json` below the folder.

        Raises:
            NotServedError: If the file is not served.
            TokenizerError: If it is no tokenizer.
        """
        file = self._root.open(name)
        path = PurePosixPath(name)
        label = path.parent.name if path.name == TOKENIZER_FILE and path.parent.name else path.name

        def loaded() -> Tokenizer:
            return Tokenizer(file.content(_MAX_FILE_BYTES), label)

        return self._recent.value(file.identity, loaded)

    def _candidates(self, packed: Packed) -> list[Callable[[], Tokenizer]]:
        """Returns functions that load candidates for the tokenizer of a file, the likeliest first."""
        default, name = self.default, packed.tokenizer_name
        candidates: list[Callable[[], Tokenizer]] = []
        if default is not None:
            candidates.append(lambda: default)
        if name in Tokenizer.builtin_names() and packed.fingerprint is not None:
            candidates.append(lambda: self.builtin(str(name)))
        folder = str(PurePosixPath(packed.name).parent / TOKENIZER_FILE)
        for file in (f"{packed.name}.{TOKENIZER_FILE}", folder):
            candidates.append(lambda file=file: self.from_file(file))  # type: ignore[misc]
        return candidates
