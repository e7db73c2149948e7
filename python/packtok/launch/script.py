"""Generates submission scripts: options for Slurm, environment, commands and signal handling.

User input is shell-quoted in scripts. It is written into an #SBATCH directive only if it is unambiguous
there, and otherwise passed on the command line of sbatch.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from packtok import __version__
from packtok.launch.settings import Environment, LaunchSettings
from packtok.launch.tasks import COMMANDS, Arguments, CommandName, Join, Task

# Characters that sbatch takes literally in a directive: no white space, quotes, backslashes or comment signs.
_PLAIN = re.compile(r"[A-Za-z0-9_./:=,@%+&|*()\[\]^~-]*")

# Parts of scripts, in files that shellcheck can read. A part may use names that earlier parts define.
_TEMPLATES = Path(__file__).parent / "templates"


class Request(BaseModel):
    """The command to run, its output, and the jobs that run it."""

    model_config = ConfigDict(strict=True, frozen=True)

    command: CommandName = "pack"
    """The command of packtok that the tasks run."""
    output: str
    """The file that the run writes last."""
    num_shards: int
    arguments: Arguments = Arguments()
    """Arguments of the command, without the folder of the shards and the shard."""
    join: Join = Join()
    """How the run ends."""
    working_folder: str
    python: str
    """The Python interpreter with packtok, for jobs without an environment of their own."""
    settings: LaunchSettings
    without_files: dict[str, Any] | None = None
    """The settings that remain without the files of ``--conf``; ``None`` in records of earlier versions."""

    def request(self) -> dict[str, Any]:
        """Returns only these fields, also in subclasses."""
        return {name: getattr(self, name) for name in Request.model_fields}


class Launch(Request):
    """A request and the folder of its shards."""

    outdir: Path

    def task_command(
        self, outdir: str, shard: str, num_cpus: str, quote: Callable[[str], str] = str
    ) -> list[str]:
        """Returns the command with which a task packs a shard, without the program.

        Args:
            outdir: The folder of the shards.
            shard: The number of the shard.
            num_cpus: The number of threads, unless the request itself sets it.
            quote: Applied to the arguments of the request only, so that the others can be shell variables.
        """
        task = Task(outdir, shard, self.num_shards, num_cpus, self.arguments)
        return [*self._command(quote), *COMMANDS[self.command].of_task(task)]

    def join_command(self, outdir: str, quote: Callable[[str], str] = str) -> list[str]:
        """Returns the command that ends the run, without the program; arguments as of `task_command`."""
        command = COMMANDS[self.command]
        if command.of_join is None:
            options = Arguments(options={"output": self.output, **self.join.options})
            return ["join", outdir, *map(quote, options.words())]
        existing = self.join.existing or command.policy_of_join
        policy = [] if existing is None else [f"--existing={existing}"]
        return [*self._command(quote), *command.of_join(outdir, self.num_shards), *policy]

    def _command(self, quote: Callable[[str], str]) -> list[str]:
        return [quote(text) for text in (self.command, *self.arguments.words())]


@dataclass(frozen=True)
class Script:
    """A script and its sbatch options."""

    text: str
    options: tuple[str, ...]
    """The options inside the script."""
    arguments: tuple[str, ...]
    """The options that a directive could not contain."""


def array_script(launch: Launch) -> Script:
    """Returns the script of a job array, each of whose tasks packs one shard."""
    options = _where(launch) | _shape(launch) | {"--nodes": "1", "--ntasks": "1"}
    options |= _log(launch, f"{_log_folder(launch)}/%A_%a.out")
    body = [
        _run_functions(launch),
        _filled("pack_shard", pack=_pack_command(launch), num_shards=launch.num_shards),
        # The last task of an array has the array's own job id, and requeueing that id would restart all
        # tasks.
        _requeue_function(launch, '"${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"'),
        _template("array_task"),
    ]
    return _script(
        f"Each task of the job array runs packtok {launch.command} for one shard.", launch, options, body
    )


def srun_script(launch: Launch, shards: Sequence[int]) -> Script:
    """Returns the script of one multi-node job whose tasks divide ``shards``, and which then joins them."""
    nodes = launch.settings.slurm.nodes or 1
    options = _where(launch) | _shape(launch) | {"--nodes": str(nodes), "--ntasks-per-node": "1"}
    options |= _log(launch, f"{_log_folder(launch)}/%j.out")
    join = _join_command(launch) if launch.settings.slurm.join != "none" else "true"
    body = [
        _run_functions(launch),
        _filled("pack_shard", pack=_pack_command(launch), num_shards=launch.num_shards),
        _filled("pack_my_shards", shards=_braces(shards)),
        _requeue_function(launch, '"$SLURM_JOB_ID"'),
        _filled("srun", log=shlex.quote(f"{_log_folder(launch)}/%j_%t.out"), join=join),
    ]
    return _script(
        f"The tasks of one job run packtok {launch.command} for all shards; then they are joined.",
        launch,
        options,
        body,
    )


def ray_script(launch: Launch) -> Script:
    """Returns the script of one multi-node job that starts a Ray cluster and packs the missing shards."""
    nodes = launch.settings.slurm.nodes or 1
    options = _where(launch) | _shape(launch) | {"--nodes": str(nodes), "--ntasks-per-node": "1"}
    options |= _log(launch, f"{_log_folder(launch)}/%j.out")
    body = [
        _run_functions(launch),
        _requeue_function(launch, '"$SLURM_JOB_ID"'),
        _filled("ray", ray=_program(launch, "ray"), logs=shlex.quote(str(log_folder(launch.outdir)))),
    ]
    return _script(
        f"Runs packtok {launch.command} for all shards on a Ray cluster of its own.", launch, options, body
    )


def join_script(launch: Launch) -> Script:
    """Returns the script that joins the shards once all tasks have ended, or lists the missing ones."""
    options = _where(launch) | {"--nodes": "1", "--ntasks": "1", "--cpus-per-task": "1"}
    options["--job-name"] = f"{launch.settings.slurm.job_name}-join"
    options["--output"] = f"{_log_folder(launch)}/join_%j.out"
    body = [
        _run_functions(launch),
        _requeue_function(launch, '"$SLURM_JOB_ID"'),
        _filled("join", join=_join_command(launch)),
    ]
    return _script("Joins the shards when their tasks have ended.", launch, options, body)


def compact(shards: Iterable[int]) -> str:
    """Formats numbers in Slurm's notation: ``3,7-9``."""
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs(shards))


