"""The Dockerfile: linted, and its build and its commands followed on this machine."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.dockerfile import Step, environment, read_dockerfile

ROOT = Path(__file__).parents[2]
STEPS = read_dockerfile(ROOT / "Dockerfile")
BUILD, FINAL = 0, 1
GREETING = "itan serves "
IGNORED = [line[3:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("**/")]


def of(stage: int, verb: str) -> list[Step]:
    return [step for step in STEPS if step.stage == stage and step.verb == verb]


def test_hadolint_finds_nothing() -> None:
    done = subprocess.run(["hadolint", ROOT / "Dockerfile"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_is_copied_exists_and_is_not_ignored() -> None:
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {source for step in of(BUILD, "COPY") for source in step.words[:-1]}
    assert copied == allowed
    assert not [source for source in copied if not (ROOT / source).exists()]


def test_bases_are_pinned_and_come_from_the_default_registry() -> None:
    for step in STEPS:
        if step.verb == "FROM":
            assert re.fullmatch(r"[a-z]+:\d+\.\d+\.\d+[a-z-]*( AS [a-z]+)?", step.text)


def test_it_runs_as_nobody_in_particular_and_ends_on_sigterm() -> None:
    assert of(FINAL, "USER")[-1].text == "10001:10001"
    assert of(FINAL, "STOPSIGNAL")[0].text == "SIGTERM"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Follow the first stage, with folders of our own in place of the image's."""
    uv = os.environ.get("UV") or shutil.which("uv")
    assert uv, "uv is needed to follow the build"
    folder = tmp_path_factory.mktemp("image")
    source, target = folder / "src", folder / "itan"
    source.mkdir()
    environ = os.environ | environment(STEPS, BUILD) | {"UV_PROJECT_ENVIRONMENT": str(target)}
    environ.pop("VIRTUAL_ENV", None)
    for step in STEPS:
        if step.stage == BUILD and step.verb == "COPY":
            copy(step, source)
        elif step.stage == BUILD and step.verb == "RUN" and step.words[0] == "uv":
            words = [word for word in step.words[1:] if word != "--no-cache"]
            subprocess.run([uv, *words], cwd=source, env=environ, check=True)
    return target


def copy(step: Step, target: Path) -> None:
    *sources, destination = step.words
    for source in sources:
        place = target / (source if destination == "./" else destination)
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, place, ignore=shutil.ignore_patterns(*IGNORED))
        else:
            shutil.copy(ROOT / source, place)


def final_environment(built: Path, data: Path) -> dict[str, str]:
    environ = environment(STEPS, FINAL)
    environ["PATH"] = f"{built}/bin:{os.environ['PATH']}"
    return environ | {"ITAN_HOST": "127.0.0.1", "ITAN_PORT": "0", "ITAN_STORE": f"sqlite:///{data}/itan.db"}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Follow the last stage's RUN, which makes the folder for data."""
    (step,) = of(FINAL, "RUN")
    folder = tmp_path / "data"
    if os.geteuid():
        folder.mkdir()
    else:
        subprocess.run([str(folder) if word == "/data" else word for word in step.words], check=True)
    return folder


def as_user(command: list[str]) -> list[str]:
    """Run as the image's user, if we are root: it may look everywhere, but write only what is its own."""
    if os.geteuid():
        return command
    user, group = of(FINAL, "USER")[-1].text.split(":")
    identity = [f"--reuid={user}", f"--regid={group}", "--clear-groups", "--no-new-privs"]
    return ["setpriv", *identity, *(f"--{kind}-caps=-all,+dac_read_search" for kind in ("inh", "ambient")), *command]


@pytest.fixture
def serving(built: Path, data: Path) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """Run the image's own command; then its environment knows the port."""
    environ = final_environment(built, data)
    command = as_user(of(FINAL, "CMD")[0].exec_form)
    with subprocess.Popen(command, cwd=data, env=environ, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            greeting = process.stdout.readline()
            assert greeting.startswith(GREETING)
            yield process, environ | {"ITAN_PORT": greeting.strip().rpartition(":")[2]}
        finally:
            process.kill()


def test_the_built_image_serves_is_healthy_and_ends(
    serving: tuple[subprocess.Popen[str], dict[str, str]], data: Path
) -> None:
    process, environ = serving
    assert (data / "itan.db").stat().st_uid == (os.geteuid() or 10001)
    probe = of(FINAL, "HEALTHCHECK")[0].exec_form
    assert subprocess.run(probe, env=environ).returncode == 0
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    assert subprocess.run(probe, env=environ, stderr=subprocess.DEVNULL).returncode != 0


def test_the_image_holds_the_program_and_no_tools_of_development(built: Path) -> None:
    packages = {path.name for path in built.glob("lib/python*/site-packages/*")}
    assert {"app", "core"} <= packages
    assert not packages & {"pytest", "mypy", "hypothesis", "tests"}
    assert not list(built.glob("lib/python*/site-packages/*itan*.pth"))


def test_the_image_holds_what_is_not_code_too(built: Path) -> None:
    (package,) = built.glob("lib/python*/site-packages/app")
    folders = ["storage/lua", "ui/dist"]
    files = [path.relative_to(ROOT / "app") for folder in folders for path in (ROOT / "app" / folder).rglob("*")]
    assert files
    assert not [path for path in files if not (package / path).exists()]


def test_listening_to_all_without_keys_is_refused(built: Path, tmp_path: Path) -> None:
    environ = final_environment(built, tmp_path) | {"ITAN_HOST": environment(STEPS, FINAL)["ITAN_HOST"]}
    done = subprocess.run(of(FINAL, "CMD")[0].exec_form, cwd=tmp_path, env=environ, capture_output=True, text=True)
    assert done.returncode == 2
    assert "ITAN_API_KEYS" in done.stderr
