"""Every path and name in docs/architecture.md and CONTRIBUTING.md exists; every package of app and core is named."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
PLACE = re.compile(r"`((?:app|bench|client|core|deploy|tests)\b[\w/.]*)(?::(\w+))?`")
PLACES = sorted({place for page in (PAGE, (ROOT / "CONTRIBUTING.md").read_text()) for place in PLACE.findall(page)})
PACKAGES = sorted(path.parent for top in ("app", "client", "core") for path in (ROOT / top).rglob("*/__init__.py"))


@pytest.mark.parametrize(("path", "name"), PLACES)
def test_what_the_pages_name_exists(path: str, name: str) -> None:
    place = ROOT / path
    assert place.exists()
    if name:
        assert re.search(rf"^(?:(?:async )?def |class )?{name}\b", place.read_text(), re.MULTILINE), name


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_page_names_each_package(package: Path) -> None:
    name = package.relative_to(ROOT).as_posix()
    assert [path for path, _ in PLACE.findall(PAGE) if f"{path}/".startswith(f"{name}/")]


def test_the_picture_names_each_package() -> None:
    picture = PAGE.split("```text\n", 1)[1].split("```", 1)[0]
    assert [package.name for package in PACKAGES if package.name not in re.findall(r"\w+", picture)] == []
