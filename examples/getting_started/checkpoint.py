"""Checkpoints: complete or absent, the last few kept, read without executing anything."""

import os
import re
from pathlib import Path
from typing import Any

import torch

_NAME = re.compile(r"step-(\d+)\.pt")


def steps(folder: Path) -> list[int]:
    """Returns the steps of the checkpoints in ``folder``, in ascending order."""
    matches = (_NAME.fullmatch(path.name) for path in folder.iterdir())
    return sorted(int(match[1]) for match in matches if match)


def path_of(folder: Path, step: int) -> Path:
    """Returns the path of the checkpoint taken after ``step`` steps."""
    return folder / f"step-{step:08}.pt"


def save(content: dict[str, Any], folder: Path, step: int, *, keep: int) -> None:
    """Publishes a checkpoint by rename, so that a crash never leaves a partial one; removes old ones."""
    path = path_of(folder, step)
    unfinished = path.with_suffix(".tmp")
    with unfinished.open("wb") as file:
        torch.save(content, file)
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(path)
    _sync_folder(folder)
    for old in steps(folder)[:-keep]:
        path_of(folder, old).unlink()


def load(path: Path, device: torch.device | str) -> dict[str, Any]:
    """Returns the content passed to `save`, with tensors on ``device``; executes no code from the file."""
    content: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
    return content


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