def runs(shards: Iterable[int]) -> list[tuple[int, int]]:
    """Returns the first and last number of each consecutive range."""
    ranges: list[tuple[int, int]] = []
    for shard in sorted(shards):
        if ranges and ranges[-1][1] == shard - 1:
            ranges[-1] = (ranges[-1][0], shard)
        else:
            ranges.append((shard, shard))
    return ranges


def _braces(shards: Sequence[int]) -> str:
    """Formats numbers as bash brace expansions, so that ten thousand of them stay short."""
    return " ".join(str(first) if first == last else f"{{{first}..{last}}}" for first, last in runs(shards))


def _where(launch: Launch) -> dict[str, str | None]:
    """Returns the options of every job, and those that select where it runs."""
    slurm = launch.settings.slurm
    options: dict[str, str | None] = {"--job-name": slurm.job_name, "--chdir": launch.working_folder}
    for name in ("partition", "account", "qos", "constraint", "mem", "time"):
        if (value := getattr(slurm, name)) is not None:
            options[f"--{name}"] = value
    options |= {"--requeue": None, "--open-mode": "append", "--export": "ALL"}
    options["--signal"] = f"B:USR1@{slurm.signal_seconds}"
    return options


def _shape(launch: Launch) -> dict[str, str | None]:
    slurm = launch.settings.slurm
    options: dict[str, str | None] = {"--cpus-per-task": str(slurm.cpus_per_task)}
    if slurm.gpus_per_node is not None:
        options["--gpus-per-node"] = slurm.gpus_per_node
    return options


