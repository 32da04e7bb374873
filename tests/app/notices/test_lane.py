"""What a rule tells: once for each incident that opens and ends, in order, whatever the receiver does."""

from datetime import UTC, datetime, timedelta

import pytest

from app.notices import lane as module
from app.notices.outbox import opened, waiting
from app.notices.posts import ALERT_SECONDS
from app.notices.rule import QuietHours
from tests.app.notices.conftest import Office
from tests.app.notices.receiver import receiving


def told(receiver):
    return [
        (one.json["data"]["stream"], one.json["data"]["incident"], one.json["type"][9:]) for one in receiver.received
    ]


async def is_done(store, rule="on-call"):
    return [await store.count_changes(lane) for lane in ("", waiting(rule), opened(rule))] == [0, 0, 0]


async def test_an_incident_is_told_when_it_opens_and_when_it_ends(office, streams, store):
    async with receiving() as receiver:
        await office.put("on-call", url=receiver.url, streams="web-*")
        await streams.open("web-1", 31)
        await streams.open("db-1", 1)
        await office.round()
        assert told(receiver) == [("web-1", 31, "opened")]
        await office.round()
        await streams.close("web-1", 31, peak_severity=5.0)
        await office.round()
    assert told(receiver) == [("web-1", 31, "opened"), ("web-1", 31, "closed")]
    assert len(set(receiver.ids)) == 2
    said = receiver.received[1].json["data"]
    assert (said["state"], said["severity"]) == ("closed", 5.0)
    assert said["url"] == "https://itan.example.org/#/streams/web-1"
    assert await is_done(store)
    assert office.metric('itan_notices_total{outcome="sent"}') == 2


async def test_a_storm_of_flags_is_one_notice(office, streams, store):
    async with receiving() as receiver:
        await office.put("on-call", url=receiver.url)
        for n in range(1000):
            await streams.change("s", 1, n_flagged=n + 1)
            if n % 100 == 0:
                await office.round()
        await streams.close("s", 1)
        await office.round()
    assert told(receiver) == [("s", 1, "opened"), ("s", 1, "closed")]
    assert await is_done(store)


async def test_what_opened_and_ended_unseen_is_told_once_each(office, streams, store):
    async with receiving() as receiver:
        await office.put("on-call", url=receiver.url)
        for seq in (1, 5):
            await streams.open("s", seq)
            await streams.change("s", seq, n_flagged=2)
            await streams.close("s", seq)
        await office.round()
    assert told(receiver) == [("s", 1, "opened"), ("s", 1, "closed"), ("s", 5, "opened"), ("s", 5, "closed")]
    assert await is_done(store)


async def test_a_rule_tells_of_what_becomes_severe_later(office, streams, store):
    async with receiving() as receiver:
        await office.put("on-call", url=receiver.url, least_severity=4)
        await streams.open("s", 1)
        await office.round()
        assert not receiver.received
        await streams.change("s", 1, peak_severity=4.0)
        await office.round()
        assert told(receiver) == [("s", 1, "opened")]
        await streams.open("mild", 1)
        await streams.close("mild", 1)
        await office.round()
    assert told(receiver) == [("s", 1, "opened")]


async def test_labels_end_incidents_and_open_none(office, streams, store, clock):
    async with receiving() as receiver:
        await office.put("on-call", url=receiver.url)
        await streams.open("s", 1)
        await office.round()
        await streams.change("s", 1, is_label=True, ended="dismissed", n_normal=1)
        await office.round()
        assert receiver.received[-1].json["data"]["state"] == "dismissed"
        await streams.change("s", 1, is_label=True, ended="dismissed", ended_at=1.0, n_anomalous=1)
        again = Office(store, clock)
        await again.round()
    assert told(receiver) == [("s", 1, "opened"), ("s", 1, "closed")]
    assert await is_done(store)
    await again.close()


@pytest.mark.parametrize(("tell", "kinds"), [(("opened",), ["opened"]), (("closed",), ["closed"])])
async def test_a_rule_may_tell_one_of_the_two(office, streams, store, tell, kinds):
    async with receiving() as receiver:
        await office.put("on-call", url=receiver.url, tell=tell)
        await streams.open("s", 1)
        await office.round()
        await streams.close("s", 1)
        await office.round()
    assert [kind for _, _, kind in told(receiver)] == kinds
    assert await is_done(store)


