"""A real Slurm cluster of several nodes on this machine, for tests that kill nodes, controllers and jobs.

Every node is a `slurmd` in its own namespaces, with its own host name. Needs root and Debian's packages
slurmctld, slurmd, slurm-client and munge. Installs nothing and does not touch another cluster: everything it
reads and writes is in one folder, which `SLURM_CONF` names.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from processes import wait_for

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "munged", "unshare")
NODE_CPUS, NODE_MEGABYTES = 4, 4096
HURRY_AGAIN_SECONDS = 10
# Longer than a cancelled job takes to end.
STRAY_SECONDS = 15
# The task ids of an array are below this limit.
MAX_ARRAY_SIZE = 12
_SBIN = "/usr/local/sbin:/usr/sbin:/sbin"
_IN_ITS_OWN_NAMESPACES = """
hostname "$1" && mount --bind "$2/hosts" /etc/hosts && exec slurmd -D -N "$1" -f "$2/slurm.conf"
"""
_CONFIG = """
ClusterName=packtok
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=64
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,sched_min_interval=50000,batch_sched_delay=0,bf_interval=1
MinJobAge=3600
MaxArraySize={max_array_size}
KillWait=3
CompleteWait=0
InactiveLimit=0
SlurmctldTimeout=10
MessageTimeout=30
SlurmdTimeout=15
ReturnToService=2
PropagateResourceLimits=NONE
"""


def missing() -> str | None:
    """Returns what this machine lacks for the cluster, or ``None`` if it can be started."""
    if os.geteuid() != 0:
        return "a cluster of one's own needs root"
    absent = [name for name in PROGRAMS if shutil.which(name, path=_path()) is None]
    return f"not installed: {', '.join(absent)}" if absent else None


def _path() -> str:
    return f"{os.environ['PATH']}:{_SBIN}"


class SlurmCluster:
    """Nodes n1, n2, … and their controller, each a process that a test can kill."""

    def __init__(self, folder: Path, *, num_nodes: int = 4) -> None:
        self.folder = folder
        self.nodes = [f"n{i}" for i in range(1, num_nodes + 1)]
        self.env = {
            **{name: text for name, text in os.environ.items() if not name.startswith(("SLURM_", "SBATCH_"))},
            "PATH": _path(),
            "SLURM_CONF": str(folder / "slurm.conf"),
            "LC_ALL": "C.UTF-8",
        }
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._hurried: dict[str, float] = {}
        self._has_forgotten = False

    def start(self) -> None:
        """Starts everything and waits until all nodes are idle."""
        for name in ("state", *(f"spool/{node}" for node in self.nodes)):
            (self.folder / name).mkdir(parents=True)
        self._write_config()
        self._start_munge()
        self.start_controller()
        for node in self.nodes:
            self.start_node(node)

    def _write_config(self) -> None:
        port = _free_ports(len(self.nodes) + 1)
        host = socket.gethostname().split(".")[0]
        lines = [
            _CONFIG.format(folder=self.folder, host=host, port=port, max_array_size=MAX_ARRAY_SIZE).strip()
        ]
        hosts = [Path("/etc/hosts").read_text(encoding="utf-8")]
        for i, node in enumerate(self.nodes, 1):
            address = f"127.0.1.{10 + i}"
            hosts.append(f"{address} {node}")
            lines.append(
                f"NodeName={node} NodeHostname={node} NodeAddr={address} Port={port + i} CPUs={NODE_CPUS} "
                f"RealMemory={NODE_MEGABYTES} State=UNKNOWN"
            )
        lines.append(
            f"PartitionName=all Nodes={','.join(self.nodes)} Default=YES MaxTime=INFINITE LLN=YES State=UP"
        )
        (self.folder / "hosts").write_text("\n".join(hosts) + "\n", encoding="utf-8")
        (self.folder / "slurm.conf").write_text("\n".join(lines) + "\n", encoding="utf-8")
        # Slurm 23.11 and later read this file, and would otherwise look for cgroups.
        version = subprocess.run(["slurmd", "-V"], env=self.env, capture_output=True, text=True, check=True)
        match_ = re.search(r"(\d+)\.(\d+)", version.stdout)
        if match_ and (int(match_[1]), int(match_[2])) >= (23, 11):
            (self.folder / "cgroup.conf").write_text("CgroupPlugin=disabled\n", encoding="utf-8")

    def _start_munge(self) -> None:
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        paths = [f"--{name}={self.folder / f'munge.{name}'}" for name in ("socket", "pid-file", "log-file")]
        command = ["munged", "--foreground", "--force", f"--key-file={key}", *paths]
        self._run("munged", [*command, f"--seed-file={self.folder / 'munge.seed'}"])
        wait_for(lambda: (self.folder / "munge.socket").exists(), "munged has a socket", seconds=60)

    def _run(self, name: str, command: Sequence[str]) -> None:
        with (self.folder / f"{name}.out").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                command,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def start_controller(self, *, forget: bool = False) -> None:
        """Starts the controller, with or without the saved jobs and the last job id of an earlier one."""
        for path in (self.folder / "state").glob("job_state*") if forget else ():
            path.unlink()
        self._has_forgotten |= forget
        self._run("slurmctld", ["slurmctld", "-D", "-f", self.env["SLURM_CONF"]])
        wait_for(lambda: "is UP" in self.output("scontrol", "ping"), "the controller answers", seconds=60)

    @contextlib.contextmanager
    def frozen_controller(self) -> Iterator[None]:
        """Makes the controller accept connections without responding, within the block."""
        controller = self._processes["slurmctld"]
        controller.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            controller.send_signal(signal.SIGCONT)

    def kill_controller(self) -> None:
        """Kills the controller, as a crash would, with the state it has not saved in the last seconds."""
        self._kill("slurmctld")

    def stop_controller(self) -> None:
        """Stops the controller, as an administrator would."""
        process = self._processes.pop("slurmctld")
        process.terminate()
        process.wait(20)

    def start_node(self, node: str) -> None:
        """Starts a node and waits until it accepts jobs."""
        # A network namespace would remove the node's address; the other two give it a name.
        unshare = ["unshare", "--uts", "--mount", "--propagation", "slave"]
        self._run(node, [*unshare, "sh", "-c", _IN_ITS_OWN_NAMESPACES, "sh", node, str(self.folder)])
        wait_for(lambda: self._is_up(node), f"node {node} is up", seconds=60)

    def _is_up(self, node: str) -> bool:
        state = self.output("sinfo", "-h", "-N", "-n", node, "-o", "%T").strip()
        return state in ("idle", "mixed", "allocated", "completing")

    def kill_node(self, node: str, *, jobs_live_on: bool = False, stopped: int | None = None) -> None:
        """Kills a node, like a power failure; ``jobs_live_on`` leaves the programs of its jobs running.

        The process ``stopped``, one of these programs, is stopped before and after, but not in between: a
        stopped process whose session loses its leader gets SIGHUP.
        """
        # Debian's programs are called slurmd-wlm and slurmstepd-wlm.
        doomed = [
            pid
            for pid in self.processes_of(node)
            if not jobs_live_on or _program(pid).startswith(("slurmd", "slurmstepd"))
        ]
        if stopped is not None:
            os.kill(stopped, signal.SIGCONT)
        for pid in doomed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._processes.pop(node).wait(10)
        ended = f"the processes of {node} have ended"
        wait_for(lambda: all(map(_has_ended, doomed)), ended, seconds=60, poll_seconds=0.001)
        if stopped is not None:
            os.kill(stopped, signal.SIGSTOP)

    def notice_loss(self, node: str) -> None:
        """Tells the controller that a node is down, which it would only notice after `SlurmdTimeout`."""
        self.run("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=killed by a test")

    def processes_of(self, node: str) -> list[int]:
        """Returns the processes on ``node``, including its daemons."""
        return _in_namespace_of(self._processes[node].pid)

    def run(self, *command: str, cwd: Path | None = None, timeout_seconds: float = 60) -> str:
        """Runs a program with this cluster's settings and returns its output; it must succeed."""
        done = subprocess.run(
            command,
            env=self.env,
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=timeout_seconds,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def output(self, *command: str) -> str:
        """Returns the output of a program, which may fail or time out."""
        try:
            done = subprocess.run(
                command, env=self.env, capture_output=True, text=True, timeout=60, check=False
            )
        except subprocess.TimeoutExpired:
            return ""
        return done.stdout

    def states(self, job: str) -> dict[str, str]:
        """Returns the state of each task of a job by array task id; ``N/A`` for a job without an array."""
        lines = self.output("squeue", "-h", "-r", "-t", "all", "-j", job, "-o", "%K %T").splitlines()
        return dict(line.split(" ", 1) for line in lines)

    def hurry(self, job: str) -> None:
        """Starts requeued tasks soon, which would otherwise wait for two minutes.

        Not within the same second, because a node would confuse the job with the one that it has just ended.
        """
        lines = self.output("squeue", "-h", "-r", "-t", "pending", "-j", job, "-o", "%i %r").splitlines()
        for line in lines:
            task, reason = line.split(" ", 1)
            if reason == "BeginTime" and time.monotonic() > self._hurried.get(task, 0) + HURRY_AGAIN_SECONDS:
                self._hurried[task] = time.monotonic()
                self.output("scontrol", "update", f"JobId={task}", "StartTime=now+2")

    def resume_nodes(self) -> None:
        """Resumes nodes that the controller drained because jobs unknown to it run on them."""
        for node in self.output("sinfo", "-h", "-N", "-t", "drain", "-o", "%N").split():
            self.output("scontrol", "update", f"NodeName={node}", "State=RESUME")

    def wait_until_ended(self, job: str, *, seconds: float = 150) -> dict[str, str]:
        """Waits for all tasks of a job and returns their states; requeued tasks wait two minutes."""
        running = ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "REQUEUED")

        resumed = time.monotonic()

        def ended() -> bool:
            nonlocal resumed
            self.hurry(job)
            if time.monotonic() > resumed + HURRY_AGAIN_SECONDS:
                # A restarted controller may have drained the nodes.
                resumed = time.monotonic()
                self.resume_nodes()
            states = self.states(job)
            return bool(states) and not any(state in running for state in states.values())

        def description() -> str:
            return self.output("squeue", "-h", "-r", "-t", "all", "-j", job, "-o", "%K %T %r") + self.output(
                "sinfo"
            )

        wait_for(ended, f"job {job} ends", seconds=seconds, describe=description)
        return self.states(job)

    def recover(self) -> None:
        """Ends all jobs, and waits until all nodes accept new ones.

        A node rejects a job while a step with the same job id exists. A step that a controller without its
        state does not know may stay for long, and that controller assigns the id again.
        """
        self.output("scancel", "--me")
        cancelled = time.monotonic()

        def recovered() -> bool:
            self.resume_nodes()
            steps = self._steps()
            if time.monotonic() > cancelled + STRAY_SECONDS:
                for pid in steps:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            return not steps and all(self._is_up(node) for node in self.nodes)

        wait_for(recovered, "all nodes take jobs", seconds=60)
        if self._has_forgotten:
            # A node rejects a job with a known id until a controller ends the job with that id.
            for node in [node for node in self.nodes if node in self._processes]:
                self.kill_node(node)
                self.start_node(node)
            self._has_forgotten = False

    def _steps(self) -> list[int]:
        """Returns the step daemons on all nodes."""
        running = [node for node in self.nodes if node in self._processes]
        pids = [pid for node in running for pid in self.processes_of(node)]
        return [pid for pid in pids if _program(pid).startswith("slurmstepd")]

    def stop(self) -> None:
        """Stops everything that was started, including child processes."""
        if "slurmctld" in self._processes:
            self.output("scancel", "--signal=KILL", "--full", "--me")
        for name in [name for name in self._processes if name in self.nodes]:
            for pid in _in_namespace_of(self._processes[name].pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        for name in list(self._processes):
            self._kill(name)

    def _kill(self, name: str) -> None:
        process = self._processes.pop(name)
        process.kill()
        process.wait(10)


def _in_namespace_of(pid: int) -> list[int]:
    """Returns all processes that share the host name namespace of process ``pid``."""
    space = _namespace(pid)
    assert space is not None
    assert space != _namespace(os.getpid())
    return [other for other in _all_processes() if _namespace(other) == space]


def _all_processes() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def _namespace(pid: int) -> str | None:
    try:
        return os.readlink(f"/proc/{pid}/ns/uts")
    except OSError:
        return None


def _program(pid: int) -> str:
    try:
        return Path(os.readlink(f"/proc/{pid}/exe")).name
    except OSError:
        return ""


def _has_ended(pid: int) -> bool:
    """Returns whether a process is a zombie or gone. Before, its end may still send signals to its job."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rpartition(")")[2].split()[0] in ("Z", "X")


def _free_ports(number: int) -> int:
    """Returns the first of ``number`` consecutive free ports."""
    for first in range(21000 + os.getpid() % 500 * 10, 32000, number):
        try:
            for port in range(first, first + number):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first
    raise OSError(f"there are no {number} free ports in a row")