def _log(launch: Launch, default: str) -> dict[str, str | None]:
    slurm = launch.settings.slurm
    options: dict[str, str | None] = {"--output": slurm.log_file or default}
    if slurm.error_file is not None:
        options["--error"] = slurm.error_file
    return options


def log_folder(outdir: Path) -> Path:
    """Returns the folder of the jobs' logs."""
    return outdir / "logs"


def _log_folder(launch: Launch) -> str:
    """Returns the log folder with ``%`` escaped, which starts a placeholder in Slurm's file name patterns."""
    return str(log_folder(launch.outdir)).replace("%", "%%")


def _script(summary: str, launch: Launch, options: Mapping[str, str | None], body: Sequence[str]) -> Script:
    written = [name if value is None else f"{name}={value}" for name, value in options.items()]
    written += launch.settings.slurm.sbatch_args
    inside = [text for text in written if _PLAIN.fullmatch(text)]
    head = [
        "#!/bin/bash",
        f"# {summary} Written by packtok {__version__}.",
        *(f"#SBATCH {text}" for text in inside),
        "",
        _template("signals"),
        *_path_lines(launch.settings.slurm.slurm_bin_dir),
        *_environment_lines(launch.settings.environment),
        "",
    ]
    return Script(
        text="\n".join(head) + "\n".join(body),
        options=tuple(text.partition("=")[0] for text in inside),
        arguments=tuple(text for text in written if not _PLAIN.fullmatch(text)),
    )


def _path_lines(slurm_bin_dir: str | None) -> list[str]:
    # At the end of PATH, because the folder, such as /usr/bin, may contain other programs.
    return [] if slurm_bin_dir is None else [f'PATH="$PATH":{shlex.quote(slurm_bin_dir)}']


def _environment_lines(environment: Environment) -> list[str]:
    lines = []
    if environment.modules:
        names = " ".join(shlex.quote(name) for name in environment.modules)
        lines += [_template("module_command").rstrip(), f"module load {names} || exit 1"]
    if environment.conda_env is not None:
        lines.append('eval "$("${CONDA_EXE:-conda}" shell.bash hook)" || exit 1')
        lines.append(f"conda activate {shlex.quote(environment.conda_env)} || exit 1")
    if environment.venv is not None:
        lines.append("# shellcheck source=/dev/null")
        lines.append(f". {shlex.quote(f'{environment.venv}/bin/activate')} || exit 1")
    return lines


def _program(launch: Launch, name: Literal["packtok", "ray"] = "packtok") -> str:
    environment = launch.settings.environment
    if environment.singularity_image is not None:
        runtime = '"$(command -v singularity || command -v apptainer || echo singularity)"'
        return f"{runtime} exec {shlex.quote(environment.singularity_image)} {name}"
    if environment.conda_env is not None or environment.venv is not None:
        return name
    module = {"packtok": "packtok", "ray": "ray.scripts.scripts"}[name]
    return f"{shlex.quote(launch.python)} -m {module}"


def _pack_command(launch: Launch) -> str:
    return " ".join(
        launch.task_command('"$outdir"', '"$1"', '"${SLURM_CPUS_PER_TASK:-1}"', quote=shlex.quote)
    )


def _join_command(launch: Launch) -> str:
    command = " ".join(launch.join_command('"$outdir"', quote=shlex.quote))
    return f'run interruptible "${{packtok[@]}}" {command}'


def _run_functions(launch: Launch) -> str:
    return _filled("run", outdir=shlex.quote(str(launch.outdir)), program=_program(launch))


def _requeue_function(launch: Launch, job: str) -> str:
    return _filled(
        "settle",
        job=job,
        max_restarts=launch.settings.slurm.max_restarts,
    )


def _template(name: str) -> str:
    """Returns the text of a template, without its shellcheck line."""
    text = (_TEMPLATES / f"{name}.sh").read_text(encoding="utf-8")
    return text.partition("\n")[2]


def _filled(name: str, **values: object) -> str:
    """Returns a template with each ``@name@`` replaced, in one pass, so that values are not expanded."""
    return re.sub(r"@(\w+)@", lambda match: str(values[match[1]]), _template(name))
