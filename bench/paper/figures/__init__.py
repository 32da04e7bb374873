"""The paper's figures, drawn again, and the regrets beside their bounds, as PNG."""

from collections.abc import Sequence
from pathlib import Path

from bench.paper.experiments import Experiment
from bench.paper.figures import curves, densities, regrets, samples, splits


def draw_all(experiments: Sequence[Experiment], folder: Path) -> list[Path]:
    """Draw every figure into a folder, which is made if needed; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    return [
        samples.draw(folder),
        splits.draw(folder),
        densities.draw(folder),
        curves.draw_losses(experiments, folder),
        curves.draw_rocs(experiments, folder),
        regrets.draw(folder),
    ]
