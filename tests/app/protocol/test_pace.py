from app.protocol.pace import Pace


def test_it_is_slow_when_a_span_brings_too_little():
    pace, body = Pace(10, 5), object()
    assert not pace.is_slow(body, 0, now=100)
    assert not pace.is_slow(body, 0, now=109)
    assert pace.is_slow(body, 49, now=110)
    assert not pace.is_slow(body, 99, now=119)
    assert not pace.is_slow(body, 99, now=120)


def test_every_span_counts_for_itself():
    pace, body = Pace(10, 5), object()
    pace.is_slow(body, 0, now=0)
    assert not pace.is_slow(body, 10**9, now=10)
    assert pace.is_slow(body, 10**9 + 49, now=20)


def test_another_thing_and_a_rest_begin_anew():
    pace, first, second = Pace(10, 5), object(), object()
    pace.is_slow(first, 0, now=0)
    assert not pace.is_slow(second, 0, now=15)
    pace.rest()
    assert not pace.is_slow(second, 0, now=30)
    assert pace.is_slow(second, 0, now=40)


def test_what_is_left_may_shrink():
    pace, answer = Pace(10, 5), object()
    pace.is_slow(answer, -1000, now=0)
    assert not pace.is_slow(answer, -950, now=10)
    assert pace.is_slow(answer, -901, now=20)
