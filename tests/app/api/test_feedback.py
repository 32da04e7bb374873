import asyncio

import pytest

from app.metrics import LABEL_OUTCOMES
from app.storage import StoreUnavailable
from app.storage.memory import MemoryStore
from core import Detector, DetectorConfig
from tests.app.harness import DisturbedStore, Service, blobs, raising


@pytest.fixture
async def observed(service):
    await service.observe(blobs(60), ids=[f"i{i}" for i in range(1, 61)])
    return service


async def test_the_truth_moves_the_threshold_and_the_counts(observed):
    flagged = (await observed.observe([[60.0, -60.0]]))["seq"][0]
    answer = await observed.feedback({"seq": flagged, "anomaly": False}, {"id": "i50", "anomaly": True})
    assert answer["seq"] == [flagged, 50]
    assert answer["id"] == [None, "i50"]
    assert answer["outcome"] == ["applied", "applied"]
    assert answer["outcomes"] == dict.fromkeys(LABEL_OUTCOMES, 0) | {"applied": 2}
    assert answer["retracted"] == [False, True]
    assert (answer["false_alarms"], answer["misses"], answer["cost"], answer["labels"]) == (1, 1, 2.0, 2)
    assert answer["oldest_seq"] == 1
    described = await observed.accepted("GET", "/streams/s")
    assert described["threshold"] == answer["threshold_after"]
    assert described["costs"]["misses"] == 1


async def test_rates_and_regret_are_told_in_both_answers(observed):
    flagged = (await observed.observe([[60.0, -60.0]]))["seq"][0]
    answer = await observed.feedback({"seq": flagged, "anomaly": False}, {"id": "i50", "anomaly": True})
    assert (answer["precision"], answer["precision_low"]) == (0.0, 0.0)
    assert 0 < answer["precision_high"] < 1
    assert answer["regret"] == answer["cost"] - answer["best_fixed_cost"]
    assert [answer[name] for name in ("recall", "recall_low", "recall_high")] == [None] * 3
    described = await observed.accepted("GET", "/streams/s")
    assert set(described["costs"]) < set(answer)
    assert all(answer[name] == value for name, value in described["costs"].items())


async def test_before_any_label_rates_are_null_and_there_is_no_regret(observed):
    costs = (await observed.accepted("GET", "/streams/s"))["costs"]
    assert (costs["precision"], costs["recall"], costs["regret"]) == (None, None, 0.0)


async def test_the_threshold_is_told_before_and_after(observed):
    detector = Detector(DetectorConfig(n_features=2))
    seen = detector.observe(blobs(60)).records[40:60]
    expected = detector.feedback(seen, [True] * 20)
    answer = await observed.feedback(*({"seq": seq, "anomaly": True} for seq in range(41, 61)))
    assert answer["threshold_before"] == expected.threshold_before
    assert answer["threshold_after"] == expected.threshold_after
    assert answer["retracted"] == expected.retracted.tolist()


async def test_a_label_is_applied_once_then_revised_then_withdrawn(observed):
    for anomaly, outcome in ((True, "applied"), (True, "duplicate"), (False, "revised"), (None, "withdrawn")):
        before = await observed.export()
        answer = await observed.feedback({"seq": 50, "anomaly": anomaly})
        assert answer["outcome"] == [outcome]
        assert (await observed.export() == before) == (outcome == "duplicate")
    assert answer["labels"] == 0


async def test_a_duplicate_leaves_no_trace_in_the_log(observed):
    await observed.feedback({"seq": 50, "anomaly": True})
    size = await observed.store.size("s")
    await observed.feedback({"seq": 50, "anomaly": True})
    assert await observed.store.size("s") == size


async def test_labels_that_find_no_sample(observed):
    answer = await observed.feedback(
        {"seq": 61, "anomaly": True}, {"id": "nobody", "anomaly": True}, {"seq": 2**53 - 1, "anomaly": None}
    )
    assert answer["outcome"] == ["unknown"] * 3
    assert answer["seq"] == [61, None, 2**53 - 1]
    assert answer["outcomes"]["unknown"] == 3


