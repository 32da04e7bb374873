"""`itan keys`: a new key, its line, and whether a file of lines can be read."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from app.cli import app
from app.security import KeyFile, KeyRing, Scope


def itan(*words: str, code: int = 0) -> Result:
    done = CliRunner().invoke(app, ["keys", *words])
    assert done.exit_code == code, done.output
    return done


def test_a_new_key_opens_what_its_line_says(tmp_path: Path) -> None:
    limits = [
        "--max-streams",
        "0",
        "--max-bytes",
        "9",
        "--max-watchers",
        "3",
        "--requests",
        "5/second",
        "--samples",
        "60000/minute",
    ]
    done = itan("new", "--name", "ci", "--scopes", "observe+read", "--streams", "ci-*", *limits)
    key = done.stderr.rpartition(" ")[2].strip()
    assert len(key) > 40
    assert key not in done.stdout
    path = tmp_path / "keys"
    path.write_text(done.stdout)
    ring = KeyRing([])
    ring.take(KeyFile(path).read())
    (grant,) = ring.opened_by(key)
    assert (grant.name, grant.scopes, grant.streams) == ("ci", {Scope.OBSERVE, Scope.READ}, "ci-*")
    assert (grant.limits.streams, grant.limits.bytes, grant.limits.watchers) == (0, 9, 3)
    assert [(rate.amount, rate.get_expiry()) for rate in (grant.requests, grant.samples)] == [(5, 1), (60_000, 60)]
    assert not ring.opened_by(key[:-1])
    assert "keys: 1" in itan("check", str(path)).stdout


def test_two_keys_are_never_the_same() -> None:
    assert len({itan("new", "--name", "a", "--scopes", "read").stderr for _ in range(20)}) == 20


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"--name": "2"}, "name begins with a letter"),
        ({"--scopes": "write"}, "write"),
        ({"--scopes": "read,observe"}, "read,observe"),
        ({"--streams": "a*b"}, "a stream id, or a prefix"),
        ({"--samples": "fast"}, "60000/minute"),
        ({"--max-streams": "-1"}, "limits.streams"),
    ],
)
def test_what_the_service_could_not_read_is_not_made(given: dict[str, str], said: str) -> None:
    options = {"--name": "ci", "--scopes": "observe"} | given
    done = itan("new", *(word for option in options.items() for word in option), code=2)
    assert said in done.stderr
    assert not done.stdout


def test_a_file_that_cannot_be_read_is_told_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("# ok\nitan_secret\n")
    done = itan("check", str(path), code=2)
    assert "line 2" in done.stderr
    assert "itan_secret" not in done.stderr
    assert "No such file" in itan("check", str(tmp_path / "none"), code=2).stderr
