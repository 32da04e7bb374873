"""deploy/grafana: the dashboards are those that their builder writes, and readable by somebody who is new to them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.deploy.dashboards import DASHBOARDS, FOLDER, asked, panels
from tests.deploy.prometheus import CONFIG


def test_the_committed_dashboards_are_current(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(FOLDER / "build.py"), str(tmp_path)], check=True)
    written = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert written == {path.name: path.read_text() for path in (FOLDER / "dashboards").iterdir()}


@pytest.mark.parametrize("name", DASHBOARDS)
def test_each_panel_says_what_it_shows_and_in_which_unit(name: str) -> None:
    shown = panels(name)
    assert len({panel["id"] for panel in shown}) == len(shown) > 20
    for panel in shown:
        assert panel["title"]
        assert panel["description"].endswith(".")
        assert panel["type"] == "heatmap" or panel["fieldConfig"]["defaults"]["unit"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert all(target["legendFormat"] for target in panel["targets"])


@pytest.mark.parametrize("name", DASHBOARDS)
def test_panels_fill_the_grid_and_none_covers_another(name: str) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARDS[name]["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells


def test_the_dashboards_lead_to_each_other() -> None:
    uids = {dashboard["uid"] for dashboard in DASHBOARDS.values()}
    links = {link["url"].removeprefix("/d/") for dashboard in DASHBOARDS.values() for link in dashboard["links"]}
    assert links == uids


def test_only_known_variables_are_used() -> None:
    variables = {v["name"] for d in DASHBOARDS.values() for v in d["templating"]["list"]}
    assert variables == {"datasource", "instance", "stream"}
    assert asked({"__rate_interval": "1m", "instance": ".*", "stream": "a"})


def test_what_is_provisioned_fits_together() -> None:
    yaml = YAML(typ="safe")
    [source] = yaml.load(FOLDER / "provisioning" / "datasources" / "itan.yml")["datasources"]
    assert source["isDefault"]
    assert source["type"] == "prometheus"
    # else rates are taken over windows with a single sample in them
    assert source["jsonData"]["timeInterval"] == yaml.load(CONFIG)["global"]["scrape_interval"]
    [provider] = yaml.load(FOLDER / "provisioning" / "dashboards" / "itan.yml")["providers"]
    assert re.fullmatch(r"/[\w/]+/dashboards", provider["options"]["path"])
