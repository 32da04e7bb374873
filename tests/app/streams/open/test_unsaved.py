"""The streams with changes that no snapshot holds."""

from app.streams.open.unsaved import Unsaved


def test_nothing_is_unsaved_at_first():
    unsaved = Unsaved()
    assert len(unsaved) == 0
    assert unsaved.candidates(1e9) == []
    assert unsaved.oldest() is unsaved.due_since(10.0) is unsaved.since("a") is None


def test_candidates_take_long_or_are_old():
    unsaved = Unsaved()
    for time, stream in enumerate("abc"):
        unsaved.note(stream, float(time), is_long=False)
    unsaved.note("c", 5.0, is_long=True)
    unsaved.note("a", 6.0, is_long=False)
    assert unsaved.candidates(-1.0) == ["c"]
    assert unsaved.candidates(1.0) == ["c", "a", "b"]
    assert unsaved.candidates(9.0) == ["c", "a", "b"]
    assert (unsaved.oldest(), unsaved.since("a"), len(unsaved)) == (0.0, 0.0, 3)


def test_what_is_stored_is_forgotten():
    unsaved = Unsaved()
    unsaved.note("a", 1.0, is_long=True)
    unsaved.note("b", 2.0, is_long=False)
    for _ in range(2):
        unsaved.forget("a")
    assert unsaved.candidates(1e9) == ["b"]
    unsaved.note("a", 3.0, is_long=False)
    assert unsaved.candidates(2.5) == ["b"]
    assert unsaved.candidates(3.0) == ["b", "a"]


def test_since_when_the_first_is_due():
    unsaved = Unsaved()
    unsaved.note("a", 1.0, is_long=False)
    unsaved.note("b", 4.0, is_long=True)
    assert unsaved.due_since(10.0) == 11.0
    for time in (5.0, 6.0):
        unsaved.note_due("b", time)
    assert unsaved.due_since(10.0) == 5.0
    assert unsaved.due_since(3.0) == 4.0
    unsaved.forget("b")
    assert unsaved.due_since(10.0) == 11.0
