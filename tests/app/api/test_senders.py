"""What common senders send: taken where it is harmless, else refused with what to change."""

import json

import pytest

from tests.app.api.test_bad_input import check_problem
from tests.app.harness import blobs

BODY = b'{"samples": [[1, 2]]}'


@pytest.mark.parametrize(
    ("media", "body"),
    [
        ("application/json", b"\xef\xbb\xbf" + BODY),
        ("application/json; charset=utf-8", BODY),
        ('application/json; charset="UTF-8"', BODY),
        ("Application/JSON;charset=Utf8", BODY),
        ("application/json; charset=us-ascii", BODY),
        ("application/x-ndjson", b"\xef\xbb\xbf[1, 2]\n[3, 4]"),
        ("application/jsonl", b"[1, 2]\n[3, 4]\n"),
        ("application/x-jsonlines; charset=utf-8", b"[1, 2]\r\n[3, 4]\r\n"),
        ("application/ndjson", b"[1, 2]"),
        ("application/jsonlines", b"[1, 2]"),
    ],
)
async def test_harmless_kinds_are_taken(service, media, body):
    await service.accepted("POST", "/observe?stream=s", content=body, headers={"Content-Type": media})
    small = {
        "content": b'\xef\xbb\xbf{"n_features": 2}',
        "headers": {"Content-Type": "application/json; charset=UTF-8"},
    }
    await service.accepted("PUT", "/streams/t", **small)


@pytest.mark.parametrize(
    ("headers", "body", "field", "advice"),
    [
        ({"Content-Type": "application/json; charset=utf-16"}, BODY.decode().encode("utf-16"), "content-type", "utf-8"),
        ({"Content-Type": "application/json; charset='iso-8859-1'"}, BODY, "content-type", "utf-8"),
        ({"Content-Type": "application/json"}, BODY.decode().encode("utf-16"), "body", "UTF-8"),
        ({"Content-Type": "text/plain"}, BODY, "content-type", "application/x-ndjson"),
        ({"Content-Type": "application/json-seq"}, b"\x1e[1, 2]\n", "content-type", "application/x-ndjson"),
        ({"Content-Type": "application/x-www-form-urlencoded"}, BODY, "content-type", "application/json"),
        ({}, BODY, "content-type", "application/json"),
        (
            {"Content-Type": "application/json", "Content-Encoding": "br"},
            b"\x1b",
            "content-encoding",
            "gzip",
        ),
    ],
)
async def test_other_kinds_are_refused_with_what_to_change(service, headers, body, field, advice):
    answer = await service.http.post("/observe?stream=s", content=body, headers=headers)
    assert answer.status_code in (400, 415)
    check_problem(answer.json())
    assert answer.json()["field"] == field
    assert advice in answer.json()["limit"]
    await service.refused("GET", "/streams/s", 404, "unknown_stream")


async def test_lines_with_other_fields_in_them_name_each(service):
    await service.observe([{"cpu": 0.1, "mem": 2.0}])
    lines = [{"cpu": 0.1, "mem": 1, "host": "a"}, {"time": 1, "cpu": 0.1, "mem": 2}, {"cpu": 0.1, "mem": 3}]
    content = "\n".join(map(json.dumps, lines))
    answer = await service.http.post(
        "/observe?stream=s", content=content, headers={"Content-Type": "application/jsonl"}
    )
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == ["samples[0].host", "samples[1].time"]


async def test_names_in_any_order_score_as_in_one(service):
    """Also names like numbers, which a JavaScript client puts in front."""
    names, X = ["2", "10", "b", "a"], blobs(400, 4) * [1, 10, 100, 1000]
    rows = [dict(zip(names, row, strict=True)) for row in X.tolist()]
    mixed = [dict(reversed(row.items())) if i % 2 else dict(sorted(row.items())) for i, row in enumerate(rows)]
    one, other = await service.observe(rows, "one"), {"score": []}
    features = [{"name": name} for name in names]
    await service.accepted("PUT", "/streams/other", json={"features": features})
    for i in range(0, 400, 50):
        other["score"] += (await service.observe(mixed[i : i + 50], "other"))["score"]
    assert other["score"] == one["score"]
    odd = dict(mixed[-1]) | {"a": 1e5}
    for stream in ("one", "other"):
        query = f"/observe?stream={stream}&learn=false&explain=true"
        answer = await service.accepted("POST", query, json={"samples": [odd]})
        (explanation,) = answer["explanation"]
        assert max(explanation["contributions"], key=explanation["contributions"].get) == "a"
    by_position = await service.accepted("POST", "/observe?stream=one&learn=false", json={"samples": [X[7].tolist()]})
    by_name = await service.accepted("POST", "/observe?stream=one&learn=false", json={"samples": [mixed[7]]})
    assert by_position["score"] == by_name["score"]


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({"a": 1, "b": 2, "gpu": 3}, "samples[1].gpu"),
        ({"a": 1}, "samples[1]"),
        ({"a": 1, "B": 2}, "samples[1]"),
    ],
)
async def test_a_feature_that_comes_or_goes_is_refused_by_name(service, row, field):
    await service.observe([{"b": 1.0, "a": 2.0}])
    body = {"samples": [{"a": 1, "b": 2}, row]}
    problem = await service.refused("POST", "/observe?stream=s", 422, "invalid_samples", json=body)
    check_problem(problem)
    assert problem["field"] == field
    assert "'b'" in problem["limit"] or "no such feature" in problem["limit"]


async def test_objects_on_a_stream_without_names_are_refused(service):
    await service.observe([[1.0, 2.0]])
    body = {"samples": [{"a": 1, "b": 2}, {"a": 1, "b": 2}]}
    problem = await service.refused("POST", "/observe?stream=s", 422, "invalid_samples", json=body)
    assert [error["field"] for error in problem["errors"]] == ["samples[0]", "samples[1]"]
    assert "no names" in problem["limit"]


async def test_a_stream_with_one_more_feature_is_filled_from_history(service):
    """As the docs say: a new stream, filled with what the log holds of the old one."""
    X = blobs(100)
    await service.observe([{"cpu": x, "mem": y} for x, y in X.tolist()], "old")
    await service.accepted("PUT", "/streams/new", json={"features": [{"name": name} for name in ("cpu", "mem", "gpu")]})
    first = 1
    while first is not None:
        page = await service.accepted("GET", f"/streams/old/history?values=true&from={first}&points=10000")
        assert not page["thinned"]
        rows = [dict(zip(page["features"], row, strict=True)) | {"gpu": None} for row in page["values"]]
        ids = [f"old-{seq}" for seq in page["seq"]]
        await service.observe(rows, "new", ids=ids, timestamps=page["time"])
        first = page["next"]
    assert (await service.accepted("GET", "/streams/new"))["n_seen"] == 100
    assert (await service.observe([{"cpu": 1.0, "mem": 1.0, "gpu": 0.5}], "new"))["ready"] == [True]
