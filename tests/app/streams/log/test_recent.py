"""What the list of streams shows of the newest samples follows from the log, however it is cut, after any restart."""

import pytest

from app.streams.log.log import Log
from app.streams.log.recent import Recent, recent_of
from app.streams.state.state import StreamState
from tests.app.harness import NOW, DisturbedStore, Service, raising
from tests.app.incidents import begin, broken, ordinary

HOUR = int(NOW // 3600)


def recent(service: Service) -> Recent:
    return service.registry.peek("s").recent


async def row(service: Service) -> dict:
    (shown,) = (await service.accepted("GET", "/streams?details=true"))["streams"]
    return shown


@pytest.fixture
async def broke(service: Service) -> Service:
    """A stream with one incident of three flagged samples, the last of an earlier hour, and ordinary ones after it."""
    await begin(service, 300, incident_close_samples=4, calendar=None)
    service.clock.advance(3_600)
    service.before = (await row(service))["flagged_lately"], (await row(service))["to_review"]
    times = [NOW + 3_500, NOW + 3_550, NOW - 7_200]
    service.first = (await service.observe([[7.0, 0.0], [0.0, 30.0], [7.0, 1.0]], timestamps=times))["seq"][0]
    await service.observe(ordinary(9, seed=1))
    return service


async def test_flags_are_counted_by_hour(broke):
    shown = await row(broke)
    assert shown["flagged_lately"] == broke.before[0] + 3
    assert (shown["flags_by_hour"][-2], shown["flags_by_hour"][-4]) == (2, 1)
    assert shown["flagged_time"] == NOW - 7_200
    assert shown["severity"] > 3
    assert shown["newest_time"] == NOW + 3_600
    broke.clock.advance(26 * 3_600)
    assert (await row(broke))["flagged_lately"] == 0


async def test_a_time_that_is_ahead_pushes_out_nothing_that_is_still_shown(broke):
    broke.clock.advance(20 * 3_600)
    flagged = (await row(broke))["flags_by_hour"]
    assert flagged[0] == 1
    await broke.observe([[9.0, 9.0]], timestamps=[broke.clock.now() + 3_600])
    assert (await row(broke))["flags_by_hour"] == [*flagged[:-1], flagged[-1] + 1]


async def test_a_stream_with_a_snapshot_is_opened_without_a_look_into_its_log(broke):
    live = recent(broke)
    await broke.registry.save(broke.registry.sessions["s"], closing="room")
    assert not broke.registry.sessions
    store = DisturbedStore(broke.store)
    store.before["entries"] = raising(AssertionError("the log was read"))
    async with Service(store, broke.clock) as again, again.registry.changing("s") as session:
        assert (await session.state()).recent == live
    assert live.newest_time == NOW + 3_600


async def test_an_incident_is_to_review_until_one_of_its_samples_has_a_label(broke):
    assert (await row(broke))["to_review"] == broke.before[1] + 1
    await broke.feedback({"seq": broke.first, "anomaly": True}, {"seq": broke.first + 1, "anomaly": False})
    assert (await row(broke))["to_review"] == broke.before[1]
    await broke.feedback({"seq": broke.first, "anomaly": None})
    assert (await row(broke))["to_review"] == broke.before[1]
    await broke.feedback({"seq": broke.first + 1, "anomaly": None})
    assert (await row(broke))["to_review"] == broke.before[1] + 1


async def test_the_log_tells_it_and_a_crash_changes_nothing(broke):
    await broke.feedback({"seq": broke.first, "anomaly": True})
    live = recent(broke)
    assert await recent_of(Log(broke.store, "s"), broke.first + 12) == live
    await broke.crash()
    async with Service(broke.store, broke.clock) as again:
        await again.accepted("GET", "/streams/s")
        await again.observe(ordinary(1, seed=3))
        assert recent(again).flags == live.flags
        assert recent(again).labels == live.labels
        assert recent(again).flagged_time == live.flagged_time


async def test_a_stream_of_an_earlier_version_gets_it_from_its_log(broke):
    live, store = recent(broke), broke.store
    await broke.registry.save(broke.registry.sessions["s"], closing="room")
    stored = store.stored["s"]
    state = StreamState.from_bytes(stored.snapshot.body, stored.snapshot.position)
    state.recent, stored.summary = None, None
    stored.snapshot = stored.snapshot.__class__(stored.snapshot.position, state.to_bytes())
    shown = await row(broke)
    assert shown["flagged_lately"] == broke.before[0] + 3
    assert not broke.registry.sessions
    await broke.observe(ordinary(1, seed=3))
    assert recent(broke).labels == live.labels


async def test_however_samples_are_cut_it_is_the_same(service):
    whole = ordinary(300) + [[8.0 + i, 9.0] for i in range(9)] + ordinary(40, seed=1)
    times = [NOW - 1_000 * (i * 37 % 100) for i in range(len(whole))]
    for stream, size in (("a", len(whole)), ("b", 7)):
        for begin_ in range(0, len(whole), size):
            part = slice(begin_, begin_ + size)
            await service.observe(whole[part], stream, timestamps=times[part])
    one, other = (service.registry.peek(stream).recent for stream in ("a", "b"))
    assert one == other
    assert one.flags
    assert one.labels


async def test_only_the_newest_day_and_the_newest_incidents_are_kept(service, monkeypatch):
    monkeypatch.setattr("app.streams.log.recent.INCIDENTS_KEPT", 2)
    await begin(service, 200, incident_close_samples=2)
    for day in range(4):
        await broken(service, 2, seed=day)
        await service.observe(ordinary(6, seed=day))
        service.clock.advance(20 * 3_600)
    kept = recent(service)
    assert len(kept.labels) == 2
    assert [hour for hour, _ in kept.flags if hour <= kept.flags[-1][0] - 24] == []
    assert len(kept.flags) > 1
