"""Read docker-compose.yml as Docker does, but for networks and images."""

import re
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "docker-compose.yml"
DEFAULTED = re.compile(r"\$\{\w+:-([^{}]*)\}")


def read_services() -> dict[str, Any]:
    """Give the services; variables have their defaults, as where nothing is set."""
    text, count = COMPOSE.read_text(), 1
    while count:  # from the inside out: a default may have another one in it
        text, count = DEFAULTED.subn(r"\1", text)
    services: dict[str, Any] = YAML(typ="safe").load(text)["services"]
    return services


def mounts(service: dict[str, Any]) -> dict[str, Path]:
    """Give the folders of this repository that a service sees, by the place where it sees them."""
    volumes = (volume.split(":") for volume in service.get("volumes", []))
    return {words[1]: ROOT / words[0] for words in volumes if words[0].startswith("./")}


def environment(service: dict[str, Any]) -> dict[str, str]:
    """Give the environment as a process gets it."""
    return {name: "" if value is None else str(value) for name, value in service.get("environment", {}).items()}
