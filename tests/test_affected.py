"""The table of `tests/affected.py` names what there is."""

from pathlib import Path

import affected
import pytest

ROOT = Path(__file__).resolve().parent.parent
TESTS = {path.name for path in Path(__file__).parent.glob("test_*.py")}


def test_the_table_names_what_there_is() -> None:
    for prefix, names in affected._AFFECTED.items():
        assert (ROOT / prefix).exists(), prefix
        for name in names.split():
            assert f"test_{name}.py" in TESTS, f"{prefix}: {name}"


@pytest.mark.parametrize(
    ("files", "python", "has_rust"),
    [
        ([], (), False),
        (["tests/test_cli.py"], ("test_cli.py",), False),
        (["crates/packtok-store/src/lib.rs"], ("test_stores.py",), True),
        (["python/packtok/launch/submit.py"], ("test_launch.py", "test_ray.py", "test_slurm.py"), False),
        (["pyproject.toml"], tuple(sorted(TESTS)), False),
    ],
)
def test_the_longest_prefix_counts(files: list[str], python: tuple[str, ...], has_rust: bool) -> None:
    assert affected.tests_of(files) == affected.Affected(python, has_rust)
