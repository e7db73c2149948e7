"""The text of submission scripts: what Slurm is told, what a job prepares, what it does when it is stopped.

Whatever comes from the user stands in a script shell-quoted, in a directive only if nobody could read it in
two ways, and otherwise on the command line of sbatch.
"""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from packtok import __version__
from packtok.launch.settings import Environment, LaunchSettings

# What sbatch takes literally in a directive: no white space, quotes, backslashes or comment signs.
_PLAIN = re.compile(r"[A-Za-z0-9_./:=,@%+&|*()\[\]^~-]*")


class Request(BaseModel):
    """What is to be packed, and by which jobs."""

    model_config = ConfigDict(strict=True, frozen=True)

    output: str
    num_shards: int
    pack_arguments: tuple[str, ...]
    """Those of `packtok pack`, without the output and the shard."""
    join_arguments: tuple[str, ...]
    """Those of `packtok join` behind the folder and the output."""
    working_folder: str
    python: str
    """The interpreter that has packtok, for jobs whose environment does not bring their own."""
    settings: LaunchSettings

    def request(self) -> dict[str, Any]:
        """These fields alone, of what is more than a request."""
        return {name: getattr(self, name) for name in Request.model_fields}


class Launch(Request):
    """A request and the folder of its shards."""

    outdir: Path

    @property
    def has_num_cpus(self) -> bool:
        """Whether the request itself says how many threads a task has."""
        return any(argument.startswith("--num-cpus=") for argument in self.pack_arguments)


@dataclass(frozen=True)
class Script:
    """A script, and what sbatch needs besides."""

    text: str
    given: tuple[str, ...]
    """The options that the script itself gives."""
    arguments: tuple[str, ...]
    """The options that a directive could not hold."""


def array_script(launch: Launch) -> Script:
    """One task of a job array packs the shard that has its number."""
    options = _where(launch) | _shape(launch) | {"--nodes": "1", "--ntasks": "1"}
    options |= _log(launch, f"{_log_folder(launch)}/%A_%a.out")
    body = [
        _run_functions(launch),
        _filled(_PACK_SHARD, pack=_pack_command(launch), num_shards=launch.num_shards),
        # The last task of an array has the array's own number, which alone would stand for all of its tasks.
        _requeue_function(launch, '"${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"'),
        _ARRAY_TASK,
    ]
    return _script("Packs one shard in each task of a job array.", launch, options, body)


def srun_script(launch: Launch, shards: Sequence[int]) -> Script:
    """One job of several nodes: srun starts the tasks, which share ``shards``; then they are joined."""
    nodes = launch.settings.slurm.nodes or 1
    options = _where(launch) | _shape(launch) | {"--nodes": str(nodes), "--ntasks-per-node": "1"}
    options |= _log(launch, f"{_log_folder(launch)}/%j.out")
    join = _join_command(launch) if launch.settings.slurm.join != "none" else "true"
    body = [
        _run_functions(launch),
        _filled(_PACK_SHARD, pack=_pack_command(launch), num_shards=launch.num_shards),
        _filled(_PACK_MY_SHARDS, shards=_braces(shards)),
        _requeue_function(launch, '"$SLURM_JOB_ID"'),
        _filled(_SRUN, log=shlex.quote(f"{_log_folder(launch)}/%j_%t.out"), join=join),
    ]
    return _script("Packs the shards in the tasks of one job, then joins them.", launch, options, body)


def ray_script(launch: Launch) -> Script:
    """One job of several nodes that are a Ray cluster as long as it runs; what is missing is packed on it."""
    nodes = launch.settings.slurm.nodes or 1
    options = _where(launch) | _shape(launch) | {"--nodes": str(nodes), "--ntasks-per-node": "1"}
    options |= _log(launch, f"{_log_folder(launch)}/%j.out")
    body = [
        _run_functions(launch),
        _requeue_function(launch, '"$SLURM_JOB_ID"'),
        _filled(_RAY, ray=_program(launch, "ray"), logs=shlex.quote(str(log_folder(launch.outdir)))),
    ]
    return _script("Packs the shards on a Ray cluster of its own, then joins them.", launch, options, body)


def join_script(launch: Launch) -> Script:
    """Joins the shards when all tasks have ended; which are missing then is said by `packtok join`."""
    options = _where(launch) | {"--nodes": "1", "--ntasks": "1", "--cpus-per-task": "1"}
    options["--job-name"] = f"{launch.settings.slurm.job_name}-join"
    options["--output"] = f"{_log_folder(launch)}/join_%j.out"
    body = [
        _run_functions(launch),
        _requeue_function(launch, '"$SLURM_JOB_ID"'),
        _filled(_JOIN, join=_join_command(launch)),
    ]
    return _script("Joins the shards when the tasks that pack them have ended.", launch, options, body)


def compact(shards: Iterable[int]) -> str:
    """Numbers in order as Slurm takes them: ``3,7-9``."""
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs(shards))


