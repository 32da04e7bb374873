"""Prometheus as deploy/ configures it, but soon, and with targets of this machine."""

import json
import math
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, Self

from ruamel.yaml import YAML

from tests.processes import find_free_port, find_program, running

FOLDER = Path(__file__).parents[2] / "deploy" / "prometheus"
CONFIG = FOLDER / "prometheus.yml"
RULES = sorted((FOLDER / "rules").glob("*.yml"))
DOCS = FOLDER.parents[1] / "docs"
SOON = "500ms"


def rules() -> list[dict[str, Any]]:
    """Give all rules, recording and alerting."""
    yaml = YAML(typ="safe")
    return [rule for path in RULES for group in yaml.load(path)["groups"] for rule in group["rules"]]


class Prometheus:
    """A running server that scrapes the targets of each job, and may tell an Alertmanager."""

    def __init__(self, targets: dict[str, list[str]], folder: Path, *, alertmanager: str = "") -> None:
        self._program = find_program("prometheus")
        self.alertmanager = alertmanager
        self._address = f"127.0.0.1:{find_free_port()}"
        self.url = f"http://{self._address}"
        self._folder = folder
        YAML(typ="safe").dump(self._config(targets, alertmanager), folder / "prometheus.yml")

    def _config(self, targets: dict[str, list[str]], alertmanager: str) -> dict[str, Any]:
        config: dict[str, Any] = YAML(typ="safe").load(CONFIG)
        config["global"] |= {"scrape_interval": SOON, "scrape_timeout": SOON, "evaluation_interval": SOON}
        config["rule_files"] = [str(CONFIG.parent / pattern) for pattern in config["rule_files"]]
        config["global"]["external_labels"]["docs"] = f"{self.url}/consoles"
        config["alerting"]["alertmanagers"] = [
            {"static_configs": [{"targets": [alertmanager] if alertmanager else []}]}
        ]
        targets = targets | {"prometheus": [self._address]}
        config["scrape_configs"] = [
            {"job_name": job["job_name"], "static_configs": [{"targets": targets[job["job_name"]]}]}
            for job in config["scrape_configs"]
            if job["job_name"] in targets
        ]
        return config

    def __enter__(self) -> Self:
        flags = [f"--storage.tsdb.path={self._folder / 'data'}", f"--web.listen-address={self._address}"]
        # an alert that is sent before Alertmanager is found is lost until it is sent again
        flags += [f"--web.console.templates={DOCS}", "--rules.alert.resend-delay=1s"]
        command = [self._program, f"--config.file={self._folder / 'prometheus.yml'}", "--log.level=warn", *flags]
        self._running = running(command, self._folder / "prometheus.txt", self._is_ready)
        self._running.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._running.__exit__(*raised)

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{self._address}/-/ready") as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def ask(self, what: str, **given: str) -> Any:
        """Ask the HTTP API; an error fails."""
        url = f"http://{self._address}/api/v1/{what}?{urllib.parse.urlencode(given)}"
        try:
            with urllib.request.urlopen(url) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{given}: {error.read().decode()}") from error

    def query(self, expr: str) -> list[dict[str, str]]:
        """Give the labels of all series of an expression that have a number now."""
        found = self.ask("query", query=expr)["result"]
        return [series["metric"] for series in found if math.isfinite(float(series["value"][1]))]
