"""The health line of a file or dataset: facts that show whether it is complete, without reading all of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from packtok.explore.contents.catalog import Dataset
from packtok.explore.contents.packed import MAX_VERIFIED_BYTES, Packed
from packtok.explore.contents.tokenizers import Decoder

# Properties of a token file that the details of a dataset record.
RECORDED = ("bytes", "documents", "tokens", "trailer_crc32c")


@dataclass(frozen=True)
class Check:
    """One part of the health line."""

    status: Literal["good", "note", "fault"]
    """A note is a fact that the reader must judge, or something that is unknown."""
    text: str


def health_of_file(packed: Packed, decoder: Decoder) -> list[Check]:
    """Returns the health line of a file."""
    damage = Check("fault", f"damaged: {packed.faults[0]}") if packed.faults else _good_content([packed])
    if packed.fingerprint is not None and decoder.tokenizer is None:
        tokenizer = Check("note", "its tokenizer is not there, so that no text is shown")
    else:
        tokenizer = _tokenizer([packed], None)
    return [damage, _trailers([packed]), tokenizer, *_counts([packed], {})]


def health_of_dataset(
    dataset: Dataset, packed: Sequence[Packed], faults: Mapping[str, str], num_files: int, num_opened: int
) -> list[Check]:
    """Returns the health line of a tokenized dataset.

    Args:
        dataset: The dataset.
        packed: The files that were opened.
        faults: The faults of its files, by path.
        num_files: The number of its files.
        num_opened: The number of files that the page tried to open.
    """
    info = dataset.metadata.tokenized_info
    if num_files and not packed and info is not None and info.file_extension.removeprefix(".") != "pbin":
        return [Check("note", f"the page reads no .{info.file_extension.removeprefix('.')} files")]
    checks = [_files(faults, num_files, has_lengths=bool(dataset.details.get("files")))]
    if not packed:
        return checks
    if not faults:
        checks.append(_good_content(packed))
    if num_opened < num_files:
        checks.append(Check("note", f"only {num_opened:,} of {num_files:,} files were opened"))
    fingerprint = dataset.details.get("tokenizer_fingerprint")
    recorded = fingerprint if isinstance(fingerprint, str) else None
    return [*checks, _trailers(packed), _tokenizer(packed, recorded), *_counts(packed, dataset.details)]


def health_of_texts(faults: Mapping[str, str], num_checked: int, num_files: int) -> list[Check]:
    """Returns the health line of a dataset of texts, of which only names and lengths are compared."""
    if not num_files:
        return [Check("note", "the metadata lists no files, so that a missing one is not noticed")]
    if not num_checked:
        return [Check("note", "the files are outside the base directory and were not checked")]
    checks = [_files(faults, num_files, has_lengths=True)]
    if num_checked < num_files:
        checks.append(Check("note", f"only {num_checked:,} of {num_files:,} files were looked up"))
    return checks


def difference(recorded: Mapping[str, Any], actual: Mapping[str, Any]) -> str | None:
    """Returns how a file differs from what the details of its dataset record; ``None`` if it does not."""
    for key in RECORDED:
        expected = recorded.get(key)
        if isinstance(expected, int) and key in actual and actual[key] != expected:
            found, wanted = (_value(key, value) for value in (actual[key], expected))
            return f"{key.replace('_', ' ')}: found {found}, the metadata says {wanted}"
    return None


def _value(key: str, value: int | None) -> str:
    if value is None:
        return "none"
    return f"{value:08x}" if key == "trailer_crc32c" else f"{value:,}"


def _files(faults: Mapping[str, str], num_files: int, *, has_lengths: bool) -> Check:
    files = "1 file" if num_files == 1 else f"{num_files:,} files"
    if not num_files:
        return Check("fault", "no files")
    if faults:
        return Check("fault", f"{len(faults):,} of {files} missing, damaged or changed")
    return Check("good", f"{files} present" + (", as long as recorded" if has_lengths else ""))


def _good_content(packed: Sequence[Packed]) -> Check:
    if all(file.is_verified for file in packed):
        return Check("good", "all bytes verified")
    return Check("good", f"lengths agree; data of more than {MAX_VERIFIED_BYTES >> 20} MiB were not read")


def _trailers(packed: Sequence[Packed]) -> Check:
    missing = sum(file.reader.trailer_crc32c is None for file in packed)
    if not missing:
        return Check(
            "good", "trailer with valid checksum" if len(packed) == 1 else "trailers with valid checksums"
        )
    number = "" if len(packed) == 1 else f"in {missing:,} of {len(packed):,} files, "
    return Check("note", f"{number}no trailer, so that checksums and counts are unknown")


def _tokenizer(packed: Sequence[Packed], recorded: str | None) -> Check:
    fingerprints = {file.fingerprint for file in packed}
    if len(fingerprints) > 1:
        return Check("fault", f"the files were packed with {len(fingerprints):,} tokenizers")
    (fingerprint,) = fingerprints
    if fingerprint is None:
        return Check("note", "the tokenizer is not recorded")
    if recorded not in (None, fingerprint):
        return Check("fault", f"packed with tokenizer {fingerprint}, the metadata says {recorded}")
    return Check("good", f"tokenizer {packed[0].tokenizer_name} matches")


def _counts(packed: Sequence[Packed], details: Mapping[str, Any]) -> list[Check]:
    """Returns the checks of the counts in the trailers."""
    eods, rejected = (_sum(packed, key) for key in ("eods_in_text", "rejected"))
    if rejected is None and isinstance(details.get("rejected"), int):
        rejected = details["rejected"]
    return [
        _counted(eods, "EODs inside texts"),
        _counted(rejected, "documents rejected"),
    ]


def _sum(packed: Sequence[Packed], key: str) -> int | None:
    """Returns the sum of a count over files; ``None`` if a file does not record it."""
    counts = [file.metadata.get("counts") or {} for file in packed]
    # Steps that change documents keep the numbers of documents and tokens only.
    if any(not count.get("lines") and count.get("documents") != 0 for count in counts):
        return None
    return sum(int(count[key]) for count in counts)


def _counted(number: int | None, what: str) -> Check:
    if number is None:
        return Check("note", f"{what}: unknown")
    return Check("note" if number else "good", f"{what}: {number:,}")
