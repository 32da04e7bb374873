"""The index of incidents says what the log says, whatever happens to the service in between."""

import random

import msgspec
import pytest

from app.storage import START, Snapshot, StoreUnavailable
from app.storage.memory import MemoryStore
from app.streams.log import log
from app.streams.log.events import read_event, read_records
from app.streams.log.incidents import Incident, Index, read_incident
from app.streams.log.log import Log
from app.streams.maintenance.copies import copy, digest
from app.streams.state.state import StreamState
from core import INCIDENT_EVENTS, DetectorConfig
from tests.app.harness import NOW, DisturbedStore, Service, raising
from tests.app.incidents import begin, broken, open_incident, ordinary, outage

CONFIG = {"incident_close_samples": 4, "incident_accept_samples": 40}


async def rows(service: Service) -> dict[int, Incident]:
    """Read the index."""
    return {row.seq: read_incident(row) for row in await service.store.incidents("s")}


async def told_by_log(service: Service) -> Index:
    """Make the index again, from the log alone."""
    index = Index(DetectorConfig(n_features=2))
    for entry in await Log(service.store, "s").entries(START, 100_000):
        index.take(entry)
    return index


async def newest(service: Service) -> Incident:
    """Give the newest incident; false alarms may have come before it."""
    return max((await rows(service)).values(), key=lambda incident: incident.seq)


async def test_an_incident_has_a_beginning_a_peak_and_an_end(service):
    await begin(service, **CONFIG)
    times = [NOW - 100 + i for i in range(3)]
    answer = await service.observe([[7.0, 0.0], [0.0, 30.0], [7.0, 1.0]], timestamps=times)
    first = answer["seq"][0]
    incident = await newest(service)
    assert (incident.seq, incident.opened, incident.begin) == (first, NOW * 1000, times[0])
    assert (incident.peak_seq, incident.peak_time) == (first + 1, times[1])
    assert incident.peak_score == answer["score"][1]
    assert incident.peak_severity == answer["severity"][1]
    assert (incident.last_seq, incident.last_time, incident.n_flagged) == (first + 2, times[2], 3)
    assert incident.state == "open"
    (main, *_) = incident.features
    assert (main.name, main.value) == ("0", 7.0)
    assert main.contribution > 5
    assert abs(main.expected) < 3
    service.clock.advance(60)
    await service.observe(ordinary(20, seed=1))
    closed = await newest(service)
    assert (closed.state, closed.ended_at, closed.last_time) == ("closed", NOW + 60, times[2])
    assert closed.n_flagged == 3


@pytest.mark.parametrize(
    ("labels", "state"), [([True], "confirmed"), ([False], "dismissed"), ([True, False], "confirmed")]
)
@pytest.mark.parametrize("is_over", [False, True])
async def test_labels_say_what_an_incident_was_until_they_are_withdrawn(service, labels, state, is_over):
    await begin(service, **CONFIG)
    seqs = (await broken(service, 3))["seq"]
    if is_over:
        await service.observe(ordinary(20, seed=1))
    before = await newest(service)
    await service.feedback(*({"seq": seq, "anomaly": label} for seq, label in zip(seqs, labels, strict=False)))
    told = await newest(service)
    assert told.state == state
    assert (told.ended != "") == (is_over or state == "dismissed")
    await service.feedback(*({"seq": seq, "anomaly": None} for seq in seqs[: len(labels)]))
    after = await newest(service)
    assert msgspec.structs.replace(after, position=before.position) == before
    assert after.position > told.position > before.position


async def test_a_dismissed_incident_is_over_with_the_next_sample(service):
    await begin(service, **CONFIG)
    seqs = (await broken(service, 3))["seq"]
    await service.feedback({"seq": seqs[0], "anomaly": False})
    assert await open_incident(service) is None
    await service.observe(outage(1))
    await service.feedback({"seq": seqs[0], "anomaly": None})
    assert (await rows(service))[seqs[0]].state == "closed"


async def test_a_long_incident_is_the_new_normal(service):
    await begin(service, **CONFIG)
    await broken(service, 200)
    assert (await rows(service))[1001].state == "accepted"


async def test_a_storm_of_flags_costs_few_writes(service):
    await begin(service, incident_accept_samples=100_000)
    flags, written = 0, set()
    for sample in outage(300):
        flags += sum((await service.observe([sample]))["is_anomaly"])
        written.add((await newest(service)).position)
    assert flags > 250
    assert len(written) <= 15
    incident = await newest(service)
    assert flags / 2 < incident.n_flagged <= flags


async def happen(service: Service, chance: random.Random, *, timed: bool) -> None:
    """Let something happen to the stream, with times or without, in batches of any size."""
    size = chance.choice([1, 1, 2, 7, 30])
    made = chance.choice([ordinary, ordinary, outage])(size, chance.randrange(10**6))
    if chance.random() < 0.3:
        made += outage(chance.randrange(1, 4))
    given = {"timestamps": [service.clock.now()] * len(made)} if timed else {}
    answer = await service.observe(made, **given)
    service.clock.advance(chance.choice([0.5, 400.0]))
    if chance.random() < 0.5:
        flagged = [seq for seq, flag in zip(answer["seq"], answer["is_anomaly"], strict=True) if flag]
        named = flagged or answer["seq"]
        older = [row.last_seq for row in (await rows(service)).values()]
        labels = {
            seq: chance.choice([True, False, False, None]) for seq in chance.sample(named + older, 1 + bool(older))
        }
        await service.feedback(*({"seq": seq, "anomaly": label} for seq, label in labels.items()))


