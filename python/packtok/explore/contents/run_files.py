"""The token files of a run, which its config names: they need not be below the folder that is served."""

from dataclasses import dataclass
from pathlib import Path

from packtok._packtok import Tokenizer
from packtok.explore.contents.packed import Packed, PackedFiles, ReadAs, Recent, SingleFile
from packtok.explore.contents.tokenizers import Decoder, Tokenizers
from packtok.explore.files import NotServedError, Root
from packtok.tokenizer.find import TOKENIZER_FILE

_MAX_OPEN = 64
_MAX_DECODERS = 4


@dataclass(frozen=True)
class _Opened:
    """A file, and the tokenizers next to it."""

    name: str
    files: PackedFiles
    tokenizers: Tokenizers


class RunFiles:
    """Opens the files of a run, and finds the tokenizers that made them.

    Args:
        default: The tokenizer that the user named for files that do not say theirs.
    """

    def __init__(self, default: Tokenizer | None = None) -> None:
        self._default = default
        self._opened = Recent(_MAX_OPEN)
        self._decoders = Recent(_MAX_DECODERS)

    def open(self, path: str, read_as: ReadAs) -> tuple[Packed, Decoder]:
        """Returns a file and its tokenizer.

        Args:
            path: The path.
            read_as: The arguments ``format``, ``input_dtype`` and ``boundaries`` of `PbinReader`.

        Raises:
            NotServedError: If it cannot be read.
            OSError: If there is no such file.
        """
        opened = self._opened.value((path, read_as), lambda: self._open(path, read_as))
        packed = opened.files.open(opened.name)

        def found() -> Decoder:
            decoder = opened.tokenizers.decoder(packed)
            if decoder.tokenizer is None:
                raise NotServedError(decoder.reason)
            return decoder

        if packed.fingerprint is None:
            return packed, opened.tokenizers.decoder(packed)
        try:
            # Many files of a run have the same tokenizer, each with a copy of it.
            return packed, self._decoders.value(packed.fingerprint, found)
        except NotServedError as error:
            return packed, Decoder(None, str(error))

    def _open(self, path: str, read_as: ReadAs) -> _Opened:
        resolved = Path(path).resolve(strict=True)
        name = resolved.name
        root = Root(resolved.parent, only=(name, f"{name}.{TOKENIZER_FILE}", TOKENIZER_FILE))
        files = PackedFiles(root, SingleFile(str(resolved), read_as))
        return _Opened(name, files, Tokenizers(root, self._default))
