"""The file of the queries: what it may hold, and what is said of the rest."""

import pytest

from app.pull.config import InvalidPullConfig, read_config

LEAST = "stream: instance\nstep: 30s\nqueries: {cpu: up}\n"


def test_three_lines_are_enough() -> None:
    config = read_config(LEAST)
    assert (config.step, config.delay, config.backfill, config.timeout) == (30, 30, 7 * 86_400, 30)
    assert config.template.paths == ["instance"]
    assert config.stream_config is None


@pytest.mark.parametrize("name", ["no", "on", "y", "12:30"])
def test_a_name_is_what_it_looks_like(name: str) -> None:
    assert read_config(LEAST.replace("cpu", name)).names == (name,)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LEAST + "stepp: 3s\n", "stepp: '3s'; is no key here: the keys are queries, step, stream,"),
        (LEAST.replace("stream: instance", "stream_id: a b"), "stream_id: 'a b'; must be 1 to 128 letters"),
        (LEAST + "step: 3s\n", 'found duplicate key "step"'),
        (LEAST.replace("cpu: up", "cpu: up, cpu: down"), 'found duplicate key "cpu"'),
        (LEAST.replace("30s", "30"), "step: 30; must be a time such as 30s, 15m or 7d, from 1s to 1d"),
        (LEAST.replace("30s", "2d"), "step: '2d'; must be a time such as 30s, 15m or 7d, from 1s to 1d"),
        (LEAST.replace("30s", "0s"), "step: '0s'; must be"),
        (LEAST + "backfill: -1d\n", "backfill: '-1d'; must be a time such as 30s, 15m or 7d, from 0s to 1000d"),
        (LEAST.replace("stream: instance\n", ""), "stream, or else stream_id, must be given"),
        (LEAST + "stream_id: x\n", "and not both"),
        (LEAST.replace("instance", '"{a.*}"'), "stream: '{a.*}'; must be a label"),
        (LEAST.replace("instance", '"{a"'), "stream: '{a'; must be a label"),
        (LEAST.replace("instance", '"{a} b"'), "stream: '{a} b'; must be a label"),
        (LEAST.replace("instance", "web-1"), "stream: 'web-1'; must be a label"),
        (LEAST + "max_streams: 0\n", "max_streams: 0; Input should be greater than or equal to 1"),
        (LEAST + "timezone: UTC\n", "timezone: 'UTC'; must be left out without calendar"),
        (LEAST + "config: {calendar: 1}\n", "config.calendar: 1; must be left out, calendar says it"),
        (LEAST + "config: {features: []}\n", "config.features: []; must be left out, queries says it"),
        (LEAST.replace("up", "{query: up, rol: x}"), "queries.cpu.rol: 'x'; is no key here"),
        (LEAST.replace("up", "{query: up, role: context}"), "at least one must have the role value"),
        (LEAST.replace("{cpu: up}", "{}"), "queries: {}; "),
        (LEAST.replace("up", "3"), "queries.cpu: 3; "),
        (LEAST + "prometheus: {token: x}\n", "prometheus.token: 'x'; is no key here"),
        ("- a\n", "must hold keys and values"),
        ("", "must hold keys and values"),
        ("a: [", "is not YAML"),
        ("a: !!python/object:os.system x", "is not YAML"),
    ],
)
def test_what_is_wrong_is_named(text: str, said: str) -> None:
    with pytest.raises(InvalidPullConfig) as raised:
        read_config(text)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_all_that_is_wrong_is_named_at_once() -> None:
    with pytest.raises(InvalidPullConfig) as raised:
        read_config("stream: 3\nqueries: {}\nfoo: 1\n")
    assert all(f"{name}: " in str(raised.value) for name in ("stream", "queries", "foo", "step"))
