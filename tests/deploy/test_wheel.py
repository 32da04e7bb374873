"""What the wheel holds: the service with its built page, and nothing that serving does not need."""

import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
PAGE = {"index.html", "docs.html", "app.js", "app.css"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    """Build the wheel in this environment, with no network."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return ZipFile(built)


def test_the_wheel_holds_the_three_packages_and_no_more(wheel):
    assert {name.partition("/")[0] for name in wheel.namelist()} == {"app", "bench", "core", "itan-0.1.0.dist-info"}


def test_every_module_is_in_the_wheel(wheel):
    tracked = subprocess.run(
        ["git", "ls-files", "app", "bench", "core"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split()
    needed = {name for name in tracked if name.endswith((".py", ".lua", "py.typed"))}
    assert len(needed) > 200
    assert needed <= set(wheel.namelist())


def test_the_built_page_is_in_the_wheel_and_its_sources_are_not(wheel):
    of_page = [Path(name) for name in wheel.namelist() if name.startswith("app/ui/")]
    assert {name.name for name in of_page} >= PAGE
    assert {name.parent.as_posix() for name in of_page} == {"app/ui/dist"}


def test_tests_and_tools_are_not_in_the_wheel(wheel):
    for name in wheel.namelist():
        assert not {"tests", "node_modules", "src"} & set(Path(name).parts), name
        assert not name.endswith((".ts", ".tsx", "package.json", "package-lock.json")), name


@pytest.mark.parametrize("package", ["app", "bench", "core"])
def test_type_checkers_see_the_types_of_the_packages(wheel, package):
    assert f"{package}/py.typed" in wheel.namelist()


def test_every_dependency_has_a_floor():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for requirement in project["dependencies"]:
        assert ">=" in requirement or "==" in requirement, requirement


def test_an_installation_has_no_tools_of_tests(wheel):
    (metadata,) = (name for name in wheel.namelist() if name.endswith("dist-info/METADATA"))
    required = [
        line
        for line in wheel.read(metadata).decode().splitlines()
        if line.startswith("Requires-Dist: ") and "extra ==" not in line
    ]
    assert required
    for tool in ("pytest", "ruff", "mypy", "river", "matplotlib", "hypothesis"):
        assert not any(line.startswith(f"Requires-Dist: {tool}") for line in required)
