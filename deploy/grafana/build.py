"""Write the dashboards as Grafana reads them: uv run python deploy/grafana/build.py [FOLDER]."""

import sys
from pathlib import Path

import detector
import service
from grafana_foundation_sdk.cog.encoder import JSONEncoder

FOLDER = Path(__file__).parent / "dashboards"


def main(folder: Path) -> None:
    """Write both dashboards."""
    for name, build in (("service", service.build), ("detector", detector.build)):
        text = JSONEncoder(sort_keys=True, indent=2).encode(number_panels(build().build()))
        (folder / f"{name}.json").write_text(text + "\n")


def number_panels(dashboard):
    """Give each panel an id, which links to a panel use."""
    for number, panel in enumerate(dashboard.panels, 1):
        panel.id_val = number
    return dashboard


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