def runs(shards: Iterable[int]) -> list[tuple[int, int]]:
    """The first and last of each run of numbers that follow one another."""
    found: list[tuple[int, int]] = []
    for shard in sorted(shards):
        if found and found[-1][1] == shard - 1:
            found[-1] = (found[-1][0], shard)
        else:
            found.append((shard, shard))
    return found


def _braces(shards: Sequence[int]) -> str:
    """Numbers as bash expands them, so that ten thousand take little room."""
    return " ".join(str(first) if first == last else f"{{{first}..{last}}}" for first, last in runs(shards))


def _where(launch: Launch) -> dict[str, str | None]:
    """The options that every job has, and those that say where it may run."""
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
    """Where the jobs' logs are."""
    return outdir / "logs"


def _log_folder(launch: Launch) -> str:
    """The same as Slurm's patterns have it, in which % begins a number."""
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
        _SIGNALS,
        *_environment_lines(launch.settings.environment),
        "",
    ]
    return Script(
        text="\n".join(head) + "\n".join(body),
        given=tuple(text.partition("=")[0] for text in inside),
        arguments=tuple(text for text in written if not _PLAIN.fullmatch(text)),
    )


def _environment_lines(environment: Environment) -> list[str]:
    lines = []
    if environment.modules:
        names = " ".join(shlex.quote(name) for name in environment.modules)
        lines += [_MODULE_COMMAND, f"module load {names} || exit 1"]
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
    # A shard that is finished is left as it is then, whatever the config says of the file as a whole.
    rest = ['--output="$outdir"', "--existing=error", '--shard="$1"']
    quoted = [*map(shlex.quote, ["pack", *launch.pack_arguments]), *rest]
    if not launch.has_num_cpus:
        # Without it packtok takes all cores that it sees, which on many clusters are those of the whole node.
        quoted.append('--num-cpus="${SLURM_CPUS_PER_TASK:-1}"')
    return " ".join(quoted)


def _join_command(launch: Launch) -> str:
    rest = [f"--output={launch.output}", *launch.join_arguments]
    return f'run interruptible "${{packtok[@]}}" join "$outdir" {shlex.join(rest)}'


def _run_functions(launch: Launch) -> str:
    return _filled(_RUN, outdir=shlex.quote(str(launch.outdir)), program=_program(launch))


def _requeue_function(launch: Launch, job: str) -> str:
    return _filled(
        _REQUEUE,
        job=job,
        max_restarts=launch.settings.slurm.max_restarts,
    )


def _filled(template: str, **values: object) -> str:
    """``template`` with each ``@name@`` replaced, at once, so that no value is taken for another's place."""
    return re.sub(r"@(\w+)@", lambda found: str(values[found[1]]), template)


_SIGNALS = """\
# Why packtok was asked to stop: "time" before the time limit, "end" if Slurm ends the job.
stopping=''
worker=''
stop_signal=INT
stop() {
  stopping=$1
  if [ -n "$worker" ]; then kill -s "$stop_signal" "$worker" 2>/dev/null; fi
}
trap 'stop time' USR1
trap 'stop end' TERM
"""

_MODULE_COMMAND = """\
# Not every site defines the command for scripts as well.
if ! type module >/dev/null 2>&1; then
  for init in "${LMOD_PKG:-/usr/share/lmod/lmod}" "${MODULESHOME:-/usr/share/modules}"; do
    # shellcheck source=/dev/null
    if [ -r "$init/init/bash" ]; then . "$init/init/bash"; break; fi
  done
fi"""

_RUN = """\
set -u

outdir=@outdir@
packtok=(@program@)

# Becomes a command that heeds SIGINT, which bash switches off behind &, and not SIGUSR1, which is for us.
interruptible() {
  trap - INT
  trap '' USR1
  exec "$@"
}

# Runs a command and returns its exit code. A signal to this script stops the command, and not this waiting.
run() {
  local status
  "$@" &
  worker=$!
  if [ -n "$stopping" ]; then stop "$stopping"; fi
  wait "$worker"
  status=$?
  while kill -0 "$worker" 2>/dev/null; do
    wait "$worker"
    status=$?
  done
  worker=''
  return "$status"
}
"""

_PACK_SHARD = """\
# Packs shard $1.
pack_shard() {
  echo "packtok: shard $1 of @num_shards@, $(uname -n), $(date -u +%FT%TZ), restart ${SLURM_RESTART_COUNT:-0}"
  run interruptible "${packtok[@]}" @pack@
}
"""

