"""What a rule tells: once for each incident that opens and ends, in order, whatever the receiver does."""

import asyncio
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from app.notices import attempts as module
from app.notices import delivery
from app.notices import lane as lane_module
from app.notices.outbox import PAGE, opened, waiting
from app.notices.posts import ALERT_SECONDS
from app.notices.rule import QuietHours
from app.notices.sender import NotDelivered
from app.storage import StoreUnavailable
from app.streams.log.incident_ids import read_id
from tests.app.harness import until
from tests.app.notices.conftest import Office, Streams
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
    assert (said["state"], said["peak_severity"]) == ("closed", 5.0)
    assert said["url"] == "https://itan.example.org/#/streams/web-1?incident=31"
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
        assert await store.count_changes(waiting("on-call")) == 2
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
        await lane.look_again()
        await lane.look_again()
        counts = [len(one.json) for one in receiver.received]
        assert counts == [1, 1, 2]
        for _ in range(3):
            clock.ahead += ALERT_SECONDS / 4 + 1
            await lane.look_again()
            (newest, _) = receiver.received[-1].json
            assert datetime.fromisoformat(newest["endsAt"]).timestamp() > clock.now() + ALERT_SECONDS / 2
        await streams.close("a", 1)
        await office.round()
        clock.ahead += ALERT_SECONDS
        await lane.look_again()
        assert [alert["labels"]["stream"] for alert in receiver.received[-1].json] == ["b"]


async def test_a_rule_that_tells_ends_only_hears_of_a_dismissal_by_label(office, streams, store):
    async with receiving() as receiver:
        await office.put("on-call", url=receiver.url, tell=("closed",))
        await streams.open("s", 1)
        await office.round()
        await streams.change("s", 1, is_label=True, ended="dismissed", n_normal=1)
        await office.round()
    assert told(receiver) == [("s", 1, "closed")]
    assert receiver.received[0].json["data"]["state"] == "dismissed"
    assert await is_done(store)


async def test_a_narrowed_rule_lets_go_of_what_it_told_before(office, streams, store, clock):
    async with receiving() as receiver:
        await office.put("alerts", url=receiver.url, target="alertmanager", secret="")
        await streams.open("web", 1)
        await streams.open("db-1", 1)
        await office.round()
        rule = await office.put("alerts", url=receiver.url, target="alertmanager", secret="", streams="db-*")
        clock.ahead += 10
        await office.lane("alerts", rule).look_again()
        assert [alert["labels"]["stream"] for alert in receiver.received[-1].json] == ["db-1"]
        assert await store.count_changes(opened("alerts")) == 1


async def test_a_narrowed_rule_tells_nothing_that_waited_for_it(office, streams, store):
    async with receiving() as receiver:
        await office.put("on-call", url=receiver.url)
        await streams.open("web", 1)
        office.delivery._audience.rules = await office.rules.all()
        await office.delivery.route()
        await office.put("on-call", url=receiver.url, streams="db-*")
        await office.round()
    assert not receiver.received
    assert await is_done(store)


async def test_tries_stop_where_quiet_hours_begin_and_go_on_after_them(office, streams, clock):
    now = datetime.fromtimestamp(clock.now(), UTC)
    begin, end = ((now + timedelta(minutes=after)).strftime("%H:%M") for after in (10, 360))
    async with receiving(answers=[503] * 99) as receiver:
        rule = await office.put("on-call", url=receiver.url, quiet_hours=QuietHours(begin, end))
        await streams.open("s", 1)
        await office.round()
        assert rule.is_quiet(clock.now())
        tries = len(receiver.received)
        assert 5 < tries < 20
        receiver.answers.clear()
        clock.ahead += 6 * 3600
        await office.round()
    assert len(set(receiver.ids)) == 1
    assert len(receiver.received) == tries + 1


async def test_what_is_too_old_is_dropped_without_a_try(office, streams, store, clock):
    async with receiving() as receiver:
        await office.put("on-call", url=receiver.url)
        await streams.open("s", 1)
        await streams.close("s", 1)
        clock.ahead += module.KEPT_SECONDS + 1
        await office.round()
    assert not receiver.received
    assert office.metric('itan_notices_total{outcome="expired"}') == 2
    assert await is_done(store)


class Selective:
    """Sends nothing: takes all streams but one, which it calls a fault of its own."""

    def __init__(self, bad):
        self.bad, self.tries, self.took = bad, 0, []

    async def send(self, post):
        stream = msgspec.json.decode(post.body)["data"]["stream"]
        if stream == self.bad:
            self.tries += 1
            raise NotDelivered("the receiver answered 500", 500)
        self.took.append(stream)

    async def close(self):
        pass