async def test_contradicting_labels_apply_neither(observed):
    before = await observed.export()
    answer = await observed.feedback(
        {"seq": 50, "anomaly": True}, {"id": "i50", "anomaly": False}, {"seq": 99, "anomaly": True}
    )
    assert answer["outcome"] == ["conflict", "conflict", "unknown"]
    assert answer["outcomes"]["conflict"] == 1
    assert await observed.export() == before
    answer = await observed.feedback({"seq": 50, "anomaly": None}, {"seq": 50, "anomaly": False})
    assert answer["outcome"] == ["conflict", "conflict"]


async def test_the_same_label_twice_counts_once(observed):
    answer = await observed.feedback({"seq": 50, "anomaly": True}, {"id": "i50", "anomaly": True})
    assert answer["outcome"] == ["applied", "applied"]
    assert answer["outcomes"]["applied"] == 1
    assert answer["misses"] == 1
    assert await observed.metric("itan_labels_total", outcome="applied") == 1


async def test_the_id_wins_over_the_seq(observed):
    answer = await observed.feedback({"id": "i50", "seq": 51, "anomaly": True})
    assert answer["seq"] == [50]


async def test_a_label_of_the_warm_up_is_applied(observed):
    answer = await observed.feedback({"seq": 3, "anomaly": True})
    assert answer["outcome"] == ["applied"]
    assert answer["threshold_before"] == answer["threshold_after"]
    assert (await observed.feedback({"seq": 3, "anomaly": True}))["outcome"] == ["duplicate"]


async def test_a_label_before_ready_is_applied(service):
    await service.observe(blobs(5))
    answer = await service.feedback({"seq": 3, "anomaly": True})
    assert answer["outcome"] == ["applied"]
    assert answer["threshold_before"] is answer["threshold_after"] is None
    assert (await service.observe(blobs(40)))["ready"][-1]


async def test_a_dry_run_says_the_same_and_changes_nothing(observed):
    labels = [{"seq": 50, "anomaly": True}, {"seq": 55, "anomaly": False}, {"seq": 99, "anomaly": True}]
    before, counted = await observed.export(), await observed.metric("itan_labels_total", outcome="applied")
    tried = await observed.feedback(*labels, query="&dry_run=true")
    assert await observed.export() == before
    assert await observed.metric("itan_labels_total", outcome="applied") == counted
    done = await observed.feedback(*labels)
    assert tried.pop("dry_run")
    assert not done.pop("dry_run")
    assert tried == done


async def test_samples_beyond_the_horizon_are_expired():
    async with Service(label_horizon_samples=10) as service:
        await service.observe(blobs(30), ids=[f"i{i}" for i in range(30)])
        await service.observe(blobs(30))
        await service.registry.save(service.registry.sessions["s"])
        answer = await service.feedback(*({"seq": seq, "anomaly": True} for seq in (1, 30, 50, 51, 60)))
        assert answer["oldest_seq"] == 51
        assert answer["outcome"] == ["expired", "expired", "expired", "applied", "applied"]
        assert (await service.feedback({"id": "i3", "anomaly": True}))["outcome"] == ["unknown"]


async def test_a_label_expires_at_the_horizon_whether_or_not_the_log_was_trimmed():
    async with Service(label_horizon_samples=10) as service:
        await service.observe(blobs(60), ids=[f"i{i}" for i in range(60)])
        labels = [{"seq": 50, "anomaly": True}, {"id": "i48", "anomaly": False}, {"seq": 51, "anomaly": True}]
        untrimmed = await service.feedback(*labels, query="&dry_run=true")
        assert untrimmed["outcome"] == ["expired", "expired", "applied"]
        assert (await service.accepted("GET", "/streams/s"))["oldest_seq"] == untrimmed["oldest_seq"] == 51
        await service.registry.save(service.registry.sessions["s"])
        trimmed = await service.feedback(*labels[::2], query="&dry_run=true")
        assert trimmed["outcome"] == ["expired", "applied"]
        assert trimmed["threshold_after"] == untrimmed["threshold_after"]


