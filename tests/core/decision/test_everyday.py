"""Everyday streams by all defaults, in raw units: what is flagged, and what is not. Most were wrong once."""

import numpy as np
import pytest

from core import INCIDENT_EVENTS, Detector, DetectorConfig, Observation


def detector(n_features: int = 1, **fields) -> Detector:
    return Detector(DetectorConfig(n_features=n_features, **fields))


def flagged(X: np.ndarray, **fields) -> list[int]:
    """The rows that are flagged."""
    X = X.reshape(len(X), -1)
    return np.flatnonzero(detector(X.shape[1], **fields).observe(X).is_anomaly).tolist()


def happened(out: Observation, event: str) -> list[int]:
    """The rows at which that happened to an incident."""
    return np.flatnonzero(out.event == INCIDENT_EVENTS.index(event)).tolist()


@pytest.mark.parametrize("fields", [{}, {"half_life_samples": 200.0}])
def test_a_flat_stream_flags_its_jump_alone(fields):
    X = np.full(3000, 3.3)
    X[2000] = 9.0
    assert flagged(X, **fields) == [2000]


@pytest.mark.parametrize("fields", [{}, {"half_life_samples": 200.0}])
def test_a_flat_stream_measured_from_its_level_flags_nothing(fields):
    assert flagged(np.full(3000, 3.3), drift_relative=True, **fields) == []


@pytest.mark.parametrize("jumps", [[4899], [2000, 2500, 3000, 3500, 4000, 4500]])
def test_zeros_flag_their_jumps_alone(jumps):
    X = np.zeros(5000)
    X[jumps] = 10.0
    assert flagged(X) == jumps


@pytest.mark.parametrize("seed", range(5))
def test_coin_flips_flag_nothing(seed):
    assert flagged(np.random.default_rng(seed).integers(1, 3, 5000).astype(float)) == []


@pytest.mark.parametrize("kind", ["gaussian", "poisson"])
@pytest.mark.parametrize("rate", [0.02, 0.1, 0.4])
def test_sparse_counts_flag_what_is_high_and_not_all_that_is_not_zero(kind, rate):
    X = np.random.default_rng(0).poisson(rate, (6000, 1)).astype(float)
    X[5000], X[5500:5505] = 8, 5
    out = Detector(DetectorConfig(features=[{"name": "n", "kind": kind}])).observe(X)
    assert np.isfinite(out.score[out.ready]).all()
    assert out.is_anomaly[5000]
    assert out.is_anomaly[5500:5505].all()
    assert out.is_anomaly.mean() < 0.0165
    assert out.is_anomaly[:5000].sum() < 0.85 * np.count_nonzero(X[:5000])


def test_a_spike_has_the_highest_score_and_is_flagged():
    for seed in range(20):
        X = np.random.default_rng(seed).uniform(4, 6, (200, 1))
        X[150] = 41.0
        out = detector().observe(X)
        assert np.nanargmax(out.score) == 150
        assert np.flatnonzero(out.is_anomaly[100:]).tolist() == [50]


@pytest.mark.parametrize("fields", [{}, {"learn_from": "decided_normal"}, {"expected_anomaly_rate": 0.02}])
@pytest.mark.parametrize("high", [None, 500.0])
def test_every_hundredth_value_is_a_spike_and_few_others_are(fields, high):
    X = np.random.default_rng(13).integers(1, 11, 3001).astype(float)
    spikes = np.arange(100, 3001, 100)
    X[spikes] = spikes if high is None else high
    found = set(flagged(X, **fields))
    assert set(spikes.tolist()) <= found
    assert len(found) <= 30 + 3


@pytest.mark.parametrize("fields", [{}, {"learn_from": "decided_normal"}])
def test_the_second_outage_is_found_like_the_first(fields):
    """The first hid the second for 800 samples: its own scores had become the threshold."""
    rng = np.random.default_rng(0)
    parts = [rng.normal(100, 5, 1000), np.zeros(30), rng.normal(100, 5, 800), np.zeros(30), rng.normal(100, 5, 200)]
    found = set(flagged(np.concatenate(parts), **fields))
    assert set(range(1000, 1030)) <= found
    assert set(range(1830, 1860)) <= found
    assert len(found) <= 60 + 6


def test_a_long_outage_is_flagged_to_its_end_twice():
    rng = np.random.default_rng(1)
    X = rng.normal([40.0, 20.0, 8e9], [5.0, 3.0, 2e8], (3000, 3))
    X[1200:1500] = X[2100:2400] = 0.0
    out = detector(3).observe(X)
    for start in (1200, 2100):
        assert out.is_anomaly[start : start + 300].mean() > 0.95
        assert start in happened(out, "opened")
        assert start + 300 + 7 in happened(out, "closed")