async def test_a_notice_that_is_never_taken_holds_up_its_stream_alone(store, streams, clock):
    office = Office(store, clock, sender=Selective("bad"))
    clock.sleep = lambda seconds: asyncio.sleep(0.001)
    await office.put("on-call", url="http://127.0.0.1:9/")
    await streams.open("bad", 1)
    await office.delivery.work()
    await until(lambda: office.sender.tries > 2)
    for n in range(300):
        await streams.open(f"s{n}", 1)
    await office.delivery.work()
    await until(lambda: len(office.sender.took) == 300)
    assert await store.count_changes(waiting("on-call")) == 1
    await streams.close("bad", 1)
    await office.delivery.work()
    office.sender.bad = None
    await until(lambda: len(office.sender.took) == 302)
    assert office.sender.took[-2:] == ["bad", "bad"]
    await office.close()


async def test_streams_that_fail_are_bounded_and_the_rest_waits(store, streams, clock, monkeypatch):
    monkeypatch.setattr(lane_module, "MOST_IN_WORK", 3)
    office = Office(store, clock, sender=Selective("bad"))
    clock.sleep = lambda seconds: asyncio.sleep(0.001)
    await office.put("on-call", url="http://127.0.0.1:9/")
    for n in range(10):
        await streams.open(f"s{n}", 1)
    most = 0
    send = office.sender.send

    async def count(post):
        nonlocal most
        most = max(most, len(office.delivery._lanes["on-call"][0]._in_work))
        await send(post)

    office.sender.send = count
    await office.delivery.work()
    await until(lambda: len(office.sender.took) == 10)
    assert most == 3
    await office.close()


async def test_a_store_that_fails_for_a_while_ends_no_lane(office, streams, store, clock, monkeypatch):
    clock.sleep = lambda seconds: asyncio.sleep(0.01)
    failing = []

    async def fail(*_, **__):
        failing.append(1)
        raise StoreUnavailable("down")

    async with receiving() as receiver:
        await office.put("on-call", url=receiver.url)
        await streams.open("s", 1)
        await office.delivery.work()
        _, task = office.delivery._lanes["on-call"]
        for verb in ("find_incidents", "changed_incidents", "move_changes"):
            with monkeypatch.context() as patched:
                patched.setattr(store, verb, fail)
                office.delivery._lanes["on-call"][0].more.set()
                await until(lambda: len(failing) > 1)
            failing.clear()
        await receiver.wait_for(1)
        assert not task.done()


async def test_an_unexpected_fault_holds_up_its_stream_alone(office, streams, store, clock, monkeypatch, caplog):
    real = store.find_incidents

    async def fail(stream, seqs):
        if stream == "bad":
            raise ValueError("an unreadable row")
        return await real(stream, seqs)

    async with receiving() as receiver:
        rule = await office.put("on-call", url=receiver.url)
        for stream in ("bad", "good"):
            await streams.open(stream, 1)
        office.delivery._audience.rules = await office.rules.all()
        await office.delivery.route()
        monkeypatch.setattr(store, "find_incidents", fail)
        async with asyncio.TaskGroup() as group:
            await office.lane("on-call", rule).begin(group)
        assert told(receiver) == [("good", 1, "opened")]
        assert await store.count_changes(waiting("on-call")) == 1
    assert "an unreadable row" in caplog.text


async def test_an_incident_of_a_stream_made_again_is_another_whatever_its_samples_say(office, store, clock):
    async with receiving() as receiver:
        rule = await office.put("on-call", url=receiver.url)
        lane = office.lane("on-call", rule)  # the same through both lives of the stream
        office.lane = lambda name, rule: lane
        for _ in range(2):
            streams = Streams(store, clock)
            await streams.open("s", 1)
            await office.round()
            await streams.close("s", 1)
            await office.round()
            await streams.open("s", 5)
            await office.round()
            await store.delete("s")
            clock.ahead += 1
    data = [one.json["data"] for one in receiver.received]
    assert told(receiver) == 2 * [("s", 1, "opened"), ("s", 1, "closed"), ("s", 5, "opened")]
    assert [one["begin"] for one in data[:3]] == [one["begin"] for one in data[3:]]
    assert len(set(receiver.ids)) == 6
    assert read_id(data[0]["id"]) != read_id(data[3]["id"])