_REQUEUE = """\
# What follows from exit code $1: a job that was stopped for its time, or that lost packtok to a signal such
# as the out-of-memory killer's, goes back into the queue, but not for ever. Other errors would come again.
settle() {
  local why restarts=${SLURM_RESTART_COUNT:-0}
  if [ "$1" -eq 0 ]; then exit 0; fi
  case $stopping in
    time) why='the time limit is near' ;;
    end) exit "$1" ;;
    *)
      # 130 is packtok's own word for an interruption by somebody else.
      if [ "$1" -le 128 ] || [ "$1" -eq 130 ]; then exit "$1"; fi
      why="packtok was killed by signal $(($1 - 128))"
      ;;
  esac
  if [ "$restarts" -ge @max_restarts@ ]; then
    echo "packtok: $why, after $restarts restarts; to resume, run: packtok retry $outdir" >&2
    exit "$1"
  fi
  echo "packtok: $why; requeueing the job" >&2
  trap - TERM
  # Slurm ends this script then.
  if timeout 60 scontrol requeue @job@; then sleep 60; fi
  exit "$1"
}
"""

_ARRAY_TASK = """\
# An array has no numbers beyond a limit of the cluster's; shards above it are counted from here.
pack_shard "$((SLURM_ARRAY_TASK_ID + ${PACKTOK_FIRST_SHARD:-0}))"
settle $?
"""

_PACK_MY_SHARDS = """\
# Packs every n-th of the shards in one of n tasks, and returns the highest exit code.
pack_my_shards() {
  local shards=(@shards@) highest=0 i
  for ((i = SLURM_PROCID; i < ${#shards[@]}; i += SLURM_NTASKS)); do
    if [ -n "$stopping" ]; then return 130; fi
    pack_shard "${shards[i]}"
    local status=$?
    if [ "$status" -gt "$highest" ]; then highest=$status; fi
  done
  return "$highest"
}
"""

_SRUN = """\
tasks=$(declare -p outdir packtok; declare -f stop interruptible run pack_shard pack_my_shards)
tasks+='
stopping="" worker="" stop_signal=INT
trap "stop time" USR1
set -u
pack_my_shards'
# srun takes SIGINT for itself, and hands on SIGUSR1.
stop_signal=USR1
# Some versions give the tasks of a step one CPU each unless they are told.
export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"
run srun --export=ALL --kill-on-bad-exit=0 --open-mode=append --output=@log@ bash -c "$tasks"
status=$?
if [ "$status" -gt 128 ] || [ -n "$stopping" ]; then settle "$status"; fi
# Of shards that are missing it says which.
stop_signal=INT
@join@
settle $?
"""

_RAY = """\
# Ray on the nodes of this job: the head here, the others all at once by srun. It ends with this script.
ray=(@ray@)
logs=@logs@
head_log="$logs/ray_head_$SLURM_JOB_ID.out"
# Whoever can talk to Ray can run programs as this user, so it is told a secret that it asks for.
RAY_AUTH_TOKEN=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN RAY_USAGE_STATS_ENABLED=0
trap 'kill $(jobs -p) 2>/dev/null' EXIT

is_taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
# Above the ports of Ray's own workers, and not those of this job's Ray before a restart, which may be ending.
restart=${SLURM_RESTART_COUNT:-0}
port=$((20500 + (SLURM_JOB_ID * 7 + restart) % 10000))
while is_taken "$port"; do port=$((port + 1)); done

# Documents do not go through Ray, so that it needs no memory to share them.
node=(--num-cpus="$SLURM_CPUS_PER_TASK" --object-store-memory=80000000 --block)
: >"$head_log"
"${ray[@]}" start --head --port="$port" --include-dashboard=false --disable-usage-stats \
  --temp-dir="/tmp/ray-$SLURM_JOB_ID-$restart" "${node[@]}" >>"$head_log" 2>&1 </dev/null &
head=$!
address=''
for ((i = 0; i < 600; i++)); do
  address=$(sed -n 's/.*Local node IP: *//p' "$head_log" | tr -cd '0-9a-fA-F.:')
  if [ -n "$address" ] && is_taken "$port"; then break; fi
  address=''
  if [ -n "$stopping" ] || ! kill -0 "$head" 2>/dev/null; then break; fi
  sleep 0.2
done
if [ -z "$address" ]; then
  echo "packtok: Ray did not start; see $head_log" >&2
  settle 1
fi
export RAY_ADDRESS="$address:$port"
if [ "$SLURM_JOB_NUM_NODES" -gt 1 ]; then
  others=$((SLURM_JOB_NUM_NODES - 1))
  srun --export=ALL --nodes="$others" --ntasks="$others" --exclude="$SLURMD_NODENAME" --kill-on-bad-exit=0 \
    --open-mode=append --output="${logs//%/%%}/ray_nodes_%j.out" \
    "${ray[@]}" start --address="$RAY_ADDRESS" --disable-usage-stats "${node[@]}" </dev/null &
fi
# It waits for nobody: a node that comes later gets what is left to do then.
run interruptible "${packtok[@]}" retry "$outdir"
settle $?
"""

_JOIN = """\
@join@
settle $?
"""
