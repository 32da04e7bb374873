"""How many steps are asked for at once, after what went wrong."""

from app.pull.prometheus import MOST_POINTS
from app.pull.windows import MOST_VALUES, Windows


def grown(windows: Windows, n: int) -> list[int]:
    """Give the sizes of windows that are done."""
    found = []
    for _ in range(n):
        windows.note_done()
        found.append(windows.n_steps)
    return found


def test_windows_hold_as_many_values_as_fit() -> None:
    windows = Windows(4)
    assert windows.n_steps == MOST_POINTS
    windows.note_streams(100)
    assert windows.n_steps == MOST_VALUES // 400
    windows.note_streams(10**6)
    assert windows.n_steps == 1


def test_what_was_too_much_is_approached_slowly() -> None:
    windows = Windows(1)
    windows.note_too_much(800)
    assert [windows.n_steps, *grown(windows, 3)] == [400, 450, 506, 569]
    assert max(grown(windows, 100)) == MOST_POINTS


def test_a_step_that_had_to_be_found_slows_only_the_next_windows() -> None:
    windows = Windows(1)
    for n_steps in (8, 4, 2, 1):
        windows.note_unanswerable(n_steps)
    assert [windows.n_steps, *grown(windows, 4)] == [1, 2, 4, 8, 16]
