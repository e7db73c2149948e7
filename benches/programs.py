"""The programs to measure, and the programs that create their inputs, as commands for `cost.run`."""

import sys
from pathlib import Path

Command = list[str | Path]

_REPOSITORY = Path(__file__).resolve().parents[1]


def compiled(program: str, *arguments: str | Path) -> Command:
    """Returns the command of a program in the crate packtok-benches; builds it first if necessary."""
    manifest = _REPOSITORY / "Cargo.toml"
    build = ["cargo", "run", "--quiet", "--release", "-p", "packtok-benches", "--bin", program]
    return [*build, "--manifest-path", manifest, "--", *arguments]


def packtok_pack(corpora: list[Path], output: Path, tokenizer: str | Path, num_cpus: int) -> Command:
    """Returns the command `packtok pack` of this Python's environment."""
    command: Command = [Path(sys.executable).with_name("packtok"), "pack", "--existing", "replace", "--quiet"]
    for corpus in corpora:
        command += ["--input", corpus]
    return [*command, "--output", output, "--tokenizer", tokenizer, "--num-cpus", str(num_cpus)]
