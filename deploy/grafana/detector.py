"""The dashboard of the detector: does it flag what it should, and do its models fit."""

from grafana_foundation_sdk.builders.dashboard import Dashboard, DashboardLink, QueryVariable
from grafana_foundation_sdk.models.dashboard import VariableRefresh, VariableSort
from panels import SOURCE, add, board, buckets, chart, number

STREAM = 'stream="$stream"'
TO_STREAM = "/d/itan-detector?var-stream=${__field.labels.stream}&${__url_time_range}"


def rate(metric: str) -> str:
    """Sum the increase of a counter of all workers in a second."""
    return f"sum(rate({metric}[$__rate_interval]))"


def of_stream(figure: str) -> str:
    """Read a figure of the chosen stream, whichever worker has it."""
    return f"max(itan_stream_{figure}{{{STREAM}}})"


def build() -> Dashboard:
    """Make the dashboard."""
    dashboard = board(
        "itan-detector",
        "itan: detector",
        "Flags, thresholds, labels and models; below, one stream by name. The alerts' runbook is docs/runbook.md.",
        other=("itan-service", "Service"),
    ).with_variable(
        QueryVariable("stream")
        .label("Stream")
        .description("Streams of ITAN_METRICS_STREAMS, and those that are flagged most")
        .datasource(SOURCE)
        .query("label_values(itan_stream_samples, stream)")
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
    )
    add_overview(dashboard)
    add_decisions(dashboard)
    add_labels(dashboard)
    add_models(dashboard)
    add_stream(dashboard)
    return dashboard


def add_overview(dashboard: Dashboard) -> None:
    """Add what to look at first."""
    false_alarms = 'sum(increase(itan_confusion_total{cell="fp"}[6h]))'
    labelled_flags = 'sum(increase(itan_confusion_total{cell=~"tp|fp"}[6h]))'
    add(
        dashboard,
        "At a glance",
        number("Samples", "Learned a second.", "ops", rate('itan_samples_total{outcome="learned"}'), []),
        number("Flags", "Samples found anomalous, a second.", "ops", rate("itan_flags_total"), []),
        number(
            "Flags to expected",
            "Flags of the last hour, as a multiple of the anomalies and false alarms that the streams' configs expect. "
            "Labels move it.",
            "short",
            "sum(increase(itan_flags_total[1h])) / sum(increase(itan_expected_flags_total[1h]))",
            [(0.01, "green"), (3, "orange"), (10, "red")],
            low="orange",
        ),
        number(
            "Open incidents",
            "Runs of flagged samples that have not ended yet, over all streams.",
            "short",
            "sum(itan_open_incidents)",
            [],
        ),
        number(
            "False alarms",
            "Share of normal samples among the flagged ones that were labelled within 6 hours.",
            "percentunit",
            f"{false_alarms} / {labelled_flags}",
            [(0.5, "orange"), (0.9, "red")],
        ),
        number(
            "Largest rise of log-loss",
            "How far the recent scores of a stream are above its usual ones, in nats, for the stream with the largest "
            "rise. Above 3 its model no longer fits.",
            "short",
            "max(itan_log_loss_rise_nats)",
            [(1, "orange"), (3, "red")],
        ),
        number(
            "Cost beyond best fixed",
            "Cost of the wrong decisions so far, minus that of each stream's best fixed threshold in hindsight. Below "
            "0 the moving thresholds did better than any fixed ones.",
            "short",
            "sum(itan_cost) - sum(itan_best_fixed_cost)",
            [],
        ),
        number(
            "Replay mismatches",
            "Streams whose replay gave other scores than the log holds, until somebody accepts that.",
            "short",
            "sum(itan_mismatched_streams)",
            [(1, "red")],
        ),
    )


def add_decisions(dashboard: Dashboard) -> None:
    """Add what is flagged, and how surely."""
    expected_false = rate('itan_expected_flags_total{truth="normal"}')
    add(
        dashboard,
        "Decisions",
        chart(
            "Flagged share",
            "Flagged share of the samples with a score; what the configs expect, and the false alarms among it.",
            "percentunit",
            (f"{rate('itan_flags_total')} / {rate('itan_surprise_nats_count')}", "flagged"),
            (f"{rate('itan_expected_flags_total')} / {rate('itan_surprise_nats_count')}", "expected"),
            (f"{expected_false} / {rate('itan_surprise_nats_count')}", "expected false alarms"),
            width=6,
        ),
        chart(
            "Incidents",
            "Opened, closed, or accepted as the new normal, by a label or because they lasted, a second.",
            "ops",
            ("sum by (event) (rate(itan_incidents_total[$__rate_interval]))", "{{event}}"),
            width=6,
        ),
        chart(
            "Most flagged streams",
            "Flagged share of about the last 1000 samples. Click on a line to see the stream below.",
            "percentunit",
            ("topk(10, max by (stream) (itan_stream_flag_rate))", "{{stream}}"),
            links=[DashboardLink("Show this stream").url(TO_STREAM)],
            width=6,
        ),
        chart(
            "Samples by outcome",
            "learned: scored and learned. repeated: known ids, answered again. scored: with learn=false.",
            "ops",
            ("sum by (outcome) (rate(itan_samples_total[$__rate_interval]))", "{{outcome}}"),
            width=6,
        ),
        buckets("Surprise", "Score minus threshold, in nats: what lies above 0 is flagged.", "itan_surprise_nats"),
        buckets("Scores", "-log p, in nats of each stream's own units.", "itan_score_nats"),
    )


