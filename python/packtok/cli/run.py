"""`packtok run`: runs a packtok command as tasks of a Slurm or Ray cluster."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from packtok.cli import console
from packtok.cli.on_ray import pack_on_ray, ray_at_hand
from packtok.cli.options import JsonOption, check_output
from packtok.cli.progress import engine_checks
from packtok.cli.wrapped import Wrapped, wrapped

if TYPE_CHECKING:
    from packtok.config import PackConfig

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
        typer.Argument(metavar="pack|tokenize ARGS...", help="The command to run, with its options."),
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
        typer.Option("--constraint", "--constraints", "-C", help="Features of nodes. Repeatable."),
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
        int | None, typer.Option(help="Ray tasks that run at once. [default: as many as fit]")
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
        str | None, typer.Option(help="The script to write. [default: pack.sbatch in the shard folder]")
    ] = None,
    outdir: Annotated[
        str | None, typer.Option(help="Folder of the shards. [default: the output's name plus .shards]")
    ] = None,
    submit: SubmitOption = True,
    as_json: JsonOption = False,
) -> None:
    """Pack a corpus with many tasks on a cluster; the result is the file that one process would write."""
    from packtok.launch.settings import load_settings

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
    values = {f"slurm.{name}": value for name, value in flags.items()}
    settings = load_settings(conf or (), {**values, "engine": engine, "ray.num_workers": num_workers})
    if settings.engine != "ray" and num_workers is not None:
        raise typer.BadParameter("--num-workers needs --engine ray; for Slurm use --array-tasks N%M")
    check_output("--outdir", outdir, is_folder=True)
    check_output("--submit-script", submit_script)
    start(
        wrapped(command),
        settings,
        outdir=outdir,
        submit_script=submit_script,
        submit=submit,
        as_json=as_json,
    )


def _array(text: str | None) -> dict[str, int]:
    """Parses ``N`` or ``N%M`` into settings."""
    if text is None:
        return {}
    shards, percent, at_once = text.partition("%")
    try:
        return {"shards": int(shards)} | ({"at_once": int(at_once)} if percent else {})
    except ValueError:
        raise typer.BadParameter(f"--array-tasks {text}: expected a number such as 64, or 64%8") from None


def start(
    command: Wrapped,
    settings: Any,
    *,
    outdir: str | None,
    submit_script: str | None,
    submit: bool,
    as_json: bool,
) -> None:
    """Plans the shards, writes the scripts, and submits them or prints the commands that would."""
    from packtok.cli.pack import check_whole, checked_config
    from packtok.errors import ConfigError
    from packtok.launch import ray_engine
    from packtok.launch import submit as launching
    from packtok.launch.script import Launch
    from packtok.store.staging import is_url

    checked = checked_config(command.config, command.options, list(command.set_values))
    check_whole(checked)
    if checked.settings.report is not None:
        raise ConfigError(
            "--report: settings.report is set, but packtok run writes no report; remove it, and use "
            "packtok status"
        )
    output = checked.settings.dst_path
    if outdir is not None and is_url(outdir):
        raise ConfigError(f"--outdir: {outdir} is in an object store; give a folder that all nodes share")
    if not is_url(output):
        output = os.path.abspath(output)
    elif outdir is None:
        raise ConfigError(
            f"--outdir: is missing, and the output {output} is in an object store; give a folder for the "
            "shards that all nodes share"
        )
    folder = Path(os.path.abspath(outdir or f"{output}.shards"))
    if os.path.lexists(folder) and not folder.is_dir():
        raise ConfigError(f"--outdir: {folder} is a file; give a folder for the shards")
    if submit_script is not None and os.path.isdir(submit_script):
        raise ConfigError(f"--submit-script: {submit_script} is a folder; give a file in it")
    with ray_at_hand(settings, submit=submit) as ray:
        num_nodes = None if ray is None else ray_engine.num_nodes(ray)
        launch = Launch(
            outdir=folder,
            output=output,
            num_shards=launching.num_shards(folder, settings, num_nodes),
            pack_arguments=command.arguments,
            join_arguments=_join_arguments(checked, settings.slurm.join),
            working_folder=os.getcwd(),
            python=sys.executable,
            settings=settings,
        )
        launching.check(launch)
        _plan(launch, command)
        script = None if submit_script is None else Path(os.path.abspath(submit_script))
        carry_out(launch, ray, script=script, submit=submit, as_json=as_json)


def _plan(launch: Any, command: Wrapped) -> None:
    """Writes the plan into the folder of shards."""
    from packtok.cli.pack import checked_config
    from packtok.commands.plan import plan_packing
    from packtok.packing import prepare

    into_folder = {**command.options, "output": str(launch.outdir)}
    with engine_checks(quiet=False):
        packing = prepare(checked_config(command.config, into_folder, list(command.set_values)))
    console.remarks([*command.remarks, *packing.notes])
    plan_packing(packing, launch.num_shards)


def _join_arguments(checked: "PackConfig", join: str) -> tuple[str, ...]:
    existing, limit = checked.settings.existing, checked.max_rejects
    arguments = [f"--existing={existing}"] if existing != "error" else []
    if limit is not None:
        arguments.append(f"--max-rejects={limit}")
    if join == "manifest":
        arguments.append("--manifest")
    return tuple(arguments)


def carry_out(launch: Any, ray: Any, *, script: Path | None, submit: bool, as_json: bool) -> None:
    """Packs the missing shards with Ray, or submits them and prints the jobs, or prints the commands."""
    if ray is not None:
        pack_on_ray(ray, launch, as_json=as_json)
        return
    from packtok.launch import submit as launching
    from packtok.launch.record import Record, read_record, write_record
    from packtok.launch.script import compact
    from packtok.launch.slurm import Slurm

    slurm = Slurm(launch.settings.slurm.slurm_bin_dir)
    todo = launching.plan_jobs(launch, script=script, slurm=slurm if submit else None)
    console.remark(
        f"{todo.finished:,} of {launch.num_shards:,} shards are done"
        + (f", {len(todo.under_way):,} queued or running" if todo.under_way else "")
        + (f"; released tasks that Slurm held: {', '.join(todo.held)}" if todo.held else "")
    )
    result = {"output": launch.output, "outdir": str(launch.outdir), "shards": launch.num_shards}
    result["finished"] = todo.finished
    if not todo.jobs and todo.join is None and not todo.held:
        if as_json:
            console.as_json(result | {"jobs": [], "replaced": []})
            return
        print(console.printable(f"nothing to submit; see packtok status {launch.outdir}"))
        return
    if not submit:
        record = read_record(launch.outdir)
        write_record(launch.outdir, Record.of(launch, record.submissions if record is not None else ()))
        commands = launching.lines(todo, slurm)
        if as_json:
            console.as_json(result | {"commands": list(commands)})
            return
        for line in commands:
            print(line)
        return
    done = launching.submit(launch, todo, slurm)
    if as_json:
        jobs = [{"job": one.job, "kind": one.kind, "shards": one.shards} for one in done.submissions]
        console.as_json(result | {"jobs": jobs, "replaced": list(done.replaced)})
        return
    rows = []
    for one in done.submissions:
        shards = compact(k for first, last in one.shards for k in range(first, last + 1))
        rows.append(
            (f"job {one.job}", "joins when all tasks have ended" if one.kind == "join" else f"packs {shards}")
        )
    rows += [(f"job {job}", "cancelled; a later job joins") for job in done.replaced]
    rows += [
        ("output", launch.output),
        ("shards", str(launch.outdir)),
        ("status", f"packtok status {launch.outdir}"),
    ]
    console.table(rows)
