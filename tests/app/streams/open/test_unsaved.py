"""The streams with changes that no snapshot holds."""

from app.streams.open.unsaved import Unsaved


def test_nothing_is_unsaved_at_first():
    unsaved = Unsaved()
    assert len(unsaved) == 0
    assert unsaved.due(1e9) == []
    assert unsaved.oldest() is unsaved.due_since(10.0) is unsaved.since("a") is None


def test_due_is_what_takes_long_or_is_old():
    unsaved = Unsaved()
    for time, stream in enumerate("abc"):
        unsaved.note(stream, float(time), is_long=False)
    unsaved.note("c", 5.0, is_long=True)
    unsaved.note("a", 6.0, is_long=False)
    assert unsaved.due(-1.0) == ["c"]
    assert unsaved.due(1.0) == ["c", "a", "b"]
    assert unsaved.due(9.0) == ["c", "a", "b"]
    assert (unsaved.oldest(), unsaved.since("a"), len(unsaved)) == (0.0, 0.0, 3)


def test_what_is_stored_is_forgotten():
    unsaved = Unsaved()
    unsaved.note("a", 1.0, is_long=True)
    unsaved.note("b", 2.0, is_long=False)
    for _ in range(2):
        unsaved.forget("a")
    assert unsaved.due(1e9) == ["b"]
    unsaved.note("a", 3.0, is_long=False)
    assert unsaved.due(2.5) == ["b"]
    assert unsaved.due(3.0) == ["b", "a"]


def test_since_when_the_first_is_due():
    unsaved = Unsaved()
    unsaved.note("a", 1.0, is_long=False)
    unsaved.note("b", 5.0, is_long=True)
    assert unsaved.due_since(10.0) == 5.0
    assert unsaved.due_since(3.0) == 4.0
    unsaved.forget("b")
    assert unsaved.due_since(10.0) == 11.0
