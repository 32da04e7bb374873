"""The pages that people read: their examples run, their links lead somewhere, their tables say what the code says."""

import json
import re
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest

from app.api.problems import HTTP_CODES, TABLE
from app.metrics import Metrics
from app.settings import Settings
from core import DetectorConfig
from tests.app.test_cli_serve import serving

ROOT = Path(__file__).parents[2]
PAGES = {
    path: path.read_text()
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))
}
README = PAGES[ROOT / "README.md"]
EXAMPLES = re.findall(r"^```sh\n(.*?)^```", "".join(PAGES.values()), re.MULTILINE | re.DOTALL)
FIRST_ANSWER, ANSWER = map(json.loads, re.findall(r"^```json\n(.*?)^```", README, re.MULTILINE | re.DOTALL)[:2])
ADDRESS = "localhost:8000"


def rows(heading: str) -> dict[str, list[str]]:
    """The table under a heading, by the code in its first cells; escaped pipes do not occur."""
    section = README.split(f"# {heading}\n", 1)[1].split("\n#", 1)[0]
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
    first = json.loads(answers[1])
    assert first["score"] == pytest.approx(FIRST_ANSWER["score"], abs=0.05)
    assert first["threshold"] == pytest.approx(FIRST_ANSWER["threshold"], abs=0.05)
    assert first["severity"] == pytest.approx(FIRST_ANSWER["severity"], abs=0.05)
    rounded = {"score": 0, "threshold": 0, "severity": 0}
    assert first | rounded == FIRST_ANSWER | rounded
    assert json.loads(answers[2])["stream"] == "cpu"
    assert json.loads(answers[3]) == ANSWER
    assert json.loads(answers[4])["outcomes"]["applied"] == 2
    assert json.loads(answers[5])["samples_needed"] == 30
    assert "itan_samples_total" in answers[commands().index("curl -s localhost:8000/metrics")]
    assert "explanation_note" in answers[-11]
    assert json.loads(answers[-10])["config"]["features"][1]["role"] == "context"
    assert json.loads(answers[-7])["taken"] == 2
    assert (json.loads(answers[-8])["taken"], json.loads(answers[-8])["refused"]) == (1, 0)
    assert json.loads(answers[-6])["template"] == "plants"
    assert json.loads(answers[-4])["streams"][0]["readable"]
    assert json.loads(answers[-3])["seq"] == [1]
    assert json.loads(answers[-2])["values"] == {"cpu": 0.31, "latency_ms": 60}
    assert json.loads(answers[-1])["samples"] == []


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
    listed = rows("Settings of the service")
    expected = {f"ITAN_{name.upper()}": field.get_default() for name, field in Settings.model_fields.items()}
    assert list(listed) == list(expected)
    for name, default in expected.items():
        said, meaning = listed[name]
        assert said.strip("`") == plain(default), name
        described = Settings.model_fields[name.removeprefix("ITAN_").lower()].description
        assert meaning.replace("`", "").removesuffix(" (see below)") == str(described).replace("`", ""), name


def plain(default: object) -> str:
    """A default as the README writes it."""
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, int | float):
        return f"{default:g}" if default < 1e6 else f"{default:.0f}"
    return default if isinstance(default, str) else ""


def test_every_problem_code_is_listed_with_its_status() -> None:
    listed = {code: int(cells[0]) for code, cells in rows("Errors").items()}
    expected = {code: status for status, code, _ in TABLE.values()} | {
        code: status for status, code in HTTP_CODES.items()
    }
    assert listed == expected


def test_every_metric_is_listed() -> None:
    exported = {family.name for family in Metrics("0").registry.collect()}
    assert {name.removesuffix("_total") for name in rows("Metrics")} == exported


def test_every_field_of_a_config_is_listed() -> None:
    assert set(rows("Configuring a stream")) | {"profile"} >= {f.name for f in fields(DetectorConfig)}


@pytest.mark.parametrize("profile", ["default", "paper"])
def test_the_defaults_of_a_config_are_as_listed(profile: str) -> None:
    config = DetectorConfig(n_features=8, profile=profile)
    cell = {"default": 0, "paper": 1}[profile]
    listed = rows("Configuring a stream")
    for name in ("learn_from", "scaling", "family", "mixture", "threshold"):
        assert f'`"{getattr(config, name)}"`' in listed[name][cell], name
    for name in ("prior_count", "max_nodes"):
        assert listed[name][cell] == f"{getattr(config, name):g}", name
