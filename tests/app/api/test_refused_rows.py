"""All wrong rows of a request are named at once, so that a sender gets through in one repeat."""

import json
import struct

import pytest

from tests.app.api.test_bad_input import check_problem
from tests.app.harness import NOW, blobs

NDJSON = {"Content-Type": "application/x-ndjson"}
BYTES = {"Content-Type": "application/octet-stream"}
COUNTS = {"features": [{"name": "cpu"}, {"name": "n", "kind": "poisson"}]}


def counted(n=1000):
    return [{"cpu": 0.01 * (i % 50), "n": i % 7} for i in range(n)]


def row_of(error):
    return int(error["field"].split("[")[1].split("]")[0])


async def observe(service, rows, *, as_lines):
    if as_lines:
        content = "\n".join(json.dumps(row) for row in rows)
        return await service.http.post("/observe?stream=s", content=content, headers=NDJSON)
    return await service.http.post("/observe?stream=s", json={"samples": rows})


@pytest.mark.parametrize("as_lines", [True, False])
async def test_a_sender_that_drops_what_is_named_gets_through_in_one_repeat(service, as_lines):
    await service.accepted("PUT", "/streams/s", json=COUNTS)
    rows = counted()
    rows[500]["n"], rows[700]["n"], rows[900]["n"], rows[901] = -1, "many", 2.5, {"cpu": None, "n": None}
    del rows[800]["n"]
    answer = await observe(service, rows, as_lines=as_lines)
    problem = answer.json()
    check_problem(problem)
    assert (problem["code"], problem["n_errors"]) == ("invalid_samples", 5)
    assert {error["field"]: error["value"] for error in problem["errors"]} == {
        "samples[500].n": -1.0,
        "samples[700].n": "many",
        "samples[800]": '{"cpu": 0.0}',
        "samples[900].n": 2.5,
        "samples[901]": None,
    }
    assert (await service.accepted("GET", "/streams/s"))["n_seen"] == 0
    wrong = {row_of(error) for error in problem["errors"]}
    answer = await observe(service, [row for i, row in enumerate(rows) if i not in wrong], as_lines=as_lines)
    assert answer.status_code == 200
    assert (await service.accepted("GET", "/streams/s"))["n_seen"] == 995


async def test_at_most_twenty_are_named_and_all_are_counted(service):
    await service.accepted("PUT", "/streams/s", json=COUNTS)
    rows = counted(100)
    for i in range(0, 100, 2):
        rows[i]["n"] = "x" if i % 4 else -1
    problem = await service.refused("POST", "/observe?stream=s", 422, "invalid_samples", json={"samples": rows})
    check_problem(problem)
    assert problem["n_errors"] == 50
    assert [row_of(error) for error in problem["errors"]] == list(range(0, 40, 2))
    assert problem["detail"].endswith("(and 49 more: see errors)")


@pytest.mark.parametrize(
    ("path", "body", "fields"),
    [
        ("/observe", {"samples": [[1, 2], ["x", 2], [1, None], [1], [1, 2, 3], 7]}, ["[1][0]", "[3]", "[4]", "[5]"]),
        ("/density", {"points": [[1, 2], [True, 2], [None, None], {"a": 1}]}, ["[1][0]", "[2]", "[3]"]),
        ("/observe", {"samples": [[1, 2]] * 4, "ids": ["a", "", 3, "b\n"]}, ["[1]", "[2]", "[3]"]),
        ("/observe", {"samples": [[1, 2]] * 4, "ids": ["a", "a", None, "a"]}, ["[1]", "[3]"]),
        ("/observe", {"samples": [[1, 2]] * 3, "timestamps": [NOW, "today", "noon"]}, ["[1]", "[2]"]),
        ("/observe", {"samples": [[1, 2]] * 3, "timestamps": [1, NOW, NOW * 1000]}, ["[0]", "[2]"]),
        (
            "/feedback",
            {"labels": [{"seq": 1, "anomaly": True}, 1, {"seq": 0, "anomaly": True}, {"seq": 1, "anomaly": 1}, {}]},
            ["[1]", "[2].seq", "[3].anomaly", "[4].anomaly"],
        ),
        ("/feedback", {"labels": [{"anomaly": True}, {"seq": 1, "anomaly": True}, {"anomaly": None}]}, ["[0]", "[2]"]),
    ],
)
async def test_every_list_of_a_body_names_all_its_wrong_entries(service, path, body, fields):
    await service.observe(blobs(40))
    problem = (await service.http.post(f"{path}?stream=s", json=body)).json()
    check_problem(problem)
    part = list(body)[-1]
    assert [error["field"] for error in problem["errors"]] == [part + field for field in fields]


async def test_lines_are_named_as_the_rows_of_json(service):
    await service.observe([[1.0, 2.0]])
    lines = ["[1, 2]", "", "[1", '{"sample": [1, 2], "id": "a"}', '{"sample": ["x", 2]}', "[NaN, 1]", '{"cpu": 1}']
    answer = await service.http.post("/observe?stream=s", content="\n".join(lines), headers=NDJSON)
    problem = answer.json()
    check_problem(problem)
    fields = ["samples[1]", "samples[3][0]", "samples[4][0]", "samples[5]"]
    assert [error["field"] for error in problem["errors"]] == fields
    for wrapped, field in (
        ('"id": 7', "ids[1]"),
        ('"timestamp": "now"', "timestamps[1]"),
        ('"host": "a"', "samples[1].host"),
    ):
        content = '[1, 2]\n{"sample": [1, 2], %s}' % wrapped  # noqa: UP031
        answer = await service.http.post("/observe?stream=s", content=content, headers=NDJSON)
        check_problem(answer.json())
        assert answer.json()["field"] == field
    content = '{"sample": [1, 2], "timestamp": %d}\n[1, 2]' % NOW  # noqa: UP031
    answer = await service.http.post("/observe?stream=s", content=content, headers=NDJSON)
    assert answer.json()["field"] == "timestamps[1]"


