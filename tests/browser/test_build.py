"""The built page in the repository is what its source and its lock file build."""

import json
import re
import subprocess
from pathlib import Path

from tests.browser.conftest import UI, quiet


def test_the_committed_page_is_what_the_source_builds(ui_with_packages: Path) -> None:
    run(ui_with_packages, "npm", "run", "build")
    built, committed = contents(ui_with_packages / "dist"), contents(UI / "dist")
    assert list(built) == list(committed)
    assert [name for name in built if built[name] != committed[name]] == []


def test_the_types_of_the_source_hold(ui_with_packages: Path) -> None:
    run(ui_with_packages, "npm", "run", "check")


def test_the_lock_file_pins_every_package_by_hash_and_names_no_registry() -> None:
    lock = json.loads((UI / "package-lock.json").read_text())
    packages = {path: package for path, package in lock["packages"].items() if path}
    assert packages
    assert all(package["integrity"].startswith("sha512-") for package in packages.values())
    assert not any("resolved" in package for package in packages.values())


def test_the_pages_load_nothing_but_their_own_files() -> None:
    files = contents(UI / "dist").keys()
    loaded = set[str]()
    for page in ("index.html", "docs.html"):
        text = (UI / "dist" / page).read_text()
        loaded |= {name for name in re.findall(r'(?:src|href)="([^"]*)"', text) if name != "openapi.json"}
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", text)
    assert loaded == {f"ui/{name}" for name in files if not name.endswith((".html", ".txt"))}


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a folder, in order of their names."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def run(folder: Path, *command: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, env=quiet())
    assert done.returncode == 0, done.stdout + done.stderr
