"""`run.json`: the request of a `packtok run` and the jobs it submitted, for `status` and `retry`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from packtok import __version__, _packtok
from packtok.errors import PacktokError
from packtok.launch.script import Launch, Request


class Submission(BaseModel):
    """One submitted job."""

    model_config = ConfigDict(strict=True, frozen=True)

    job: str
    kind: Literal["array", "srun", "ray", "join"]
    first_shard: int = 0
    """The shard that array task 0 packs."""
    shards: tuple[tuple[int, int], ...] = ()
    """First and last shard of each range that the job packs."""

    def shards_of(self, array_task: int | None) -> Iterator[int]:
        """Yields the shards of one array task, or of the whole job if ``array_task`` is ``None``."""
        if array_task is not None:
            yield self.first_shard + array_task
        else:
            for first, last in self.shards:
                yield from range(first, last + 1)


class Record(Request):
    """All data needed to repeat a run."""

    packtok_run: Literal[1] = 1
    version: str = __version__
    submissions: tuple[Submission, ...] = ()

    @classmethod
    def of(cls, launch: Launch, submissions: tuple[Submission, ...]) -> "Record":
        """Returns the record of a launch."""
        return cls(**launch.request(), submissions=submissions)

    def launch(self, outdir: Path) -> Launch:
        """Returns the recorded launch, with the folder at its current path."""
        return Launch(**self.request(), outdir=outdir)


def read_record(outdir: Path) -> Record | None:
    """Returns the record in a folder of shards; ``None`` if no run was started from there.

    Raises:
        PacktokError: If it cannot be parsed.
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
    """Writes the record and replaces the previous one."""
    text = json.dumps(record.model_dump(mode="json"), indent=1) + "\n"
    _packtok.publish_bytes(outdir / "run.json", text.encode("ascii"))
