"""Build the overlays of deploy/kubernetes, and read their objects as a cluster does."""

import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tests.processes import find_program

Object = dict[str, Any]
FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"
OVERLAYS = sorted(path.name for path in (FOLDER / "overlays").iterdir())
FLEETS = ["managed-redis", "redis"]
REFERENCE = re.compile(r"\$\(([A-Z_]+)\)")
# what a pod of these tests is told of itself, and what the secrets of docs/kubernetes.md hold
POD = {"metadata.name": "itan-1", "metadata.namespace": "default"}
SECRETS = {"worker-secret": "0123456789abcdef", "redis-password": "fedcba9876543210", "store": "rediss://there:6379/0"}


@cache
def build(overlay: str) -> list[Object]:
    """Give the objects of an overlay."""
    return objects(kustomize(FOLDER / "overlays" / overlay))


def kustomize(folder: Path) -> str:
    """Build a folder as `kubectl apply -k` does."""
    done = subprocess.run([find_program("kubectl"), "kustomize", str(folder)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def objects(text: str) -> list[Object]:
    """Read the documents of a file."""
    return list(YAML(typ="safe").load_all(text))


def of_kind(objects: Iterable[Object], *kinds: str) -> list[Object]:
    return [one for one in objects if one["kind"] in kinds]


def named(objects: Iterable[Object], kind: str, name: str) -> Object:
    (found,) = (one for one in of_kind(objects, kind) if one["metadata"]["name"] == name)
    return found


def workloads(objects: Iterable[Object]) -> list[Object]:
    return of_kind(objects, "StatefulSet", "Deployment")


def pod(workload: Object) -> Object:
    """Give the pod that a workload makes."""
    made: Object = workload["spec"]["template"]["spec"]
    return made


def container(workload: Object) -> Object:
    """Give the first container of a pod; others only serve it."""
    return dict(pod(workload)["containers"][0])


def ports(workload: Object) -> set[str]:
    return {port["name"] for one in pod(workload)["containers"] for port in one["ports"]}


def selected(objects: Iterable[Object], labels: Mapping[str, str]) -> list[Object]:
    """Give the workloads whose pods have these labels."""
    return [
        one for one in workloads(objects) if labels.items() <= one["spec"]["template"]["metadata"]["labels"].items()
    ]


def environment(objects: Iterable[Object], workload: Object) -> dict[str, str]:
    """Give the environment of a container as the kubelet makes it: a variable knows only those before it."""
    given = container(workload)
    found: dict[str, str] = {}
    for source in given.get("envFrom", []):
        found |= named(objects, "ConfigMap", source["configMapRef"]["name"])["data"]
    for variable in given.get("env", []):
        value = variable.get("value") or told(variable.get("valueFrom", {}))
        found[variable["name"]] = expand(value, found)
    return found


def told(source: Object) -> str:
    """Give what a variable takes from the pod or from a secret."""
    if "fieldRef" in source:
        return POD[source["fieldRef"]["fieldPath"]]
    return SECRETS[source["secretKeyRef"]["key"]]


def expand(text: str, known: Mapping[str, str]) -> str:
    """Put the values of known variables into a text; an unknown one stays as it stands."""
    return REFERENCE.sub(lambda found: known.get(found[1], found[0]), text)


def secrets(objects: Iterable[Object]) -> Iterator[tuple[str, str]]:
    """Name each secret that a pod needs, and its entry, or nothing if it needs the whole."""
    for workload in workloads(objects):
        for variable in (given for one in pod(workload)["containers"] for given in one.get("env", [])):
            if reference := variable.get("valueFrom", {}).get("secretKeyRef"):
                yield reference["name"], reference["key"]
        for volume in pod(workload).get("volumes", []):
            if "secret" in volume:
                yield volume["secret"]["secretName"], ""


def mebibytes(text: str) -> float:
    """Read an amount of memory."""
    number, unit = re.fullmatch(r"(\d+)(Mi|Gi|mb|gb)", text).groups()  # type: ignore[union-attr]
    return int(number) * (1024 if unit.lower().startswith("g") else 1)
