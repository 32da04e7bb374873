"""The examples for Spark name what exists, and take the arguments that they show."""

import re
import shlex
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "spark"
APPLICATION = YAML(typ="safe").load(FOLDER / "backfill.yaml")
PAGE = (ROOT / "docs" / "backfill.md").read_text().replace("\\\n", " ")
SUBMITS = re.findall(r"^spark-submit .*?(deploy/spark/\w+\.py) (.*)$", PAGE, re.MULTILINE)


def script(path: str) -> ModuleType:
    pytest.importorskip("pyspark", reason="Spark is not installed: uv sync --group spark")
    spec = spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_application_is_one_of_the_spark_operator():
    assert (APPLICATION["apiVersion"], APPLICATION["kind"]) == ("sparkoperator.k8s.io/v1beta2", "SparkApplication")
    spec = APPLICATION["spec"]
    required = {"type", "mode", "image", "sparkVersion", "mainApplicationFile", "driver", "executor", "restartPolicy"}
    assert required <= spec.keys()
    assert (spec["type"], spec["mode"], spec["restartPolicy"]["type"]) == ("Python", "cluster", "OnFailure")
    assert all(isinstance(value, str) for value in (*spec["arguments"], *spec["sparkConf"].values()))
    assert all(
        isinstance(spec[part]["cores"], int) and spec[part]["memory"][:-1].isdigit() for part in ("driver", "executor")
    )
    pins = (ROOT / "pyproject.toml").read_text()
    assert f'"pyspark=={spec["sparkVersion"]}"' in pins


def test_the_application_s_arguments_are_those_of_the_script():
    spec = APPLICATION["spec"]
    path = spec["mainApplicationFile"].removeprefix("local:///opt/itan/")
    module = script(path)
    given = module.arguments().parse_args(spec["arguments"])
    job = module.job_of(given, ["cpu"])
    assert (job.delay_seconds, job.detector_config().n_features) == (43200.0, 1)


@pytest.mark.parametrize(("path", "words"), SUBMITS)
def test_the_page_s_arguments_are_those_of_the_scripts(path, words):
    assert script(path).arguments().parse_args(shlex.split(words))


def test_the_page_shows_both_scripts():
    assert {path for path, _ in SUBMITS} == {"deploy/spark/backfill.py", "deploy/spark/query.py"}
