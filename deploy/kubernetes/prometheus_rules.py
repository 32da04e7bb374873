"""Print the rules of deploy/prometheus for the Prometheus Operator: python3 deploy/kubernetes/prometheus_rules.py."""

from pathlib import Path
from textwrap import indent

RULES = Path(__file__).resolve().parents[1] / "prometheus" / "rules"
HEAD = """\
---
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: itan-{}
spec:
"""


def main() -> None:
    """Print one object for each file."""
    for path in sorted(RULES.glob("*.yml")):
        print(HEAD.format(path.stem) + indent(path.read_text(), "  "))


if __name__ == "__main__":
    main()
