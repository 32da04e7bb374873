"""The comparison with today's peers: each that is installed, on tiny streams."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from bench.paper.streams import three_gaussians
from bench.peers.run import Contender, compare, contenders, run_one, tables_of
from bench.peers.streams import labelled_files, read_stream
from bench.protocol import prequential, z_scored

ROWS = 110


@pytest.fixture(params=contenders(), ids=lambda c: c.name)
def contender(request: pytest.FixtureRequest) -> Contender:
    chosen: Contender = request.param
    if not chosen.present:
        pytest.skip(f"{chosen.module}, of the group bench, is not installed")
    return chosen


def test_each_gives_a_whole_result_and_repeats_it(contender: Contender) -> None:
    X, anomalous = three_gaussians(0, ROWS)
    first, again = (run_one(contender, "s", (z_scored(X), anomalous), True, np.inf).to_dict() for _ in range(2))
    assert first.pop("microseconds") > 0 < again.pop("microseconds")  # type: ignore[operator]
    assert first == again
    assert (first["rows"], first["stopped"]) == (ROWS, False)
    assert first["ranking_auc"] is not None
    assert first["state_bytes"] > 1000  # type: ignore[operator]
    assert (first["log_loss"] is not None) == contender.has_density


def test_each_scores_by_the_past_alone(contender: Contender) -> None:
    X = three_gaussians(0, 96)[0]
    changed = X.copy()
    changed[64:] += 5
    none = np.zeros(96, bool)
    first, other = (
        prequential(contender.make(2, False), Z, none, normals_only=False).scores[:64] for Z in (X, changed)
    )
    assert np.array_equal(first, other, equal_nan=True)


@pytest.mark.parametrize("name", ["ITAN default", "sklearn KernelDensity", "sklearn GaussianMixture", "rcf3 Forest"])
def test_far_is_more_anomalous_than_near(name: str) -> None:
    chosen = next(c for c in contenders() if c.name == name)
    if not chosen.present:
        pytest.skip(f"{chosen.module}, of the group bench, is not installed")
    X = np.random.default_rng(0).normal(size=(128, 2))
    X[[100, 120]] = 9.0
    scores = prequential(chosen.make(2, True), X, np.isin(np.arange(128), [100, 120]), normals_only=True).scores
    assert scores[[100, 120]].min() > np.delete(scores[64:], [36, 56]).max()


def test_tables_hold_every_stream_and_mark_what_was_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = [c for c in contenders() if c.module == "core"]
    slow = Contender("slow", ours[0].make, has_density=True)
    gone = Contender("gone", ours[0].make, "no_such_module")
    monkeypatch.setattr("bench.peers.run.contenders", lambda: [*ours, gone])
    results = list(compare(rows=ROWS))
    results.append(run_one(slow, "exp. 1", three_gaussians(0, ROWS), True, 1e-9))
    with_labels, without, losses = tables_of(results, 1e-9)
    text = with_labels.to_markdown()
    assert [row["model"] for row in with_labels.rows] == ["ITAN default", "ITAN paper", "slow"]
    assert [row["model"] for row in without.rows] == ["ITAN default", "ITAN paper"]
    assert len(losses.rows) == 4
    assert "exp. 1" in text
    assert "exp. 2" in text
    assert "stopped after so many rows" in text
    assert "Not installed, so left out: gone" in text
    assert "dSalmon" in text


def test_a_folder_is_read_in_order_and_thinned_evenly(tmp_path: Path) -> None:
    lines = ["row,f1,f2,label", *(f"{900 + t},{t},{2 * t % 7},{int(t % 10 == 0)}" for t in range(50))]
    with gzip.open(tmp_path / "b.csv.gz", "wt") as file:
        file.write("\n".join(lines) + "\n")
    (tmp_path / "a.csv").write_text("f1,label\n1,0\n2,1\n")
    (tmp_path / "SOURCE.md").write_text("not a stream")
    files = labelled_files(tmp_path)
    assert [f.name for f in files] == ["a.csv", "b.csv.gz"]
    X, anomalous = read_stream(files[1], 1000)
    assert (X.shape, anomalous.sum()) == ((50, 2), 5)
    assert X.mean(0) == pytest.approx([0, 0], abs=1e-12)
    thinned, labels = read_stream(files[1], 25)
    assert (len(thinned), len(labels)) == (25, 25)
    assert (np.diff(thinned[:, 0]) > 0).all()