async def test_the_night_is_quiet_and_the_morning_hears_of_what_is_still_open(office, streams, store, clock):
    begin = datetime.fromtimestamp(clock.now(), UTC)
    hours = QuietHours((begin - timedelta(hours=1)).strftime("%H:%M"), (begin + timedelta(hours=6)).strftime("%H:%M"))
    async with receiving() as receiver:
        await office.put("on-call", url=receiver.url, quiet_hours=hours)
        await streams.open("short", 1)
        await streams.open("long", 1)
        await streams.close("short", 1)
        await office.round()
        assert not receiver.received
        assert await store.count_changes(waiting("on-call")) == 3
        clock.ahead += 7 * 3600
        await office.round()
    assert told(receiver) == [("long", 1, "opened")]


async def test_a_receiver_that_is_down_for_an_hour_gets_all_in_order(office, streams, store, clock):
    async with receiving(answers=[503] * 90) as receiver:
        await office.put("on-call", url=receiver.url)
        for seq in range(1, 40, 2):
            await streams.open("s", seq)
            await streams.close("s", seq)
        began = clock.now()
        await office.round()
        assert clock.now() - began > 3600
    failed, delivered = receiver.ids[:90], receiver.ids[90:]
    assert set(failed) == {delivered[0]}
    order = [(one.json["data"]["incident"], one.json["type"]) for one in receiver.received[90:]]
    assert order == [(seq, f"incident.{kind}") for seq in range(1, 40, 2) for kind in ("opened", "closed")]
    assert len(set(delivered)) == 40
    assert office.metric("itan_notice_failures_total") == 90
    assert await is_done(store)


async def test_what_is_rejected_is_dropped_after_some_tries_and_the_next_is_told(office, streams, store):
    async with receiving(answers=[400] * module.MOST_REJECTIONS) as receiver:
        await office.put("on-call", url=f"{receiver.url}/a-secret")
        await streams.open("s", 1)
        await streams.close("s", 1)
        await office.round()
    assert len(set(receiver.ids[: module.MOST_REJECTIONS])) == 1
    assert told(receiver)[module.MOST_REJECTIONS :] == [("s", 1, "closed")]
    assert office.metric('itan_notices_total{outcome="rejected"}') == 1
    assert await is_done(store)


async def test_what_cannot_be_delivered_for_days_is_dropped_and_nothing_secret_logged(
    office, streams, store, caplog, monkeypatch
):
    monkeypatch.setattr(module, "KEPT_SECONDS", 3600.0)
    async with receiving() as receiver:
        pass
    await office.put("on-call", url=f"{receiver.url}/a-secret-path")
    await streams.open("s", 1)
    await office.round()
    assert office.metric('itan_notices_total{outcome="expired"}') == 1
    assert await store.count_changes(waiting("on-call")) == 0
    assert "127.0.0.1 does not take notices: ConnectError" in caplog.text
    assert not any(secret in caplog.text for secret in ("a-secret-path", "whsec"))


async def test_an_incident_whose_stream_is_gone_is_told_no_more(office, streams, store):
    async with receiving() as receiver:
        await office.put("on-call", url=receiver.url)
        await streams.open("s", 1)
        await office.round()
        await streams.change("s", 1, n_flagged=9)
        await store.delete("s")
        await office.round()
        assert await store.count_changes() == 1  # on Redis its event might still come
        office.clock.ahead += 120
        await office.round()
    assert told(receiver) == [("s", 1, "opened")]
    assert await is_done(store)


async def test_an_open_alert_is_told_again_in_time_and_a_closed_one_no_more(office, streams, clock):
    async with receiving() as receiver:
        rule = await office.put("alerts", url=receiver.url, target="alertmanager", secret="")
        for stream in ("a", "b"):
            await streams.open(stream, 1)
        await office.round()
        lane = office.lane("alerts", rule)
        await lane.send_again()
        await lane.send_again()
        counts = [len(one.json) for one in receiver.received]
        assert counts == [1, 1, 2, 2]
        for _ in range(3):
            clock.ahead += ALERT_SECONDS / 4 + 1
            await lane.send_again()
            (newest, _) = receiver.received[-1].json
            assert datetime.fromisoformat(newest["endsAt"]).timestamp() > clock.now() + ALERT_SECONDS / 2
        await streams.close("a", 1)
        await office.round()
        clock.ahead += ALERT_SECONDS
        await lane.send_again()
        assert [alert["labels"]["stream"] for alert in receiver.received[-1].json] == ["b"]
