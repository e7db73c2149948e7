"""The golden files and the specification agree with the naive reader; does not use packtok."""

from __future__ import annotations

from pathlib import Path

import make
import pytest
import reference
from repository import GOLDEN, ROOT

PLAIN = ["u8", "u16", "u32", "legacy", "fixed_stride", "protocol2", "protocol3", "protocol5"]


def test_golden_files_equal_the_output_of_their_script() -> None:
    for name, content in make.golden().items():
        assert (GOLDEN / name).read_bytes() == content, name


def test_every_golden_file_is_explained() -> None:
    text = (GOLDEN / "README.md").read_text()
    for name in make.golden():
        is_counted = (
            name.startswith("pairs_") and name.removesuffix(".pickle").removeprefix("pairs_").isdigit()
        )
        assert is_counted or f"`{name}`" in text, name


def test_worked_example_equals_the_golden_file() -> None:
    text = (ROOT / "docs" / "reference" / "pbin_format.md").read_text()
    dump = text.split("```hexdump\n")[1].split("```")[0]
    digits = "".join(line.split(": ")[1].split("  ")[0] for line in dump.splitlines())
    assert bytes.fromhex(digits) == (GOLDEN / "example.pbin").read_bytes()


def test_worked_example_follows_the_specification() -> None:
    example = reference.read_pbin(GOLDEN / "example.pbin")
    assert example.width == 2
    assert example.documents == [[15496, 11, 995, 50256], [50256], [3666, 50256]]
    assert example.metadata == make.EXAMPLE_METADATA
    assert example.sources == make.EXAMPLE_SOURCES
    assert len(example.crcs) == 1


@pytest.mark.parametrize("name", PLAIN)
def test_files_without_trailer_contain_their_documents(name: str) -> None:
    plain = reference.read_pbin(GOLDEN / f"plain_{name}.pbin")
    assert plain.documents == make.DOCUMENTS
    assert plain.metadata is None


def test_file_without_documents_is_valid() -> None:
    assert reference.read_pbin(GOLDEN / "plain_empty.pbin").documents == []


def test_optional_sections_are_optional() -> None:
    assert reference.read_pbin(GOLDEN / "offsets_only.pbin").metadata is None
    file = (GOLDEN / "unknown_optional.pbin").read_bytes()
    assert reference.trailer_of(file)[99] == reference.Section(0, b"from the future")


def test_reference_writes_what_it_reads(tmp_path: Path) -> None:
    path = tmp_path / "x.pbin"
    reference.write_modalities(path, make.DOCUMENTS, 4)
    assert path.read_bytes() == (GOLDEN / "plain_u32.pbin").read_bytes()
    assert reference.read_pbin(path).documents == make.DOCUMENTS


def test_reference_detects_damage(tmp_path: Path) -> None:
    path = tmp_path / "x.pbin"
    whole = (GOLDEN / "example.pbin").read_bytes()
    for at in range(0x40, len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        # With a changed tail magic, bytes remain after the index, which do not parse as a trailer.
        with pytest.raises(ValueError, match="wrong"):
            reference.read_pbin(path)


def test_crc32c_of_the_check_string() -> None:
    assert reference.crc32c(b"123456789") == 0xE3069283
