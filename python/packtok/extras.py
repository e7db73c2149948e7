"""What packtok says if PyTorch, which only its extra `torch` installs, is missing."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needing_torch(user: str) -> Iterator[None]:
    """Replaces the error of importing torch where it is not installed.

    Args:
        user: What needs torch, such as ``packtok.TokenDataset``.

    Raises:
        ModuleNotFoundError: If torch is missing; names the extra.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "torch":
            raise
        raise ModuleNotFoundError(
            f"{user} needs PyTorch, which is not installed; run pip install 'packtok[torch]'", name="torch"
        ) from None