async def test_samples_before_a_reset_are_expired(observed):
    await observed.accepted("POST", "/streams/s/reset")
    answer = await observed.feedback({"seq": 50, "anomaly": True}, {"seq": 61, "anomaly": True})
    assert answer["outcome"] == ["expired", "unknown"]
    assert answer["oldest_seq"] == 61


async def test_many_labels_of_all_sorts(observed):
    await observed.feedback(*({"seq": seq, "anomaly": False} for seq in range(33, 61)))
    answer = await observed.feedback(*({"seq": seq, "anomaly": True} for seq in range(33, 80)))
    assert answer["outcomes"]["revised"] == 28
    assert answer["outcomes"]["unknown"] == 19
    assert answer["labels"] == answer["misses"] + answer["true_alarms"] == 28


async def test_labels_of_samples_with_labels_find_their_newest_record(observed):
    await observed.feedback({"seq": 50, "anomaly": True})
    await observed.feedback({"seq": 50, "anomaly": False})
    await observed.feedback({"seq": 50, "anomaly": True})
    once = Service()
    async with once:
        await once.observe(blobs(60))
        await once.feedback({"seq": 50, "anomaly": True})
        expected = await once.accepted("GET", "/streams/s")
    assert (await observed.accepted("GET", "/streams/s"))["costs"] == expected["costs"]


async def test_a_label_before_its_sample_is_unknown_and_leaves_nothing_behind(observed):
    assert (await observed.feedback({"id": "later", "anomaly": True}))["outcome"] == ["unknown"]
    await observed.observe([[1.0, 1.0]], ids=["later"])
    answer = await observed.feedback({"id": "later", "anomaly": True})
    assert (answer["outcome"], answer["labels"]) == (["applied"], 1)


async def test_a_retry_after_a_lost_answer_is_a_duplicate():
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        await service.observe(blobs(60))
        store.after["append"] = raising(StoreUnavailable("answer lost"))
        labels = {"labels": [{"seq": 50, "anomaly": True}]}
        await service.refused("POST", "/feedback?stream=s", 503, "store_unavailable", json=labels)
        del store.after["append"]
        answer = await service.feedback({"seq": 50, "anomaly": True})
        assert (answer["outcome"], answer["labels"]) == (["duplicate"], 1)


async def test_thousands_of_labels_in_one_call(service):
    await service.observe(blobs(3000))
    before = (await service.store.size("s")).log_entries
    answer = await service.feedback(*({"seq": seq, "anomaly": seq % 50 == 0} for seq in range(501, 3501)))
    assert answer["outcomes"] == dict.fromkeys(LABEL_OUTCOMES, 0) | {"applied": 2500, "unknown": 500}
    assert answer["labels"] == 2500
    assert (await service.store.size("s")).log_entries == before + 1


@pytest.mark.parametrize("is_gone", [True, False])
async def test_labels_whose_client_went_away_while_they_waited_are_dropped(service, is_gone):
    """It may have sent newer labels elsewhere, which a late copy of the older ones must not undo."""
    await service.observe(blobs(40))
    body, answers, is_over = b'{"labels": [{"seq": 3, "anomaly": true}]}', [], asyncio.Event()

    async def receive():
        nonlocal body
        if body is not None:
            sent, body = body, None
            return {"type": "http.request", "body": sent, "more_body": False}
        if not is_gone:
            await is_over.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        answers.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/feedback",
        "raw_path": b"/feedback",
        "root_path": "",
        "query_string": b"stream=s",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8000),
    }
    async with service.registry.changing("s"):
        waiting = asyncio.create_task(service.app(scope, receive, send))
        await asyncio.sleep(0.05)
    await waiting
    assert answers[0]["status"] == (400 if is_gone else 200)
    again = await service.feedback({"seq": 3, "anomaly": True})
    assert again["outcome"] == ["applied" if is_gone else "duplicate"]