async def test_rows_of_bytes_are_named_too(service):
    await service.accepted("PUT", "/streams/s", json=COUNTS)
    rows = [(1.0, 2.0), (float("inf"), 1.0), (1.0, 2.5), (float("nan"), float("nan"))]
    body = b"".join(struct.pack("<2d", *row) for row in rows)
    problem = (await service.http.post("/observe?stream=s", content=body, headers=BYTES)).json()
    check_problem(problem)
    assert [error["field"] for error in problem["errors"]] == ["samples[1][0]", "samples[2][1]", "samples[3]"]


async def test_conflicting_ids_are_all_named(service):
    await service.observe(blobs(5), ids=list("abcde"))
    body = {"samples": [[0.0, 0.0]] * 3, "ids": ["b", "new", "d"]}
    problem = await service.refused("POST", "/observe?stream=s", 409, "id_conflict", json=body)
    check_problem(problem)
    assert [error["field"] for error in problem["errors"]] == ["ids[0]", "ids[2]"]


@pytest.mark.parametrize(
    ("path", "content", "field", "value", "advice"),
    [
        ("/observe?stream=s", '{"cpu": 1}', "cpu", 1, 'wrap it, {"samples": [{"cpu": 1}]}'),
        ("/observe?stream=s", '[{"cpu": 1}]', "body", '[{"cpu": 1}]', 'wrap the array, {"samples": [...]}'),
        ("/observe?stream=s", '[{"cpu": 1}]', "body", '[{"cpu": 1}]', "application/x-ndjson"),
        ("/density?stream=s", "[[1, 2]]", "body", "[[1, 2]]", 'wrap the array, {"points": [...]}'),
        ("/observe?stream=s", '{"sampels": [[1]]}', "sampels", "[[1]]", "did you mean samples?"),
        ("/observe?stream=s", '{"Samples": [[1]]}', "Samples", "[[1]]", "did you mean samples?"),
        ("/observe?stream=s", '{"samples": [[1]], "timestamp": [1]}', "timestamp", "[1]", "did you mean timestamps?"),
        ("/observe?stream=s", '{"metrics": [{"fields": {"a": 1}}]}', "metrics", None, 'send {"samples": [{"cpu"'),
        ("/observe?stream=s", '{"samples": [[1, 2]], "ids": "a"}', "ids", "a", "an array of ids"),
        ("/observe?stream=s", '{"ids": ["a"]}', "samples", None, "given"),
        ("/observe?stream=s", "17", "body", 17, "an object"),
        ("/observe?stream=s", '{"samples": [{"cpu": 1, "cpu": 99}]}', "samples[0].cpu", 99, "given once"),
        ("/observe?stream=s", '{"samples": [[1, 2], [1e999, 1]]}', "samples[1][0]", "1e999", "a double holds"),
        ("/observe?stream=s", '{"samples": [{"cpu": 1e999, "mem": 1}]}', "samples[0].cpu", "1e999", "a double holds"),
        ("/observe?stream=s", '{"samples": [{"cpu": "high", "mem": 1}]}', "samples[0].cpu", "high", "a number or null"),
        ("/observe?stream=s", '{"samples": [[null, null]]}', "samples[0]", None, "at least one value"),
        ("/observe?stream=s", '{"samples": [[NaN, 1]]}', "body", None, "write null"),
        ("/feedback?stream=s", '{"labels": [{"seq": 1, "anomalous": true}]}', "labels[0].anomalous", True, "anomaly?"),
        ("/feedback?stream=s", '[{"seq": 1, "anomaly": true}]', "body", None, 'wrap the array, {"labels": [...]}'),
    ],
)
async def test_a_refusal_says_what_to_send_instead(service, path, content, field, value, advice):
    await service.observe(blobs(40))
    answer = await service.http.post(path, content=content, headers={"Content-Type": "application/json"})
    problem = answer.json()
    check_problem(problem)
    assert problem["field"] == field
    assert advice in problem["limit"]
    if value is not None:
        assert problem["value"] == value


@pytest.mark.parametrize(
    ("config", "field", "value"),
    [
        ('{"n_features": 2, "beta": 1e999}', "beta", "1e999"),
        ('{"n_features": 2, "scaling": {"location": [0, 1e999], "scale": [1, 1]}}', "scaling.location[1]", "1e999"),
        ('{"features": [{"name": 1e999}]}', "features[0].name", "1e999"),
        ('{"features": [{"name": "a"}, {"name": "b", "name": "c"}]}', "features[1].name", "c"),
        ('{"n_features": 2, "n_features": 3}', "n_features", 3),
        ("[2]", "body", "[2]"),
        ('{"n_features": 2, "xi": [true, null]}', "xi", "[true, null]"),
    ],
)
async def test_a_config_names_the_field_and_the_value_as_they_were_sent(service, config, field, value):
    for method, path in (("PUT", "/streams/s"), ("POST", "/streams/estimate")):
        headers = {"Content-Type": "application/json"}
        problem = (await service.http.request(method, path, content=config, headers=headers)).json()
        check_problem(problem)
        assert (problem["field"], problem["value"]) == (field, value), problem
