"""`run.json`: what `packtok run` was asked for and which jobs it submitted, for `status` and `retry`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from packtok import __version__, _packtok
from packtok.errors import PacktokError
from packtok.launch.script import Launch, Request


class Submission(BaseModel):
    """One job that was submitted."""

    model_config = ConfigDict(strict=True, frozen=True)

    job: str
    kind: Literal["array", "srun", "ray", "join"]
    first_shard: int = 0
    """The shard that the array's task 0 packs."""
    shards: tuple[tuple[int, int], ...] = ()
    """First and last of each run of shards that the job is to pack."""

    def shards_of(self, array_task: int | None) -> Iterator[int]:
        """The shards that one task of an array packs; those of the whole job if it is none."""
        if array_task is not None:
            yield self.first_shard + array_task
        else:
            for first, last in self.shards:
                yield from range(first, last + 1)


class Record(Request):
    """All that a run is made from again."""

    packtok_run: Literal[1] = 1
    version: str = __version__
    submissions: tuple[Submission, ...] = ()

    @classmethod
    def of(cls, launch: Launch, submissions: tuple[Submission, ...]) -> "Record":
        """The record of a launch."""
        return cls(**launch.request(), submissions=submissions)

    def launch(self, outdir: Path) -> Launch:
        """The launch that this is the record of, its folder being where it now is."""
        return Launch(**self.request(), outdir=outdir)


def read_record(outdir: Path) -> Record | None:
    """The record in a folder of shards; ``None`` if no run was started from there.

    Raises:
        PacktokError: If it cannot be understood.
    """
    path = outdir / "run.json"
    try:
        return Record.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise PacktokError(
            f"{path}: {place} is not what this version of packtok writes; remove the file and start packtok "
            "run again"
        ) from None


def write_record(outdir: Path, record: Record) -> None:
    """Writes the record, in place of the one before."""
    text = json.dumps(record.model_dump(mode="json"), indent=1) + "\n"
    _packtok.publish_bytes(outdir / "run.json", text.encode("ascii"))
