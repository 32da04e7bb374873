"""What a replay leaves behind: figures on the terminal, and files."""

import json
from dataclasses import dataclass
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path

from app.replay.evaluation import Evaluation
from app.replay.page.page import write_page
from app.replay.plot import draw
from app.replay.report import format_report
from app.replay.rivals.table import format_contest
from app.replay.scores import write_scores


@dataclass(frozen=True)
class Outputs:
    """What is asked for."""

    as_json: bool = False
    compare: bool = False
    scores: Path | None = None
    plot: Path | None = None
    page: Path | None = None

    @property
    def keeps_samples(self) -> bool:
        """Tell whether the samples are needed in the end."""
        return self.compare or self.plot is not None or self.page is not None

    def refuse_impossible(self) -> None:
        """Raise ValueError before anything is sent, not when there is something to write."""
        for path in (self.scores, self.plot, self.page):
            if path and not path.parent.is_dir():
                raise ValueError(f"there is no folder {path.parent} to write {path.name} to")
        if self.plot and find_spec("matplotlib") is None:
            raise ValueError("--plot needs matplotlib: uv run --extra plot itan replay ...")
        if self.page and not (find_spec("matplotlib") and find_spec("jinja2")):
            raise ValueError("--report needs matplotlib and jinja2: uv run --extra evaluate itan replay ...")

    def hand_out(self, evaluation: Evaluation, now: datetime) -> None:
        """Print the figures, and write the files."""
        outcome, report, _ = evaluation.result
        contest = evaluation.contest if self.compare else None
        if self.as_json:
            print(json.dumps(report.to_dict() | ({"comparison": contest.to_dict()} if contest else {})))
        else:
            print(format_report(report) + (f"\n\n{format_contest(contest)}" if contest else ""))
        if self.scores:
            write_scores(outcome, self.scores)
        if self.plot:
            draw(outcome, evaluation.signals, report.stream, self.plot)
        if self.page:
            write_page(evaluation, self.page, now)
