"""The figures of a stream, and the histogram that takes its scores."""

import math
import statistics
import sys

import numpy as np
import pytest
from prometheus_client import CollectorRegistry, Histogram, generate_latest

from app.figures import RunningMean, StreamFigures
from app.metrics.distribution import MOST_WAITING, Distribution
from app.metrics.together import median

LARGEST = 1.7976931348623157e308


def fed(scores, *, threshold=10.0, now=0.0, figures=None):
    figures = figures or StreamFigures("s", {"normal": 0.002, "anomalous": 0.01})
    for score in scores:
        figures.take_scores([score], [threshold], int(score > threshold), now)
    return figures


def test_a_running_mean_is_the_mean_until_its_window_is_full():
    mean = RunningMean(100)
    numbers = np.random.default_rng(0).normal(size=100)
    for number in numbers.tolist():
        mean.add(number, 1)
    assert mean.mean == pytest.approx(numbers.mean())
    for _ in range(300):
        mean.add(5.0, 1)
    assert 4.7 < mean.mean < 5.0
    mean.add(7.0, 250)
    assert mean.mean == 7.0


def test_the_flag_rate_begins_at_the_expected_one_and_one_flag_does_not_top_all():
    figures = fed([11.0])
    assert 0.012 < figures.flag_rate < 0.03
    fed([11.0] * 1000, figures=figures)
    assert figures.flag_rate > 0.9


def test_log_loss_is_unknown_until_there_are_enough_scores():
    figures = fed([2.0] * 99)
    assert figures.log_loss is figures.usual_log_loss is figures.log_loss_rise is None
    fed([2.0], figures=figures)
    assert (figures.log_loss, figures.usual_log_loss, figures.log_loss_rise) == (pytest.approx(2.0),) * 2 + (0.0,)


def test_a_regime_that_no_longer_fits_raises_log_loss_for_a_while_whatever_the_rate_of_samples():
    figures = fed([2.0] * 200)
    fed([9.0] * 100_000, figures=figures, now=60.0)
    assert figures.log_loss_rise == pytest.approx(7.0, abs=0.2)
    assert figures.has_drifted
    for minute in range(2, 300):
        fed([9.0], figures=figures, now=60.0 * minute)
    assert figures.log_loss_rise < 0.1
    assert not figures.has_drifted


def test_an_outlier_does_not_look_like_a_model_that_fits_no_longer():
    figures = fed([2.0] * 200)
    fed([1e9], figures=figures)
    assert figures.log_loss_rise < 0.3
    assert figures.score == 1e9


def test_after_a_silence_the_usual_is_what_was_before_it():
    figures = fed([2.0] * 200)
    fed([6.0] * 500, figures=figures, now=1e6)
    assert figures.usual_log_loss == pytest.approx(2.0)
    assert figures.log_loss_rise > 3.5


def test_a_clock_that_goes_back_changes_nothing():
    figures = fed([2.0] * 200, now=1e6)
    fed([6.0] * 100, figures=figures)
    assert 2.0 <= figures.usual_log_loss <= 6.0


@pytest.mark.parametrize("threshold", [LARGEST, -LARGEST])
def test_the_largest_doubles_leave_everything_finite(threshold):
    figures = fed([LARGEST, -LARGEST] * 300, threshold=threshold)
    assert math.isfinite(figures.log_loss)
    assert math.isfinite(figures.log_loss_rise)
    distribution = Distribution("d", "d", [0.0], CollectorRegistry())
    distribution.add([LARGEST - -LARGEST, -LARGEST - LARGEST, LARGEST, -LARGEST])
    [metric] = distribution.collect()
    assert [sample.value for sample in metric.samples] == [2, 4, 4, 0.0]


@pytest.mark.parametrize("n", [0, 1, 7, MOST_WAITING + 5])
def test_a_distribution_counts_as_a_histogram_does(n):
    bounds = [0.5, 1.0, 2.0]
    numbers = np.abs(np.random.default_rng(1).normal(size=n)).round(1).tolist()
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    distribution = Distribution("d", "text", bounds, ours)
    histogram = Histogram("d", "text", buckets=bounds, registry=theirs)
    distribution.add(numbers)
    for number in numbers:
        histogram.observe(number)

    def told(registry):
        lines = generate_latest(registry).decode().splitlines()
        return {line.rpartition(" ")[0]: round(float(line.rpartition(" ")[2]), 6) for line in lines if line[0] != "#"}

    assert told(ours) == told(theirs)


@pytest.mark.parametrize(
    "values", [[1.5], [1.0, 4.0], [sys.float_info.max, sys.float_info.max], [-1e308, -1.5e308, 0.0]]
)
def test_a_median_of_the_largest_doubles_is_finite(values):
    assert median(values) == statistics.median([value / 2 for value in values]) * 2
    assert math.isfinite(median(values))