@pytest.mark.parametrize("seed", [0, 2])
async def test_the_index_says_what_the_log_says_after_any_crash(seed):
    chance, memory = random.Random(seed), MemoryStore()
    store = DisturbedStore(memory)
    service = Service(store, snapshot_every_seconds=30)
    await service.__aenter__()
    await begin(service, 300, incident_close_seconds=300.0, incident_close_samples=4, incident_accept_samples=15)
    states = set()
    for _ in range(40):
        what = chance.random()
        if what < 0.15:
            await service.crash()
            service = Service(store, service.clock, snapshot_every_seconds=30)
            await service.__aenter__()
        elif what < 0.3:
            hook = chance.choice([store.before, store.after])
            hook["append"] = raising(StoreUnavailable("down"))
            await service.http.post("/observe?stream=s", json={"samples": outage(2, chance.randrange(100))})
            hook.clear()
            service.clock.advance(60)
        elif what < 0.4:
            service.clock.advance(60)
            await service.snapshotter.save_due()
        await happen(service, chance, timed=seed == 0)
        index = await told_by_log(service)
        found = await rows(service)
        assert found == index.rows
        now = index.ledger.current
        assert (now.seq if now is not None and not now.ended else None) == await open_incident(service)
        states |= {incident.state for incident in found.values()}
    assert len(states) >= 2
    await service.crash()


async def test_the_index_holds_each_incident_of_the_log(service):
    await begin(service, **CONFIG)
    for seed in range(5):
        await service.observe(outage(2, seed) + ordinary(10, seed))
    opened = set()
    for entry in await Log(service.store, "s").entries(START, 1000):
        records = read_records(read_event(entry.body).records)
        opened |= set(records.seq[records.event == INCIDENT_EVENTS.index("opened")].tolist())
    assert len(opened) >= 5
    assert set(await rows(service)) == opened


def forget_index(stored) -> None:
    """Leave a stream as an earlier version would, which had no index."""
    state = StreamState.from_bytes(stored.snapshot.body, stored.snapshot.position)
    state.incidents = None
    stored.snapshot = Snapshot(stored.snapshot.position, state.to_bytes())
    stored.incidents.clear()


async def test_a_stream_of_an_earlier_version_gets_its_index_from_its_log(service):
    await begin(service, **CONFIG)
    seqs = (await broken(service, 3))["seq"]
    await service.observe(ordinary(20, seed=1))
    await service.feedback({"seq": seqs[1], "anomaly": True})
    await broken(service, 2, seed=5)
    expected = await rows(service)
    assert {incident.state for incident in expected.values()} >= {"confirmed", "open"}
    stored = service.store.stored["s"]
    forget_index(stored)
    store, clock = service.store, service.clock
    await service.crash()
    async with Service(store, clock) as again:
        await again.observe(ordinary(1, seed=9))
        assert await rows(again) == expected
        await broken(again, 4, seed=5)
        assert await rows(again) == (await told_by_log(again)).rows
    later = stored.snapshot
    assert StreamState.from_bytes(later.body, later.position).incidents is not None


async def test_of_an_earlier_version_only_the_end_of_the_log_is_read(service, monkeypatch):
    await begin(service, **CONFIG)
    await broken(service, 3)
    await service.observe(ordinary(40, seed=1))
    (newest,) = (await broken(service, 1, seed=5))["seq"]
    assert len(await rows(service)) > 1
    store, clock = service.store, service.clock
    forget_index(store.stored["s"])
    await service.crash()
    monkeypatch.setattr(log, "NEWEST_SAMPLES", 20)
    async with Service(store, clock) as again:
        await again.observe(ordinary(1, seed=9))
        assert set(await rows(again)) == {newest}


async def test_a_reset_stream_has_no_incidents_and_goes_on(service):
    await begin(service, **CONFIG)
    await broken(service, 3)
    exported = await service.export()
    await service.accepted("POST", "/streams/s/reset")
    assert await rows(service) == {}
    await service.accepted(
        "PUT", "/streams/s/import", content=exported, headers={"Content-Type": "application/octet-stream"}
    )
    assert await rows(service) == {}
    await broken(service, 1, seed=4)
    incident = await newest(service)  # it had opened before the export
    assert incident.seq < incident.last_seq
    assert incident.n_flagged == 1


async def test_a_copy_of_a_stream_has_its_incidents(service):
    await begin(service, **CONFIG)
    await broken(service, 3)
    target = MemoryStore()
    assert await copy(service.store, target, "s") is not None
    assert await target.incidents("s") == await service.store.incidents("s") != []
    whole = await digest(target, "s")
    target.stored["s"].incidents.clear()
    assert await digest(target, "s") != whole
