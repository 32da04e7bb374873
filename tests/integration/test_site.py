"""The site of docs: built strictly, with every page, and from nothing but what is here."""

import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(path.stem for path in DOCS.glob("*.md"))


def build(docs: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of a copy of the pages."""
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", str(docs / "zensical.toml")]
    return subprocess.run(command, cwd=DOCS.parent, capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the pages whose site is built in `.site`."""
    docs = tmp_path_factory.mktemp("site") / "docs"
    shutil.copytree(DOCS, docs, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    done = build(docs)
    assert done.returncode == 0, done.stdout + done.stderr
    return docs


class Loads(HTMLParser):
    """What a page makes a browser load."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.urls: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        name = "href" if tag == "link" else "src"
        if tag != "a" and given.get(name):
            self.urls.append(str(given[name]))


def test_a_page_loads_nothing_from_elsewhere(docs: Path) -> None:
    assert Loads('<link href="https://a/b.css"><img src="//c/d.png">').urls == ["https://a/b.css", "//c/d.png"]
    for name in PAGES:
        urls = Loads((docs / ".site" / f"{name}.html").read_text()).urls
        assert len(urls) > 2
        assert [url for url in urls if re.match(r"\w+:|//", url)] == [], name


def test_formulas_are_drawn(docs: Path) -> None:
    source = (DOCS / "method.md").read_text()
    page = (docs / ".site" / "method.html").read_text()
    assert page.count('<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">') == source.count("```math")
    assert page.count('display="inline"') > 100
    assert not re.search(r"\\(frac|tag|Sigma)|\$", re.sub(r"<(script|code).*?</\1>", "", page, flags=re.DOTALL))


def test_contents_and_navigation_name_each_page() -> None:
    named = re.findall(r'"(\w+)\.md"', (DOCS / "zensical.toml").read_text())
    assert sorted(named) == PAGES
    listed = re.findall(r"^\| \[[^]]*\]\((\w+)\.md\)", (DOCS / "index.md").read_text(), re.MULTILINE)
    assert ["index", *listed] == named


def test_broken_links_fail(docs: Path) -> None:
    page = docs / "incidents.md"
    text = page.read_text()
    page.write_text(f"{text}\n[a page](nowhere.md), [a heading](api.md#nowhere)\n")
    done = build(docs)
    page.write_text(text)
    assert done.returncode != 0
    assert {"page", "anchor"} <= set(re.findall(r"(page|anchor) does not exist", done.stdout + done.stderr))
