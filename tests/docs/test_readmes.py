"""The README.md of each folder of the code: it exists, names existing files, and is not installed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from repository import ROOT

import packtok

PACKAGE = ROOT / "python" / "packtok"
CODE = sorted(ROOT.glob("crates/*/Cargo.toml")) + sorted(PACKAGE.glob("*/__init__.py"))
READMES = sorted([*ROOT.glob("crates/*/README.md"), *PACKAGE.rglob("README.md"), ROOT / "scripts/README.md"])


@pytest.mark.parametrize("folder", [path.parent for path in CODE], ids=lambda path: path.name)
def test_each_folder_of_the_code_has_a_readme(folder: Path) -> None:
    assert (folder / "README.md").is_file()


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.parent.name)
def test_readme_names_existing_files(readme: Path) -> None:
    names = re.findall(r"`([\w./]+(?:\.rs|\.py|/))`", readme.read_text(encoding="utf-8"))
    # A name is relative to the folder, to one below it, to the package, or to the repository.
    below = [f"/{path.relative_to(readme.parent).as_posix()}" for path in readme.parent.rglob("*")]
    missing = [
        name
        for name in names
        if not any((folder / name).exists() for folder in (PACKAGE, ROOT))
        and not any(path.endswith(f"/{name.rstrip('/')}") for path in below)
    ]
    assert missing == []


def test_no_folder_has_only_a_readme() -> None:
    folders = {path.parent for path in CODE} | {PACKAGE, ROOT / "scripts"}
    assert [readme for readme in READMES if readme.parent not in folders] == []


def test_map_of_the_code_names_every_crate() -> None:
    text = (ROOT / "docs" / "design" / "layout.md").read_text(encoding="utf-8")
    for manifest in ROOT.glob("crates/*/Cargo.toml"):
        assert f"crates/{manifest.parent.name}/README.md" in text


def test_wheel_has_no_readme() -> None:
    installed = Path(packtok.__file__).parent
    if installed == PACKAGE:
        pytest.skip("packtok is imported from its sources")
    assert list(installed.rglob("README.md")) == []
