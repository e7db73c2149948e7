"""The table of `tests/affected.py` names only existing files."""

from pathlib import Path

import affected
import pytest

ROOT = Path(__file__).resolve().parent.parent
TESTS = {path.name for path in Path(__file__).parent.glob("test_*.py")}


def test_table_lists_only_existing_tests() -> None:
    for prefix, names in affected._AFFECTED.items():
        assert (ROOT / prefix).exists(), prefix
        for name in names.split():
            assert f"test_{name}.py" in TESTS, f"{prefix}: {name}"


@pytest.mark.parametrize(
    ("files", "python", "crates"),
    [
        ([], (), ()),
        (["tests/test_cli.py"], ("test_cli.py",), ()),
        (["crates/packtok-store/src/lib.rs"], ("test_stores.py",), ("packtok-store",)),
        (
            ["python/packtok/launch/submit.py"],
            ("test_launch.py", "test_ray.py", "test_run_samples.py", "test_run_tokenize.py", "test_slurm.py"),
            (),
        ),
        (["benches/src/lib.rs"], (), ("benches",)),
        (["Cargo.lock"], tuple(sorted(TESTS)), affected.CRATES),
        (["pyproject.toml"], tuple(sorted(TESTS)), ()),
    ],
)
def test_longest_prefix_counts(files: list[str], python: tuple[str, ...], crates: tuple[str, ...]) -> None:
    assert affected.tests_of(files) == affected.Affected(python, crates)
