"""Implements `packtok run` and `packtok retry`: packs a corpus with the tasks of a Slurm or Ray cluster."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Unpack

from packtok.catalog.schema import load_details
from packtok.commands.join import join
from packtok.commands.npy_folder import SUMMARY_NAME
from packtok.commands.run_command import RunCommand, pack_arguments, pack_command
from packtok.config import load_config
from packtok.config.keywords import PackOptions
from packtok.errors import ConfigError, PacktokError
from packtok.launch import ray_engine
from packtok.launch.record import Record, Submission, read_record, write_record
from packtok.launch.script import Launch, log_folder
from packtok.launch.settings import LaunchSettings, changed, load_settings, load_without_files
from packtok.launch.slurm import Slurm
from packtok.launch.submit import check, lines, num_shards, plan_jobs, relaunch, submit_jobs
from packtok.launch.tasks import COMMANDS, CommandName, is_written
from packtok.packer.run import OnWarnings
from packtok.progress import Progress
from packtok.remedies import entry_point
from packtok.shard_folder import TaskFolder, find_shard_folder, open_shard_folder
from packtok.sources import StrPath

# Name of the script that tatm would write.
SCRIPT_OF_TOKENIZE = "packtok_tokenize.submit"


@dataclass(frozen=True)
class RunStart:
    """The state of a run before its tasks are started."""

    num_shards: int
    finished: int
    """Number of shards that earlier tasks packed."""
    under_way: tuple[int, ...]
    """Shards that earlier jobs are packing."""
    released: tuple[str, ...]
    """Tasks of earlier jobs that Slurm held and that are released now."""
    num_nodes: int | None
    """Nodes of the Ray cluster; ``None`` with Slurm."""
    num_cpus: int | None
    """CPUs of the Ray cluster; ``None`` with Slurm."""


@dataclass(frozen=True)
class RunReport:
    """The result of `run` and `retry`."""

    output: str
    outdir: str
    engine: Literal["slurm", "ray"]
    """The engine that starts the tasks. With ``"ray"``, this process packed on a Ray cluster itself."""
    num_shards: int
    finished: int
    """Number of shards that earlier tasks packed."""
    submissions: tuple[Submission, ...]
    """Jobs that were submitted."""
    replaced: tuple[str, ...]
    """Join jobs of earlier submissions that were cancelled, because a new job joins."""
    commands: tuple[str, ...] | None
    """Shell commands that submit the jobs; ``None`` if `run` submitted them itself."""
    joined: Mapping[str, Any] | None
    """The report of the join if this process joined the shards; see `packtok.join`."""
    has_work: bool
    """Whether jobs were left to submit or shards to pack."""
    command: CommandName = "pack"
    """The command of packtok that the tasks run."""


class ShardsFailedError(PacktokError):
    """Shards failed on a Ray cluster."""

    def __init__(self, launch: Launch, failures: Mapping[int, str]) -> None:
        super().__init__(
            f"{launch.outdir}: {len(failures):,} of {launch.num_shards:,} shards failed; fix the errors, "
            f"then run: packtok retry {launch.outdir}"
        )
        self.reasons = {
            shard: f"{reason} (log: {ray_engine.log_of(launch.outdir, shard)})"
            for shard, reason in sorted(failures.items())
        }
        """Why each shard failed, and where its log is."""


OnStart = Callable[[RunStart], None]


@entry_point()
def run(
    config: StrPath | None = None,
    /,
    *,
    settings: LaunchSettings | Sequence[str] = (),
    outdir: StrPath | None = None,
    submit_script: StrPath | None = None,
    submit: bool = True,
    on_warnings: OnWarnings | None = None,
    on_start: OnStart | None = None,
    on_progress: Progress | None = None,
    **options: Unpack[PackOptions],
) -> RunReport:
    """Packs a corpus with many tasks on a cluster; the result is the file that one process would write.

    Tasks of other commands are started by the command line: ``packtok run tokenize``, ``packtok run sample``,
    ``packtok run logits``, ``packtok run convert``, ``packtok run reshape``. `retry` works for all of them.

    With Slurm it submits jobs and returns. With Ray, if ``RAY_ADDRESS`` names a cluster, it packs there and
    returns when the file is complete. The same call resumes a run whose tasks failed.

    Args:
        config: Path of a config file that all nodes can read, as in `packtok.pack`.
        settings: Settings of the cluster, or arguments as of ``--conf``: files, and overrides such as
            ``"slurm.partition=long"``.
        outdir: Folder for the shards that all nodes share. Default: the output's name plus ``.shards``.
        submit_script: The script to write. Default: ``pack.sbatch`` in ``outdir``.
        submit: Whether to submit the jobs; if not, the report contains the commands that do.
        on_warnings: Called with the remarks on the config and the tokenizer, before tasks are started.
        on_start: Called when it is known which shards are missing, before tasks are started.
        on_progress: With Ray, called every second with the counts of the finished shards, then as in
            `packtok.join`.
        **options: As in `packtok.pack`.

    Raises:
        ConfigError: If a key or a value is invalid.
        FileExistsError: If the output exists, must not be replaced, and was not made from these shards.
        ShardsFailedError: If shards fail with Ray.
        SlurmError: If Slurm rejects a job or does not respond.
    """
    path = None if config is None else os.fspath(config)
    without_files = None
    if not isinstance(settings, LaunchSettings):
        without_files = load_without_files(settings)
        settings = load_settings(settings)
    command = pack_command(
        load_config(path, options),
        pack_arguments(path, options),
        settings,
        None if outdir is None else os.fspath(outdir),
    )
    return run_tasks(
        command,
        settings,
        without_files=without_files,
        submit_script=None if submit_script is None else os.fspath(submit_script),
        submit=submit,
        on_warnings=on_warnings,
        on_start=on_start,
        on_progress=on_progress,
    )


def run_tasks(
    command: RunCommand,
    settings: LaunchSettings,
    *,
    without_files: Mapping[str, Any] | None = None,
    submit_script: str | None = None,
    submit: bool = True,
    on_warnings: OnWarnings | None = None,
    on_start: OnStart | None = None,
    on_progress: Progress | None = None,
) -> RunReport:
    """Plans the shards, writes the scripts, and submits them or returns the commands that do.

    Args:
        command: What the tasks run.
        settings: Settings of the cluster.
        without_files: The part of the settings that remains if `retry` names other files.
        submit_script: The script to write. Default: in the folder of the shards; with ``tokenize`` and
            without ``submit``, as in tatm, `SCRIPT_OF_TOKENIZE` in the current folder.
        submit: As in `run`.
        on_warnings: As in `run`.
        on_start: As in `run`.
        on_progress: As in `run`.
    """
    if submit_script is None and command.name == "tokenize" and not submit:
        submit_script = SCRIPT_OF_TOKENIZE
    if submit_script is not None and os.path.isdir(submit_script):
        raise ConfigError(f"--submit-script: {submit_script} is a folder; give a file in it")
    with _ray_at_hand(settings, submit=submit) as ray:
        num_nodes = None if ray is None else ray_engine.num_nodes(ray)
        launch = Launch(
            outdir=command.outdir,
            command=command.name,
            output=command.output,
            num_shards=command.num_shards or num_shards(command.outdir, settings, num_nodes),
            arguments=command.arguments,
            join=command.join,
            working_folder=os.getcwd(),
            python=sys.executable,
            settings=settings,
            without_files=None if without_files is None else dict(without_files),
        )
        check(launch)
        warnings = command.plan(launch.num_shards)
        if on_warnings is not None:
            on_warnings(warnings)
        script = None if submit_script is None else Path(os.path.abspath(submit_script))
        return _carry_out(launch, ray, script, submit=submit, on_start=on_start, on_progress=on_progress)


@entry_point()
def retry(
    outdir: StrPath,
    *,
    settings: Sequence[str] = (),
    submit: bool = True,
    on_start: OnStart | None = None,
    on_progress: Progress | None = None,
) -> RunReport:
    """Packs the missing shards of a `run` with new tasks.

    Args:
        outdir: The output of the run, or the folder of its shards.
        settings: Changes of the recorded settings, as arguments of ``--conf``. Files replace those of the
            run: a key that only the latter set is unset.
        submit: As in `run`.
        on_start: As in `run`.
        on_progress: As in `run`.

    Raises:
        ConfigError: If a key or a value is invalid.
        PacktokError: If no run was started from the folder.
        ShardsFailedError: If shards fail with Ray.
        SlurmError: If Slurm rejects a job or does not respond.
    """
    launch = relaunch(find_shard_folder(Path(outdir)))
    below = launch.without_files
    new = changed(launch.settings, settings, below)
    without_files = None if below is None else load_without_files(settings, below=below)
    with _ray_at_hand(new, submit=submit) as ray:
        changed_launch = launch.model_copy(update={"settings": new, "without_files": without_files})
        return _carry_out(
            changed_launch, ray, None, submit=submit, on_start=on_start, on_progress=on_progress
        )


@contextmanager
def _ray_at_hand(settings: LaunchSettings, *, submit: bool) -> Iterator[Any]:
    """Yields the connected Ray module if this process packs on a cluster itself, otherwise ``None``."""
    if settings.engine != "ray" or not submit:
        yield None
    elif ray_engine.is_at_hand():
        with ray_engine.connected() as ray:
            yield ray
    elif shutil.which(Slurm(settings.slurm.slurm_bin_dir).program("sbatch")) is not None:
        yield None
    else:
        raise PacktokError(
            "the ray engine needs a cluster: set RAY_ADDRESS to its address (RAY_ADDRESS=local starts one "
            "on this machine), or run packtok where the Slurm commands are installed"
        )


def _carry_out(
    launch: Launch,
    ray: Any,
    script: Path | None,
    *,
    submit: bool,
    on_start: OnStart | None,
    on_progress: Progress | None,
) -> RunReport:
    """Packs the missing shards with Ray, or submits them, or returns the commands that do."""
    if ray is not None:
        return _pack_on_ray(launch, ray, on_start, on_progress)
    slurm = Slurm(launch.settings.slurm.slurm_bin_dir)
    todo = plan_jobs(launch, script=script, slurm=slurm if submit else None)
    if on_start is not None:
        on_start(RunStart(launch.num_shards, todo.finished, todo.under_way, todo.held, None, None))
    if not todo.jobs and todo.join is None and not todo.held:
        return _report(launch, "slurm", todo.finished, has_work=False)
    if not submit:
        _record(launch)
        return _report(launch, "slurm", todo.finished, commands=tuple(lines(todo, slurm)))
    done = submit_jobs(launch, todo, slurm)
    return _report(launch, "slurm", todo.finished, submissions=done.submissions, replaced=done.replaced)


def _pack_on_ray(
    launch: Launch, ray: Any, on_start: OnStart | None, on_progress: Progress | None
) -> RunReport:
    """Packs the missing shards on a Ray cluster and joins them."""
    _record(launch)
    folder = open_shard_folder(launch.outdir)
    finished = folder.finished()
    missing = [shard for shard in range(launch.num_shards) if shard not in finished]
    if on_start is not None:
        num_nodes, num_cpus = ray_engine.num_nodes(ray), int(ray.cluster_resources().get("CPU", 0))
        on_start(RunStart(launch.num_shards, len(finished), (), (), num_nodes, num_cpus))
    failures = ray_engine.pack_shards(ray, launch, missing, on_progress)
    if failures:
        raise ShardsFailedError(launch, failures)
    is_joined = not missing and is_written(folder, launch.output) and not launch.join.is_requested
    if launch.settings.slurm.join == "none" or is_joined:
        return _report(launch, "ray", len(finished), has_work=bool(missing))
    return _report(launch, "ray", len(finished), joined=_joined(launch, on_progress))


def _joined(launch: Launch, on_progress: Progress | None) -> Mapping[str, Any]:
    """Ends a run whose shards are all there, and returns the counts."""
    if COMMANDS[launch.command].of_join is None:
        return join(launch.outdir, launch.output, on_progress=on_progress, **launch.join.options)
    # A process of its own joins, because paths of datasets are relative to the folder in which the run
    # started.
    log = log_folder(launch.outdir) / "ray_join.out"
    arguments = launch.join_command(str(launch.outdir))
    if (failure := ray_engine.run_command(arguments, launch.working_folder, str(log))) is not None:
        raise PacktokError(f"{failure} (log: {log})")
    folder = open_shard_folder(launch.outdir)
    if isinstance(folder, TaskFolder):
        report = folder.report() or {}
        return {name: item for name, item in report.items() if not isinstance(item, list | bool)}
    if Path(launch.output).name == SUMMARY_NAME:
        summary = json.loads(Path(launch.output).read_bytes())
        return {"output": launch.output} | {
            name: summary[name] for name in ("files", "documents", "tokens", "rejected")
        }
    details = load_details(Path(launch.output))
    return {"output": launch.output} | {
        name: details[name] for name in ("documents", "tokens", "rejected", "source_bytes")
    }


def _record(launch: Launch) -> None:
    """Records the request, and keeps the jobs that are already recorded."""
    record = read_record(launch.outdir)
    write_record(launch.outdir, Record.of(launch, record.submissions if record is not None else ()))


def _report(
    launch: Launch,
    engine: Literal["slurm", "ray"],
    finished: int,
    *,
    submissions: tuple[Submission, ...] = (),
    replaced: tuple[str, ...] = (),
    commands: tuple[str, ...] | None = None,
    joined: Mapping[str, Any] | None = None,
    has_work: bool = True,
) -> RunReport:
    return RunReport(
        output=launch.output,
        outdir=str(launch.outdir),
        engine=engine,
        num_shards=launch.num_shards,
        finished=finished,
        submissions=submissions,
        replaced=replaced,
        commands=commands,
        joined=joined,
        has_work=has_work,
        command=launch.command,
    )
