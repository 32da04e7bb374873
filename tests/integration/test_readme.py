"""The pages that people read: their examples run, their links lead somewhere, their tables say what the code says."""

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from app.api.problems import HTTP_CODES, TABLE
from app.main import ROUTES
from app.metrics import Metrics
from app.settings import Settings
from core import DetectorConfig
from tests.app.test_cli_serve import serving

ROOT = Path(__file__).parents[2]
PAGES = {
    path: path.read_text()
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))
}
README, API, CONFIGURATION, METRICS = (
    PAGES[ROOT / name] for name in ("README.md", "docs/api.md", "docs/configuration.md", "docs/metrics.md")
)
EXAMPLES = re.findall(r"^```sh\n(.*?)^```", "".join(PAGES.values()), re.MULTILINE | re.DOTALL)
SAID = [json.loads(text) for page in (README, API) for text in re.findall(r"^```json\n(.*?)^```", page, re.M | re.S)]
ADDRESS = "localhost:8000"


def rows(page: str, heading: str) -> dict[str, list[str]]:
    """The table under a heading, by the code in its first cells; escaped pipes do not occur."""
    section = page.split(f"# {heading}\n", 1)[1].split("\n#", 1)[0]
    lines = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `")]
    return {name: [cell.strip() for cell in cells[1:]] for cells in lines for name in re.findall(r"`(\w+)", cells[0])}


def commands() -> list[str]:
    """Every curl command of the examples, its continued lines joined."""
    return [line for block in EXAMPLES for line in block.replace("\\\n", " ").splitlines() if line.startswith("curl")]


def test_the_examples_run_in_order(tmp_path: Path) -> None:
    answers = []
    with serving("--store", f"sqlite:///{tmp_path}/readme.db") as (_, address):
        host = address.removeprefix("http://").rstrip("/")
        for command in commands():
            strict = command.replace(ADDRESS, host).replace("curl -s", "curl --fail-with-body -s", 1)
            done = subprocess.run(["bash", "-c", strict], cwd=tmp_path, capture_output=True, timeout=60)
            assert done.returncode == 0, (command, done.stdout, done.stderr)
            answers.append(done.stdout.decode())
    for answer, said in zip(answers, SAID[:3], strict=False):
        assert_said(json.loads(answer), said)
    assert json.loads(answers[3]) == SAID[3]

    def answer_to(*parts: str) -> dict[str, Any]:
        (place,) = (place for place, command in enumerate(commands()) if all(part in command for part in parts))
        return json.loads(answers[place])

    assert answer_to("/feedback?stream=web-1")["outcomes"]["applied"] == 2
    assert answer_to("learn=false", "web-1")["samples_needed"] == 30
    assert "itan_samples_total" in answers[commands().index("curl -s localhost:8000/metrics")]
    assert "explanation_note" in answer_to("explain=true")
    assert answer_to("/streams/shop")["config"]["features"][1]["role"] == "context"
    assert answer_to("stream=cpu")["stream"] == "cpu"
    ingested = answer_to("source=web")
    assert (ingested["taken"], ingested["refused"]) == (1, 0)
    assert answer_to("localhost:8000/ingest -H")["taken"] == 2
    assert answer_to("/templates/plants")["template"] == "plants"
    assert answer_to("-X PATCH")["config"]["expected_anomaly_rate"] == 0.001
    assert answer_to("details=true")["streams"][0]["readable"]
    assert answer_to("/history?")["seq"] == [1]
    assert answer_to("/samples/1")["values"] == {"cpu": 0.31, "latency_ms": 60}
    assert answer_to("/review?")["samples"] == []


def assert_said(answer: dict[str, Any], said: dict[str, Any]) -> None:
    """Hold what a page says of an answer to it: numbers rounded, and of columns the end."""
    for name, value in said.items():
        given = answer[name][-len(value) :] if isinstance(value, list) else answer[name]
        numbers = isinstance(value, float) or (isinstance(value, list) and isinstance(value[0], float))
        assert given == (pytest.approx(value, abs=0.05) if numbers else value), name


def test_every_link_leads_to_a_file_and_a_heading() -> None:
    for page, text in PAGES.items():
        for path, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", text):
            target = (page.parent / path).resolve() if path else page
            assert target.exists(), (page.name, path)
            assert not anchor or anchor in anchors(PAGES[target]), (page.name, path, anchor)


def anchors(text: str) -> set[str]:
    """The names by which a page's headings can be linked to."""
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_setting_is_listed_with_its_default_and_meaning() -> None:
    listed = rows(CONFIGURATION, "Settings of the service")
    expected = {f"ITAN_{name.upper()}": field.get_default() for name, field in Settings.model_fields.items()}
    assert list(listed) == list(expected)
    for name, default in expected.items():
        said, meaning = listed[name]
        assert said.strip("`") == plain(default), name
        described = Settings.model_fields[name.removeprefix("ITAN_").lower()].description
        assert meaning.replace("`", "").removesuffix(" ([below](#stores))") == str(described).replace("`", ""), name


def plain(default: object) -> str:
    """A default as the page writes it."""
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, int | float):
        return f"{default:g}" if default < 1e6 else f"{default:.0f}"
    return default if isinstance(default, str) else ""


def test_every_problem_code_is_listed_with_its_status() -> None:
    listed = {code: int(cells[0]) for code, cells in rows(API, "Errors").items()}
    expected = {code: status for status, code, _ in TABLE.values()} | {
        code: status for status, code in HTTP_CODES.items()
    }
    assert listed == expected


def test_every_route_is_listed() -> None:
    served = {(route.method, re.sub(r"{\w+}", "*", route.path)) for route in ROUTES}
    page = {(method, path) for method, path in served if path == "/" or path.startswith("/ui/")}
    assert set(routes_listed()) | page | {("POST", "/ingest/otlp/v1/metrics")} == served | {("GET", "/docs")}


def routes_listed() -> Iterator[tuple[str, str]]:
    """Methods and paths of the table, with * for names; several methods may share a path, ... is the path before."""
    section = API.split("# Routes\n", 1)[1].split("\n#", 1)[0]
    for row in re.findall(r"^\| (`.*?`) \| ", section, re.MULTILINE):
        methods: list[str] = []
        stem, used = "", True
        for method, path in re.findall(r"`([A-Z]*) ?([/.][^?`]*)?[^`]*`", row):
            if method:
                methods = [*([] if used else methods), method]
                used = False
            if path:
                whole = path.replace("...", stem)
                stem = stem if path.startswith("...") else whole.rpartition("/")[0]
                used = True
                yield from ((given, re.sub(r"/[A-Z]+\b", "/*", whole)) for given in methods)


def test_every_metric_is_listed() -> None:
    exported = {family.name for family in Metrics("0").registry.collect()}
    assert {name.removesuffix("_total") for name in rows(METRICS, "All metrics")} == exported


def test_every_field_of_a_config_is_listed() -> None:
    assert set(rows(CONFIGURATION, "Configuring a stream")) | {"profile"} >= {f.name for f in fields(DetectorConfig)}


@pytest.mark.parametrize("profile", ["default", "paper"])
def test_the_defaults_of_a_config_are_as_listed(profile: str) -> None:
    config = DetectorConfig(n_features=8, profile=profile)
    cell = {"default": 0, "paper": 1}[profile]
    listed = rows(CONFIGURATION, "Configuring a stream")
    for name in ("learn_from", "scaling", "family", "mixture", "threshold"):
        assert f'`"{getattr(config, name)}"`' in listed[name][cell], name
    for name in ("prior_count", "max_nodes"):
        assert listed[name][cell] == f"{getattr(config, name):g}", name
