"""`packtok run`: runs a packtok command as tasks of a Slurm or Ray cluster."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from packtok.cli import console
from packtok.cli.merge import show_counts
from packtok.cli.options import JsonOption, check_output
from packtok.cli.progress import engine_checks, progress_of_counts
from packtok.cli.wrapped import wrapped

if TYPE_CHECKING:
    from packtok.commands.run import OnStart, RunReport, RunStart
    from packtok.launch.record import Submission
    from packtok.launch.tasks import CommandName
    from packtok.progress import Progress

# Everything after the first word without a dash belongs to the command to run.
CONTEXT_SETTINGS = {"allow_interspersed_args": False}

ConfOption = Annotated[
    list[str] | None,
    typer.Option(
        "--conf",
        "--config",
        metavar="FILE|KEY=VALUE",
        help="A settings file, or one setting such as slurm.partition=long. Repeatable.",
    ),
]
SubmitOption = Annotated[
    bool,
    typer.Option(
        "--submit/--no-submit", help="Submit the jobs, or only write the scripts and print the commands."
    ),
]


def run(
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="pack|tokenize|sample|logits|convert|reshape ARGS...",
            help="The command to run, with its options.",
        ),
    ],
    conf: ConfOption = None,
    nodes: Annotated[
        int | None,
        typer.Option("--nodes", "-N", help="Tasks that run at once; with --mode srun, nodes of the job."),
    ] = None,
    cpus_per_task: Annotated[
        int | None, typer.Option("--cpus-per-task", "--cpus", "-c", help="CPUs and threads of each task.")
    ] = None,
    mem: Annotated[str | None, typer.Option("--mem", "--memory", help="Memory per node, such as 8G.")] = None,
    time: Annotated[
        str | None, typer.Option("--time", "--time-limit", "-t", help="Time limit of each job.")
    ] = None,
    partition: Annotated[str | None, typer.Option("--partition", "-p", help="Partition.")] = None,
    account: Annotated[str | None, typer.Option("--account", "-A", help="Account.")] = None,
    qos: Annotated[str | None, typer.Option("--qos", "-q", help="Quality of service.")] = None,
    constraint: Annotated[
        list[str] | None,
        typer.Option(
            "--constraint", "--constraints", "-C", metavar="NAME", help="Features of nodes. Repeatable."
        ),
    ] = None,
    gpus_per_node: Annotated[
        str | None, typer.Option("--gpus-per-node", help="GPUs, if the partition requires them.")
    ] = None,
    array_tasks: Annotated[
        str | None,
        typer.Option(
            "--array-tasks",
            "--shards",
            metavar="N[%M]",
            help="Number of shards, one task each; at most M at once. [default: 8 for each of --nodes]",
        ),
    ] = None,
    mode: Annotated[
        Literal["array", "srun"] | None,
        typer.Option(help="A job array, or one job whose tasks srun starts. [default: array]"),
    ] = None,
    engine: Annotated[
        Literal["slurm", "ray"] | None,
        typer.Option(
            help="What starts the tasks. ray: the cluster at RAY_ADDRESS, else one in a job. [default: slurm]"
        ),
    ] = None,
    num_workers: Annotated[
        int | None,
        typer.Option(min=1, help="Tasks that run at once. [default: --nodes; with Ray, all that fit]"),
    ] = None,
    join: Annotated[
        Literal["file", "manifest", "none"] | None,
        typer.Option(help="What the finished shards become. [default: file]"),
    ] = None,
    log_file: Annotated[
        str | None, typer.Option("--log-file", "-o", help="Log files; %A is the job, %a the task.")
    ] = None,
    error_file: Annotated[
        str | None, typer.Option("--error-file", "-e", help="Error files, if separate from the logs.")
    ] = None,
    sbatch_arg: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ARG", help="Any other sbatch argument, such as --reservation=NAME. Repeatable."
        ),
    ] = None,
    submit_script: Annotated[
        str | None, typer.Option(help="The script to write. [default: in the shard folder]")
    ] = None,
    outdir: Annotated[
        str | None, typer.Option(help="Folder of the shards. [default: the output's name plus .shards]")
    ] = None,
    submit: SubmitOption = True,
    as_json: JsonOption = False,
) -> None:
    """Run a command with many tasks on a cluster; the result is what one process would write."""
    from packtok.commands.run import run_tasks
    from packtok.launch.settings import load_settings, load_without_files

    flags: dict[str, Any] = {
        "nodes": nodes,
        "cpus_per_task": cpus_per_task,
        "mem": mem,
        "time": time,
        "partition": partition,
        "account": account,
        "qos": qos,
        "constraint": constraint or None,
        "gpus_per_node": gpus_per_node,
        "mode": mode,
        "join": join,
        "log_file": log_file,
        "error_file": error_file,
        "sbatch_args": sbatch_arg or None,
        **_array(array_tasks),
    }
    wrapped_command = wrapped(command)
    workers = _tasks_at_once(
        {
            "--num-workers before the command": num_workers,
            "--num-workers after it": wrapped_command.num_workers,
        }
    )
    at_once = _tasks_at_once({"--num-workers": workers, "--array-tasks N%M": flags.get("at_once")})
    values = {f"slurm.{name}": value for name, value in {**flags, "at_once": at_once}.items()}
    layered = {**values, "engine": engine, "ray.num_workers": workers}
    settings = load_settings(conf or (), layered)
    if workers is not None and settings.engine == "slurm" and settings.slurm.mode == "srun":
        raise typer.BadParameter("--num-workers has no effect with --mode srun; use --nodes")
    check_output("--outdir", outdir, is_folder=True)
    check_output("--submit-script", submit_script)
    console.remarks(wrapped_command.remarks)
    show_run(
        lambda on_start, on_progress: run_tasks(
            wrapped_command.prepare(settings, outdir),
            settings,
            without_files=load_without_files(conf or (), layered),
            submit_script=submit_script,
            submit=submit,
            on_warnings=console.remarks,
            on_start=on_start,
            on_progress=on_progress,
        ),
        as_json=as_json,
    )


def _tasks_at_once(options: dict[str, int | None]) -> int | None:
    """Returns the number of tasks that run at once, which several options can give."""
    values = {name: value for name, value in options.items() if value is not None}
    if len(set(values.values())) > 1:
        texts = " and ".join(f"{name} is {value}" for name, value in values.items())
        raise typer.BadParameter(f"{texts}; both are the number of tasks that run at once, so give only one")
    return next(iter(values.values()), None)


def _array(text: str | None) -> dict[str, int]:
    """Parses ``N`` or ``N%M`` into settings."""
    if text is None:
        return {}
    shards, percent, at_once = text.partition("%")
    try:
        return {"shards": int(shards)} | ({"at_once": int(at_once)} if percent else {})
    except ValueError:
        raise typer.BadParameter(f"--array-tasks {text}: expected a number such as 64, or 64%8") from None


def show_run(start: "Callable[[OnStart, Progress | None], RunReport]", *, as_json: bool) -> None:
    """Calls `packtok.commands.run` with callbacks that report to stderr, and prints the result."""
    from packtok.commands.run import ShardsFailedError

    try:
        # A run that submits jobs shows no progress.
        with engine_checks(quiet=False), progress_of_counts(quiet=False) as on_progress:
            report = start(_show_start, on_progress)
    except ShardsFailedError as error:
        for shard, reason in error.reasons.items():
            console.remark(f"shard {shard}: {reason}")
        raise
    if report.joined is not None:
        # The report of the join is the result of the whole run.
        show_counts(report.joined, as_json=as_json, quiet=False)
    elif as_json:
        console.as_json(_json(report))
    else:
        _show(report)


def _show_start(start: "RunStart") -> None:
    parts = [f"{start.finished:,} of {start.num_shards:,} shards are done"]
    if start.under_way:
        parts.append(f", {len(start.under_way):,} queued or running")
    if start.released:
        parts.append(f"; released tasks that Slurm held: {', '.join(start.released)}")
    if start.num_nodes is not None:
        parts.append(f"; Ray: {start.num_nodes:,} nodes, {start.num_cpus:,} CPUs")
    console.remark("".join(parts))


def _json(report: "RunReport") -> dict[str, Any]:
    result = {"output": report.output, "outdir": report.outdir, "shards": report.num_shards}
    if report.engine == "ray":
        return result | {"joined": False}
    result["finished"] = report.finished
    if report.commands is not None:
        return result | {"commands": list(report.commands)}
    jobs = [
        {"job": submission.job, "kind": submission.kind, "shards": submission.shards}
        for submission in report.submissions
    ]
    return result | {"jobs": jobs, "replaced": list(report.replaced)}


def _show(report: "RunReport") -> None:
    if report.engine == "ray":
        print(console.printable(f"all shards are done: {report.outdir}"))
    elif report.commands is not None:
        for line in report.commands:
            print(line)
    elif not report.has_work:
        print(console.printable(f"nothing to submit; see packtok status {report.outdir}"))
    else:
        console.table(_rows(report))


def _rows(report: "RunReport") -> list[tuple[str, str]]:
    return [
        *((f"job {job.job}", _purpose(job, report.command)) for job in report.submissions),
        *((f"job {job}", "cancelled; a later job joins") for job in report.replaced),
        ("output", report.output),
        ("shards", report.outdir),
        ("status", f"packtok status {report.outdir}"),
    ]


def _purpose(job: "Submission", command: "CommandName") -> str:
    from packtok.launch.script import compact
    from packtok.launch.tasks import COMMANDS

    if job.kind == "join":
        return "joins when all tasks have ended"
    shards = compact(shard for first, last in job.shards for shard in range(first, last + 1))
    return f"{COMMANDS[command].verb} {shards}"
