"""`packtok status`: shows the state of the shards in a folder."""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from packtok.cli import console
from packtok.cli.options import check_inputs

if TYPE_CHECKING:
    from packtok.launch.status import Status, Watcher


def status(
    outdir: Annotated[
        str, typer.Argument(metavar="OUTDIR", help="The output of the run, or the folder of its shards.")
    ],
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Refresh until no task is queued or running.")
    ] = False,
    interval: Annotated[float, typer.Option(min=0.1, help="Seconds between refreshes.")] = 5.0,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print the result as one JSON document; with --watch, one per line."),
    ] = False,
) -> None:
    """Show which shards are done, running, queued, failed or missing. Exit code 0 in each case."""
    from packtok import _packtok
    from packtok.errors import ConfigError
    from packtok.launch.status import Watcher, poll
    from packtok.shard_folder import find_shard_folder, open_shard_folder

    check_inputs("OUTDIR", [outdir])
    if _packtok.is_url(outdir):
        raise ConfigError(f"{outdir}: status needs a folder of shards on a shared file system")
    watcher = Watcher(open_shard_folder(find_shard_folder(Path(os.path.abspath(outdir)))))
    if not watch:
        _show(watcher.look(), as_json=as_json)
    elif as_json or not sys.stdout.isatty():
        poll(watcher, interval, lambda status: _show(status, as_json=as_json))
    else:
        _live(watcher, interval)


def _show(status: "Status", *, as_json: bool) -> None:
    from packtok.launch.status import summary

    if as_json:
        print(json.dumps(status.to_dict()), flush=True)
    else:
        console.table(summary(status))
        sys.stdout.flush()


def _live(watcher: "Watcher", interval: float) -> None:
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text

    from packtok.launch.status import poll, summary

    def table(status: "Status") -> Table:
        grid = Table.grid(padding=(0, 2))
        for name, text in summary(status):
            grid.add_row(Text(name), Text(console.printable(text)))
        return grid

    with Live(auto_refresh=False) as live:
        poll(watcher, interval, lambda status: live.update(table(status), refresh=True))
