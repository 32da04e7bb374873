"""The one shape that every problem document has."""

from typing import Any

ALWAYS = ("type", "title", "status", "detail", "code")
WHERE = ("field", "value", "limit", "errors", "n_errors")
ERROR = ["field", "value", "limit"]
MOST_NAMED, VALUE_CHARACTERS, FIELD_CHARACTERS = 20, 80, 200
NOT_PLAIN = ("Expected `", "None", "True", "False", "[...]")


def check_shape(problem: dict[str, Any]) -> None:
    """Hold a problem document to its shape: it says what is wrong, and if it says where, then all of it."""
    rest = set(problem) - set(ALWAYS) - {"problems"}
    assert set(ALWAYS) <= set(problem), problem
    assert rest in (set(), {"samples_needed"}, set(WHERE)), problem
    assert problem["type"] == "urn:itan:" + problem["code"]
    assert all(isinstance(problem[name], str) and problem[name] for name in ("title", "detail", "code"))
    if "errors" in problem:
        check_errors(problem)


def check_errors(problem: dict[str, Any]) -> None:
    """Hold what a problem says of fields to its shape: scalars of JSON, plain sentences, the first one named above."""
    errors, n = problem["errors"], problem["n_errors"]
    assert len(errors) == min(n, MOST_NAMED) >= 1
    assert errors[0] == {name: problem[name] for name in ERROR}
    assert len({error["field"] for error in errors}) == len(errors)
    if "but must be" in problem["detail"]:
        assert problem["detail"].endswith(f"(and {n - 1} more: see errors)" if n > 1 else problem["limit"]), problem
    for error in errors:
        assert list(error) == ERROR
        assert 1 <= len(error["field"]) <= FIELD_CHARACTERS
        assert error["value"] is None or isinstance(error["value"], str | int | float)
        assert len(str(error["value"])) <= VALUE_CHARACTERS
        assert error["limit"]
        said = error["limit"].replace("[...]}", "")
        assert not any(odd in said + error["field"] for odd in NOT_PLAIN), problem
