"""Read a Dockerfile well enough to follow its build on this machine."""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Step:
    """One instruction of a stage."""

    stage: int
    verb: str
    text: str

    @property
    def words(self) -> list[str]:
        """Split what follows the verb, as a shell would."""
        return shlex.split(self.text)

    @property
    def exec_form(self) -> list[str]:
        """Read the JSON list of a command."""
        words: list[str] = json.loads(self.text[self.text.index("[") :])
        return words


def read_dockerfile(path: Path) -> list[Step]:
    """Read the instructions; comments and line continuations are resolved."""
    lines = [line for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]
    steps: list[Step] = []
    stage = -1
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        verb, _, text = line.strip().partition(" ")
        stage += verb == "FROM"
        steps.append(Step(stage, verb, text.strip()))
    return steps


def environment(steps: list[Step], stage: int) -> dict[str, str]:
    """Collect what ENV sets in a stage."""
    words = [word for step in steps if step.verb == "ENV" and step.stage == stage for word in step.words]
    return dict(word.split("=", 1) for word in words)
