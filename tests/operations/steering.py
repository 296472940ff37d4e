"""The service's own command line, with a hand on the steps and the faults of one model.

    python -m tests.operations.steering serve --models=DIR ...

is the real server. What a test writes to its standard input, a line at a time and each answered
with a line, decides when tiny-transformer steps, and when it fails:

    hold          every step waits ...
    step N        ... but for so many
    go            none waits any more
    die           the step that waits, or else the next one, ends its worker
    break, mend   the model can't be made any more, and can again
"""

import sys
from collections.abc import Sequence
from threading import Condition, Thread

import numpy as np
from numpy.typing import NDArray

from service.__main__ import main
from service.decoding import StepOutput
from service.engine import engine
from service.session import Graphs, OnnxModel

STEERED = "tiny-transformer"


class Helm:
    """What was ordered, and who waits for it."""

    def __init__(self) -> None:
        self._condition = Condition()
        self._is_held = self._is_broken = self._kills = False
        self._permits = 0

    def order(self, command: str, *arguments: str) -> None:
        """Carries out a line of standard input."""
        with self._condition:
            match command:
                case "hold":
                    self._is_held, self._permits = True, 0
                case "step":
                    self._permits += int(arguments[0])
                case "go":
                    self._is_held = False
                case "die":
                    self._kills = True
                case "break" | "mend":
                    self._is_broken = command == "break"
                case _:
                    raise ValueError(command)
            self._condition.notify_all()

    def before_step(self) -> None:
        """Waits for its turn. Raises SystemExit if the worker is to die."""
        with self._condition:
            self._condition.wait_for(lambda: not self._is_held or self._permits or self._kills)
            if self._kills:
                self._kills = False
                raise SystemExit("injected")
            self._permits -= self._is_held

    def before_making(self) -> None:
        """Raises RuntimeError if the model is broken."""
        with self._condition:
            if self._is_broken:
                raise RuntimeError("injected")


HELM = Helm()


class SteeredModel(OnnxModel):
    """The real model, which asks the helm first."""

    def __init__(self, graphs: Graphs, max_rows: int) -> None:
        self._is_steered = graphs.manifest.name == STEERED
        if self._is_steered:
            HELM.before_making()
        super().__init__(graphs, max_rows)

    def step(
        self,
        tokens: NDArray[np.int64],
        positions: NDArray[np.int32],
        num_candidates: int,
        attention: bool,
        full: bool = False,
    ) -> StepOutput:
        if self._is_steered:
            HELM.before_step()
        return super().step(tokens, positions, num_candidates, attention, full)


def _obey() -> None:
    for line in sys.stdin:
        HELM.order(*line.split())
        print("done", flush=True)


def steered(arguments: Sequence[str] | None = None) -> int:
    """Runs the service's command under the helm."""
    engine.OnnxModel = SteeredModel  # type: ignore[attr-defined]
    Thread(target=_obey, daemon=True).start()
    return main(arguments)


if __name__ == "__main__":
    sys.exit(steered())
