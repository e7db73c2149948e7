"""Plots the losses of one or more runs over their steps; needs matplotlib (`pip install 'packtok[plot]'`)."""

from pathlib import Path
from typing import Annotated

import matplotlib as mpl
import typer

import losses

mpl.use("Agg")

from matplotlib import pyplot as plt

_LINES = {"train": "-", "test": "o--"}


def main(
    files: Annotated[list[Path], typer.Argument(help="Files losses.csv.")],
    output: Annotated[Path, typer.Option(help="A .png, .svg or .pdf.")] = Path("losses.png"),
) -> None:
    """Plots the losses in FILES into one picture."""
    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    for path in files:
        rows = losses.read(path)
        for split, line in _LINES.items():
            points = [(row.step, row.loss) for row in rows if row.split == split]
            axes.plot(*zip(*points, strict=True), line, label=f"{path.parent.name} {split}", alpha=0.7)
    axes.set(xlabel="step", ylabel="loss per token (nats)")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(output, dpi=150)
    print(output)


if __name__ == "__main__":
    typer.run(main)