@pytest.mark.parametrize("shape", ["normal", "lognormal", "uniform", "whole", "clusters"])
@pytest.mark.parametrize("m", [1, 5])
def test_no_more_false_alarms_after_the_warm_up_than_later(shape, m):
    shares = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = {
            "normal": lambda rng=rng: rng.normal(size=(1064, m)),
            "lognormal": lambda rng=rng: np.exp(rng.normal(size=(1064, m))),
            "uniform": lambda rng=rng: rng.uniform(size=(1064, m)),
            "whole": lambda rng=rng: rng.integers(0, 10, (1064, m)).astype(float),
            "clusters": lambda rng=rng: rng.normal(size=(1064, m)) + 8 * rng.integers(0, 2, (1064, 1)),
        }[shape]()
        out = detector(m).observe(X)
        shares.append([out.is_anomaly[a:b].mean() for a, b in ((32, 64), (64, 164), (164, 464), (464, 1064))])
    assert (np.mean(shares, 0) <= [0.02, 0.02, 0.01, 0.005]).all()


@pytest.mark.parametrize("k", [3, 10, 30])
@pytest.mark.parametrize("fields", [{}, {"labels_trusted": True}, {"threshold": "hindsight"}])
def test_labelling_one_incident_raises_no_false_alarms(k, fields):
    """Ten in a row, all flagged, all labelled: 160 of the next 1000 samples were flagged, where 9 were before."""
    rng = np.random.default_rng(k)
    model = detector(2, **fields)
    records = model.observe(np.vstack([rng.normal(size=(1000, 2)), np.full((k, 2), 8.0)])).records
    assert records.is_anomaly[1000:].all()
    model.feedback(records[1000:], [True] * k)
    assert model.observe(rng.normal(size=(1000, 2))).is_anomaly.mean() < 0.005


def test_dismissals_alone_leave_the_real_ones():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        model, false_alarms = detector(2), 0
        for _ in range(30):
            out = model.observe(rng.normal(size=(100, 2)))
            alarms = out.records[out.is_anomaly]
            false_alarms += len(alarms)
            if len(alarms):
                model.feedback(alarms, [False] * len(alarms))
        assert false_alarms < 9
        assert model.observe([[6, 6]]).is_anomaly[0]
        assert all(model.observe([[8, 8], [12, 12], [0, 7]]).is_anomaly)


def test_one_normal_label_ends_the_alarms_of_a_deploy():
    rng = np.random.default_rng(2)
    model = detector(3)
    model.observe(rng.normal(size=(1500, 3)))
    out = model.observe(rng.normal(6, 1, (5, 3)))
    assert out.is_anomaly.all()
    assert model.incident == 1501
    result = model.feedback(out.records[4:5], [False])
    assert result.accepted == [1501]
    assert model.incident == 0
    later = model.observe(rng.normal(6, 1, (300, 3)))
    assert later.is_anomaly.sum() <= 3


def test_a_deploy_that_nobody_tells_of_is_accepted_and_said_so_once():
    rng = np.random.default_rng(3)
    model = detector(3)
    model.observe(rng.normal(size=(1500, 3)))
    before = model.n_incidents
    out = model.observe(rng.normal(6, 1, (1000, 3)))
    assert happened(out, "accepted") == [31]
    assert out.is_anomaly[:32].all()
    assert out.is_anomaly[32:].sum() <= 5
    assert model.observe([[20.0, 20.0, 20.0]]).is_anomaly[0]
    assert model.n_incidents == before + len(happened(out, "opened")) + 1


def test_incidents_do_not_know_how_batches_were_cut_or_of_restarts():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(1500, 2))
    X[700:720], X[900:990], X[1200:1400, 0] = 9.0, rng.normal(7, 1, (90, 2)), 20.0
    whole, cut = detector(2), detector(2)
    expected = whole.observe(X)
    whole.feedback(expected.records[1390:1392], [True, None])
    start, parts = 0, []
    while start < len(X):
        stop = start + int(rng.integers(1, 60))
        parts.append(cut.observe(X[start:stop]))
        cut, start = Detector.from_bytes(cut.to_bytes()), stop
    for name in ("score", "threshold", "severity", "is_anomaly", "incident", "event"):
        column = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(column, getattr(expected, name))
    records = parts[0].records.concatenate([part.records for part in parts])
    cut.feedback(records[1390:1392], [True, None])
    assert cut.to_bytes() == whole.to_bytes()