async def test_an_open_incident_whose_stream_is_gone_is_forgotten(office, streams, store, clock):
    async with receiving() as receiver:
        rule = await office.put("on-call", url=receiver.url)
        await streams.open("s", 1)
        await office.round()
        assert await store.count_changes(opened("on-call")) == 1
        await store.delete("s")
        await office.lane("on-call", rule).look_again()
    assert await is_done(store)


async def test_what_waits_of_an_incident_is_one_change_whatever_has_happened(office, streams, store):
    async with receiving() as receiver:
        await office.put("on-call", url=receiver.url)
        office.delivery._audience.rules = await office.rules.all()
        for n in range(20):
            await streams.change("s", 1, n_flagged=n + 1)
            await office.delivery.route()
        assert await store.count_changes(waiting("on-call")) == 1
        await streams.change("s", 1, is_label=True, ended="dismissed", n_normal=1)
        await office.delivery.route()
        await office.round()
    # a label alone opens nothing: the change before it still counts
    assert told(receiver) == [("s", 1, "opened"), ("s", 1, "closed")]
    assert await is_done(store)


async def test_a_change_that_comes_while_the_one_before_is_told_is_not_lost(office, streams, store):
    async with receiving() as receiver:
        await office.put("on-call", url=receiver.url)
        send = office.sender.send

        async def close_meanwhile(post):
            if not receiver.received:
                await streams.close("s", 1)
                await office.delivery.route()
            return await send(post)

        office.sender.send = close_meanwhile
        await streams.open("s", 1)
        await office.round()
    assert told(receiver) == [("s", 1, "opened"), ("s", 1, "closed")]
    assert await is_done(store)


async def test_what_waits_is_bounded_and_the_oldest_is_dropped(office, streams, store, monkeypatch, caplog):
    monkeypatch.setattr(delivery, "MOST_WAITING", 300)
    await office.put("on-call", url="http://127.0.0.1:9/")
    for n in range(550):
        await streams.open(f"s{n}", 1)
    office.delivery._audience.rules = await office.rules.all()
    await office.delivery.route()
    office.delivery._lanes["on-call"] = None, None
    newest = (await store.changed_incidents(550, waiting("on-call")))[-300:]
    await office.delivery.measure()
    office.delivery._lanes.clear()
    assert await store.changed_incidents(550, waiting("on-call")) == newest
    assert office.metric('itan_notices_total{outcome="expired"}') == 250
    assert office.metric("itan_notices_waiting") == 300
    assert "250 changes are dropped: more than 300 wait" in caplog.text


@pytest.mark.parametrize("status", [200, 400])
async def test_a_receiver_that_answers_gets_no_secret_into_the_log(office, streams, log, status):
    log.set_up()
    async with receiving(status=status) as receiver:
        await office.put("on-call", url=f"{receiver.url}/a-secret-path", target="chat", secret="")
        await office.put("hook", url=f"{receiver.url}/a-secret-path")
        await office.put("alerts", url=f"{receiver.url}/a-secret-path", target="alertmanager", secret="a-token")
        await streams.open("s", 1)
        await office.round()
        await streams.close("s", 1)
        await office.round()
    said = log.text()
    assert len(receiver.received) >= 6
    assert not any(secret in said for secret in ("a-secret-path", "whsec", "MfKQ9r8GKYq", "a-token"))
    assert ("rule hook: a notice is dropped (rejected)" in said) == (status == 400)


async def test_an_open_incident_of_a_stream_made_again_is_not_taken_for_the_one_before(office, store, clock):
    async with receiving() as receiver:
        rule = await office.put("alerts", url=receiver.url, target="alertmanager", secret="")
        await Streams(store, clock).open("s", 1)
        await office.round()
        await store.delete("s")
        clock.ahead += 1
        await Streams(store, clock).open("s", 1)
        await office.lane("alerts", rule).look_again()
    assert len(receiver.received) == 1
    assert await store.count_changes(opened("alerts")) == 0


async def test_a_stream_with_more_than_a_page_is_told_to_its_end_in_order(office, streams):
    async with receiving() as receiver:
        await office.put("on-call", url=receiver.url, tell=("closed",))
        seqs = range(1, 2 * PAGE + 50, 2)
        for seq in seqs:
            await streams.open("s", seq)
            await streams.close("s", seq)
        await office.delivery.work()
        await receiver.wait_for(len(seqs))
    assert told(receiver) == [("s", seq, "closed") for seq in seqs]
