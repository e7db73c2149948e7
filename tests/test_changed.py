"""`tests/run.py --changed`: every folder of the code has tests, and a file runs those of its folder."""

from __future__ import annotations

import changed
import pytest
from repository import ROOT, TESTS

EVERYTHING = "tests"
# Folders of files without code.
NO_CODE = ("__pycache__",)


def test_every_crate_and_every_folder_of_the_package_has_its_tests() -> None:
    package = [path for path in (ROOT / "python" / "packtok").iterdir() if path.is_dir()]
    for folder in [*(ROOT / "crates" / name for name in changed.all_crates()), *package]:
        if folder.name not in NO_CODE:
            tests = changed.python_tests_of(f"{folder.relative_to(ROOT)}/some_file")
            assert EVERYTHING not in tests, f"{folder}: add it to the table of tests/changed.py"


def test_table_names_existing_folders() -> None:
    for path, rooms in changed.ROOMS.items():
        assert (ROOT / path).is_dir(), path
        for room in rooms.split():
            assert any((TESTS / room).glob("test_*.py")), f"{path}: {room}"


@pytest.mark.parametrize(
    ("files", "python", "crates"),
    [
        ([], (), ()),
        (["tests/cli/test_cli.py", "tests/cli/test_deleted.py"], ("tests/cli/test_cli.py",), ()),
        (
            ["crates/packtok-formats/src/lib.rs"],
            ("tests/corpus", "tests/data", "tests/reshape"),
            ("packtok-formats",),
        ),
        (["python/packtok/launch/submit.py", "README.md"], ("tests/docs", "tests/launch"), ()),
        (["benches/src/lib.rs"], (), ()),
        (["Cargo.lock", "tests/cli/test_cli.py"], (EVERYTHING,), tuple(changed.all_crates())),
        (["tests/support/oracle.py"], (EVERYTHING,), ()),
        (["crates/packtok-py/src/lib.rs"], (EVERYTHING,), ()),
    ],
)
def test_files_run_the_tests_of_their_folders(
    files: list[str], python: tuple[str, ...], crates: tuple[str, ...]
) -> None:
    assert changed.tests_of(files) == changed.Tests(python, crates)
