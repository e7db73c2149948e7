"""Where documents of a pbin came from, if it was packed with `--origins`."""

from bisect import bisect_left

from packtok._packtok import Origin
from packtok.explore.contents.packed import Packed
from packtok.explore.files import NotServedError


def origin_text(packed: Packed, document: int) -> str | None:
    """Returns where a document came from, for people; ``None`` if the file does not say."""
    found = packed.reader.origin(document)
    return None if found is None else f"{found.source}, {found.unit} {found.offset:,}"


def first_of_source(packed: Packed, source: int) -> int:
    """Returns the first document of a source, by binary search: documents are in the order of their sources.

    Raises:
        NotServedError: If the file has no origins, or the source has no documents.
    """

    def source_of(document: int) -> int:
        found: Origin | None = packed.reader.origin(document)
        if found is None:
            raise NotServedError(
                f"{packed.name} does not record where its documents came from; pack it with packtok pack "
                "--origins"
            )
        return found.source_index

    document = bisect_left(range(packed.num_documents), source, key=source_of)
    if document == packed.num_documents or source_of(document) != source:
        raise NotServedError(f"no document of {packed.name} came from its source {source:,}")
    return document
