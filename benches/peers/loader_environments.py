"""Python environments for the peers of `loaders.py` and `formats.py`.

They have the versions for which figures are published. Torch is installed once, in an environment that the
others use through a .pth file, because it is larger than all peers together.
"""

import subprocess
import sys
from pathlib import Path

TORCH = ("torch==2.13.0", "torchvision==0.28.0", "numpy==2.4.6")
REQUIREMENTS = {
    "modalities": ("modalities==0.5.0", "transformers==4.57.6"),
    "megatron": ("megatron-core==0.16.1",),
    "olmo": ("ai2-olmo-core==3.0.0",),
    "datatrove": ("datatrove[io]==0.10.1",),
    "litdata": ("litdata==0.2.76",),
    "mds": ("mosaicml-streaming==0.13.0",),
    "nemo": ("nemo-automodel==0.7.0",),
}


def python_of(folder: Path, peer: str) -> Path:
    """Returns the interpreter of a peer's environment."""
    return folder / peer / "bin/python"


def make_environments(folder: Path, peers: list[str]) -> None:
    """Creates the environments that ``folder`` lacks; reports and leaves out one that fails."""
    shared = environment(folder / "torch", TORCH)
    for peer in peers:
        try:
            environment(folder / peer, REQUIREMENTS[peer], shared)
        except subprocess.CalledProcessError as error:
            print(f"{peer}: {error}", file=sys.stderr)


def environment(path: Path, requirements: tuple[str, ...], shared: Path | None = None) -> Path:
    """Creates an environment and returns its package folder, which exists once everything is installed."""
    packages = path / f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    made = path / "made"
    if made.exists() and made.read_text() == " ".join(requirements):
        return packages
    subprocess.run([sys.executable, "-m", "venv", "--clear", path], check=True)
    if shared is not None:
        (packages / "torch.pth").write_text(f"{shared.resolve()}\n")
    pip = [path / "bin/python", "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, *requirements], check=True)
    made.write_text(" ".join(requirements))
    return packages
