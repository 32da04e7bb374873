"""What the wheel holds: the service with its built page, and nothing that serving does not need."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
PAGE = {"index.html", "docs.html", "app.js", "app.css"}


def built(project: Path, folder: Path) -> ZipFile:
    """Build a wheel in this environment, with no network."""
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=project, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return ZipFile(wheel)


def requirements(wheel: ZipFile) -> list[str]:
    (metadata,) = (name for name in wheel.namelist() if name.endswith("dist-info/METADATA"))
    lines = wheel.read(metadata).decode().splitlines()
    return [line.removeprefix("Requires-Dist: ") for line in lines if line.startswith("Requires-Dist: ")]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    return built(ROOT, tmp_path_factory.mktemp("wheel"))


def test_the_wheel_holds_the_four_packages_and_no_more(wheel):
    held = {name.partition("/")[0] for name in wheel.namelist()}
    assert held == {"app", "bench", "core", "itan_client", "itan-0.1.0.dist-info"}


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


@pytest.mark.parametrize("package", ["app", "bench", "core", "itan_client"])
def test_type_checkers_see_the_types_of_the_packages(wheel, package):
    assert f"{package}/py.typed" in wheel.namelist()


def test_every_dependency_has_a_floor():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for requirement in project["dependencies"]:
        assert ">=" in requirement or "==" in requirement, requirement


def test_an_installation_has_no_tools_of_tests(wheel):
    required = [line for line in requirements(wheel) if "extra ==" not in line]
    assert required
    for tool in ("pytest", "ruff", "mypy", "river", "matplotlib", "hypothesis"):
        assert not any(line.startswith(tool) for line in required)


def test_the_client_alone_needs_two_packages(tmp_path):
    client = built(ROOT / "client", tmp_path)
    modules = {path.relative_to(ROOT / "client").as_posix() for path in (ROOT / "client").rglob("*.py")}
    assert {name for name in client.namelist() if name.endswith(".py")} == modules
    assert "itan_client/py.typed" in client.namelist()
    needed = [line for line in requirements(client) if "extra ==" not in line]
    assert {re.split(r"[<>=]", line)[0] for line in needed} == {"httpx2", "msgspec"}


def test_the_client_imports_with_those_two_alone():
    """Nothing else of the environment is loaded, numpy and pandas neither."""
    loaded = "import sys, itan_client; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", loaded], check=True, capture_output=True, text=True, cwd=ROOT)
    assert not {"app", "core", "numpy", "pandas", "pydantic", "fastapi"} & set(done.stdout.split())
