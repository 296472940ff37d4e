"""The Dockerfile, stage by stage."""

import re
from dataclasses import dataclass
from pathlib import Path

_INSTRUCTION = re.compile(r"^([A-Z]+) (.+)$", re.M)


@dataclass(frozen=True)
class Stage:
    """One stage: its instructions in order, each its name and the rest of its line."""

    name: str
    base: str
    instructions: tuple[tuple[str, str], ...]

    def all_of(self, kind: str) -> list[str]:
        """The rests of the lines of all instructions of a kind."""
        return [rest for name, rest in self.instructions if name == kind]

    @property
    def copied(self) -> list[str]:
        """The files and folders of the repository that it is given."""
        copies = [rest.split() for rest in self.all_of("COPY") if not rest.startswith("--from")]
        return [name for *names, _ in copies for name in names]


def read_recipe(file: Path) -> dict[str, Stage]:
    """The stages by name, in order."""
    _, *parts = re.split(r"^FROM ", file.read_text("utf-8").replace("\\\n", " "), flags=re.M)
    return {stage.name: stage for stage in map(_stage, parts)}


def _stage(text: str) -> Stage:
    first, _, rest = text.partition("\n")
    base, _, name = first.split()
    instructions = tuple((kind, line) for kind, line in _INSTRUCTION.findall(rest))
    return Stage(name, base, instructions)
