"""The errors for a missing package that only one of packtok's extras installs."""

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
    with needing("torch", user, "PyTorch", extra="torch"):
        yield


@contextmanager
def needing(module: str, user: str, package: str, *, extra: str) -> Iterator[None]:
    """Replaces the error of importing a module where it is not installed.

    Args:
        module: The module.
        user: What needs it, such as ``packtok.TokenDataset``.
        package: What users call it.
        extra: The extra that installs it.

    Raises:
        ModuleNotFoundError: If the module is missing; names the extra.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module:
            raise
        raise ModuleNotFoundError(
            f"{user} needs {package}, which is not installed; run pip install 'packtok[{extra}]'", name=module
        ) from None


@contextmanager
def needing_logits(user: str) -> Iterator[None]:
    """Replaces the error of importing torch, Transformers or huggingface_hub where they are not installed.

    Args:
        user: What needs them.

    Raises:
        ModuleNotFoundError: If one is missing; names the extra.
    """
    with (
        needing("torch", user, "PyTorch", extra="logits"),
        needing("transformers", user, "Transformers", extra="logits"),
        needing("huggingface_hub", user, "huggingface_hub", extra="logits"),
    ):
        yield