def add_labels(dashboard: Dashboard) -> None:
    """Add what the labels say of the decisions."""
    confusion = "sum by (cell) (increase(itan_confusion_total[$__rate_interval]))"
    outcomes = "sum by (outcome) (rate(itan_labels_total[$__rate_interval]))"
    add(
        dashboard,
        "Labels",
        chart(
            "Labels by outcome",
            "unknown and expired labels name samples that are not there: wrong ids, or labels beyond the horizon.",
            "ops",
            (outcomes, "{{outcome}}"),
            width=6,
        ),
        chart(
            "Decisions by truth",
            "Labels applied: tp flagged and anomalous, fp false alarms, tn rightly passed, fn misses.",
            "short",
            (confusion, "{{cell}}"),
            width=6,
            stacked=True,
        ),
        chart(
            "Cost",
            "Cost of the wrong decisions so far, by each stream's own costs, and what the best fixed threshold would "
            "have cost. Both fall when a stream is closed or leaves a worker.",
            "short",
            ("sum(itan_cost)", "so far"),
            ("sum(itan_best_fixed_cost)", "best fixed threshold"),
            width=6,
        ),
        chart(
            "Retractions",
            "Samples removed from a model because they were labelled anomalous, a second.",
            "ops",
            (rate("itan_retractions_total"), "retractions"),
            width=6,
        ),
    )


def add_models(dashboard: Dashboard) -> None:
    """Add whether the models fit, and how they grow."""
    add(
        dashboard,
        "Models",
        chart(
            "Log-loss",
            "Mean of the recent scores: the median over streams, and the largest rise of one stream above its usual.",
            "short",
            ("avg(itan_log_loss_nats)", "median stream"),
            ("max(itan_log_loss_rise_nats)", "largest rise"),
            width=6,
        ),
        chart(
            "Threshold",
            "Median over the streams, in nats.",
            "short",
            ("avg(itan_threshold_nats)", "median stream"),
            width=6,
        ),
        chart(
            "Nodes and splits",
            "Nodes of all models, and splits a second.",
            "short",
            ("sum(itan_nodes)", "nodes"),
            (rate("itan_splits_total"), "splits a second"),
            width=6,
        ),
        chart(
            "Streams",
            "Streams of the workers that are not shown by name, those in the warm-up, those that drifted, "
            "and new ones without the model of their template.",
            "short",
            ("sum(itan_hidden_streams)", "not shown by name"),
            ("sum(itan_warming_up_streams)", "warming up"),
            ("sum(itan_drifted_streams)", "drifted"),
            ("sum(increase(itan_cold_starts_total[$__rate_interval]))", "cold starts"),
            width=6,
        ),
    )


def add_stream(dashboard: Dashboard) -> None:
    """Add one stream by name."""
    add(
        dashboard,
        "Stream $stream",
        chart(
            "Flag rate",
            "Flagged share of about the last 1000 samples, and the share that the config expects.",
            "percentunit",
            (of_stream("flag_rate"), "flagged"),
            (of_stream("expected_flag_rate"), "expected"),
            width=6,
        ),
        chart(
            "Incidents and severity",
            "1 while an incident is open. Severity of the newest sample: fewer than one ordinary sample in 100 "
            "has more than 2; the larger, the graver.",
            "short",
            (of_stream("open_incidents"), "open"),
            (of_stream("severity"), "severity"),
            width=6,
        ),
        chart(
            "Score and threshold",
            "Score of the newest sample, and the threshold for the next one, in nats.",
            "short",
            (of_stream("score_nats"), "score"),
            (of_stream("threshold_nats"), "threshold"),
            width=6,
        ),
        chart(
            "Log-loss",
            "Mean of the recent scores, and of about the last hour. If it rises and stays, the model no longer fits.",
            "short",
            (of_stream("log_loss_nats"), "recent"),
            (of_stream("usual_log_loss_nats"), "usual"),
            width=6,
        ),
        chart(
            "Labelled samples",
            "Labelled samples by decision and truth, so far.",
            "short",
            (f"max by (cell) (itan_stream_confusion{{{STREAM}}})", "{{cell}}"),
        ),
        chart(
            "Cost",
            "Cost of the wrong decisions so far, and of the best fixed threshold.",
            "short",
            (of_stream("cost"), "so far"),
            (of_stream("best_fixed_cost"), "best fixed threshold"),
        ),
        chart("Nodes", "Nodes of the stream's model.", "short", (of_stream("nodes"), "nodes")),
        chart(
            "Samples",
            "Samples seen so far, samples that can still be labelled, and samples that the warm-up still needs.",
            "short",
            (of_stream("samples"), "seen"),
            (of_stream("log_samples"), "can be labelled"),
            (of_stream("samples_needed"), "needed"),
        ),
        chart(
            "Unsaved events",
            "Events that a restart would replay.",
            "short",
            (of_stream("unsaved_events"), "events"),
        ),
        chart("Snapshot", "Size of the last snapshot.", "bytes", (of_stream("snapshot_bytes"), "bytes")),
    )
