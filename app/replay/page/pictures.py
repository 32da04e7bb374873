"""The pictures of the page: SVG in data URIs, so that nothing in them can reach the page."""

import base64
import io
from typing import Any, Final

import numpy as np

from app.replay.feed import Outcome
from app.replay.plot import figure_of, plain, quiet
from app.replay.ranking import counts_from_top
from app.replay.rivals.comparison import Contest
from app.replay.rivals.rival import Bools, Decisions
from app.replay.signals import Signal

STYLES: Final = ("-", "--", "-.", ":")
MOST_POINTS: Final = 1000


def over_time(outcome: Outcome, signals: list[Signal]) -> str:
    """Draw scores, threshold, labels and flags, and signals with their bands."""
    with quiet():
        return _uri(figure_of(outcome, signals))


def curves(contest: Contest) -> str:
    """Draw the ROC and the precision-recall curve of each row, with a dot where its decisions are."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 5.5), layout="constrained")
    roc, precision_recall = figure.subplots(1, 2)
    truth = contest.anomalous[contest.judged]
    for place, (name, decisions) in enumerate(contest.by_own_scores().items()):
        look = {"color": f"C{place}", "linestyle": STYLES[place % len(STYLES)], "label": plain(name)}
        _draw_row(roc, precision_recall, decisions, contest.judged, truth, look)
    roc.set(
        xlabel="false alarms / normal samples", ylabel="recall", title="ROC", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02)
    )
    precision_recall.set(
        xlabel="recall", ylabel="precision", title="precision and recall", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02)
    )
    roc.legend(loc="lower right")
    with quiet():
        return _uri(figure)


def _draw_row(
    roc: Any, precision_recall: Any, decisions: Decisions, judged: Bools, truth: Bools, look: dict[str, Any]
) -> None:
    hits, alarms = (_thinned(counts) for counts in counts_from_top(decisions.score[judged], truth))
    recall, false_share = hits / truth.sum(), alarms / (~truth).sum()
    roc.plot(np.append(0, false_share), np.append(0, recall), **look)
    precision_recall.plot(recall, hits / (hits + alarms), **look)
    flagged = decisions.flagged[judged]
    hit, alarm = (flagged & truth).sum(), (flagged & ~truth).sum()
    dot = {"marker": "o", "color": look["color"]}
    roc.plot([alarm / (~truth).sum()], [hit / truth.sum()], **dot)
    if hit + alarm:
        precision_recall.plot([hit / truth.sum()], [hit / (hit + alarm)], **dot)


def _thinned(counts: Any) -> Any:
    """Give at most some thousand points of a curve, the last one always."""
    return counts[np.unique(np.linspace(0, len(counts) - 1, MOST_POINTS).astype(int))]


def _uri(figure: Any) -> str:
    import matplotlib as mpl

    file = io.BytesIO()
    # the same picture for the same samples
    with mpl.rc_context({"svg.hashsalt": "itan"}):
        figure.savefig(file, format="svg", dpi=150, metadata={"Date": None})
    return f"data:image/svg+xml;base64,{base64.b64encode(file.getvalue()).decode()}"
