"""How the figures look: colours that the colour-blind tell apart (Okabe and Ito), and modest files."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import matplotlib as mpl
from matplotlib import pyplot as plt
from PIL import Image

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

mpl.use("Agg")

BLUE: Final = "#0072B2"
ORANGE: Final = "#E69F00"
GREEN: Final = "#009E73"
VERMILION: Final = "#D55E00"
PURPLE: Final = "#CC79A7"
SKY: Final = "#56B4E9"
BLACK: Final = "#000000"
GREY: Final = "#888888"
PALE: Final = "#BBBBBB"
DOTS_PER_INCH: Final = 100
LOOK: Final[dict[Any, Any]] = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
    "figure.dpi": DOTS_PER_INCH,
}
mpl.rcParams.update(LOOK)


def label_plane(axes: "Axes") -> None:
    """Name the two features, without units: the streams are synthetic."""
    axes.set_xlabel("$x_1$")
    axes.set_ylabel("$x_2$")
    axes.set_aspect("equal")


def save(figure: "Figure", path: Path) -> Path:
    """Write a PNG of at most 256 colours and no date, so that the same figure is the same bytes."""
    figure.savefig(path, metadata={"Software": None})
    plt.close(figure)
    with Image.open(path) as image:
        small = image.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    small.save(path, optimize=True)
    return path
