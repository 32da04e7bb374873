"""Asks Prometheus all queries over some steps, one after the other."""

from app.pull.config import PullConfig
from app.pull.errors import Permanent, TooMuch, Unanswerable
from app.pull.patience import Patience
from app.pull.prometheus import Prometheus, Series
from app.pull.rows import Rows


class Questions:
    """The queries of a config. Temporary failures are waited for."""

    def __init__(self, config: PullConfig, prometheus: Prometheus, patience: Patience) -> None:
        self._config, self._prometheus, self._patience = config, prometheus, patience

    def at_first(self, time: int) -> Rows:
        """Ask for one step. Raises Permanent for all that is wrong with the queries."""
        try:
            rows = self.over(time, time)
        except (TooMuch, Unanswerable) as error:
            raise Permanent(str(error)) from None
        if rows.faults:
            raise Permanent(rows.faults[0])
        n, most = len(rows.streams), self._config.max_streams
        if n > most:
            raise Permanent(
                f"the queries give {n} streams; max_streams is {most}: aggregate them by fewer labels, or raise it"
            )
        return rows

    def at(self, time: int) -> Rows:
        """Ask for one step; a query that cannot be answered gives nothing, and is a fault."""
        rows = Rows(self._config)
        for name in self._config.names:
            try:
                rows.add(name, self._ask(name, time, time))
            except (TooMuch, Unanswerable) as error:
                rows.faults.append(str(error))
        return rows

    def over(self, first: int, last: int) -> Rows:
        """Ask for the steps from first to last. Raises TooMuch or Unanswerable, which may go better for fewer steps."""
        rows = Rows(self._config)
        for name in self._config.names:
            rows.add(name, self._ask(name, first, last))
        return rows

    def _ask(self, name: str, first: int, last: int) -> list[Series]:
        text, step = self._config.queries[name].query, self._config.step
        try:
            return self._patience.until_done(lambda: self._prometheus.over(text, first, last, step))
        except (TooMuch, Unanswerable, Permanent) as error:
            raise type(error)(f"query {name!r}: {error}") from None
