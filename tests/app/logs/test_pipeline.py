"""One pipeline for all that the process says."""

import asyncio
import io
import logging
import warnings

import httpx2
import pytest

from app.logs.choices import LogFormat, LogLevel
from app.logs.context import begin, note
from app.logs.pipeline import Lines, set_up
from tests.app.log import Log

logger = logging.getLogger("some.library")


def test_a_line_of_a_library_has_the_same_form(log: Log) -> None:
    log.set_up(worker="itan-2")
    logger.warning("the %s is %d", "sky", 7, extra={"stream": "s"})
    (line,) = log.lines()
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "level": "warning",
        "event": "the sky is 7",
        "worker": "itan-2",
        "logger": "some.library",
        "stream": "s",
    }


@pytest.mark.parametrize("level", LogLevel)
def test_nothing_below_the_level_is_said(level: LogLevel, log: Log) -> None:
    log.set_up(level)
    for name in LogLevel:
        logger.log(name.number, "x")
    assert [line["level"] for line in log.lines()] == list(LogLevel)[list(LogLevel).index(level) :]


@pytest.mark.parametrize("level", LogLevel)
def test_the_urls_that_are_asked_for_stay_unsaid(level: LogLevel, log: Log) -> None:
    log.set_up(level)
    with httpx2.Client(transport=httpx2.MockTransport(lambda _: httpx2.Response(204))) as http:
        http.post("https://chat.example.org/hooks/a-secret")
    assert log.lines() == []


def test_a_level_of_nobody_else_is_taken_for_the_one_below(log: Log) -> None:
    log.set_up(LogLevel.DEBUG)
    for level in (1, 15, 99):
        logger.log(max(level, 10), "x")
    assert [line["level"] for line in log.lines()] == ["debug", "debug", "critical"]


def test_a_traceback_is_one_line(log: Log) -> None:
    log.set_up()
    try:
        raise RuntimeError("first\nsecond")
    except RuntimeError:
        logger.exception("it failed")
    (line,) = log.lines()
    assert line["exception"].startswith("Traceback")
    assert line["exception"].endswith("RuntimeError: first\nsecond")


def test_a_warning_of_python_is_a_line_too(log: Log) -> None:
    log.set_up()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(capture=True)
        warnings.warn("old ways", DeprecationWarning, stacklevel=1)
    (line,) = log.lines()
    assert "old ways" in line["event"]
    assert line["logger"] == "py.warnings"


async def test_lines_of_a_request_name_it_in_its_tasks_and_threads_too(log: Log) -> None:
    log.set_up()

    async def deeper() -> None:
        note(stream="s")
        await asyncio.to_thread(logger.warning, "in a thread")

    async def handle(number: int) -> None:
        begin({"request_id": f"r{number}"})
        await asyncio.create_task(deeper())
        logger.warning("at the end")

    await asyncio.gather(handle(1), handle(2))
    logger.warning("outside")
    said = sorted((line.get("request_id", ""), line["event"], line.get("stream", "")) for line in log.lines())
    assert said == [
        ("", "outside", ""),
        ("r1", "at the end", "s"),
        ("r1", "in a thread", "s"),
        ("r2", "at the end", "s"),
        ("r2", "in a thread", "s"),
    ]


class Full(io.BytesIO):
    """A file on a disk with no room."""

    def write(self, _: object) -> int:
        raise OSError(28, "No space left on device")


def test_a_full_disk_costs_lines_and_nothing_else() -> None:
    Lines(Full()).msg(b"x")
    closed = io.BytesIO()
    closed.close()
    Lines(closed).msg(b"x")


def test_a_message_that_cannot_be_made_does_not_fail_who_logs_it(
    log: Log, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log.set_up()
    logger.warning("%d", "no number")
    assert "no number" in capsys.readouterr().err
    assert log.lines() == []


@pytest.mark.parametrize(("is_terminal", "start"), [(True, b"20"), (False, b'{"')])
def test_left_out_the_form_is_for_who_reads_stderr(
    is_terminal: bool, start: bytes, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = io.BytesIO()
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
    set_up(LogLevel.INFO, None, file=file)
    logger.info("hello")
    assert file.getvalue().startswith(start)


def test_the_console_shows_a_line_and_its_traceback_below(log: Log) -> None:
    log.set_up(form=LogFormat.CONSOLE)
    try:
        raise RuntimeError("\n2026-01-01T00:00:00.000+00:00 info forged")
    except RuntimeError:
        logger.exception("it failed")
    first, *rest = log.text().splitlines()
    assert first.endswith("error   it failed logger=some.library")
    assert all(line.startswith("    ") for line in rest)
    assert "forged" in rest[-1]
