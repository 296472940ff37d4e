"""What a run needs to go on after a kill: `PATH.journal`, beside the output.

It is replaced as a whole at each checkpoint, after the output is safe, and stays when the run is
done: then it says of what run the output is, and running it again does nothing.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from service.client.bulk.lines import Place
from service.client.bulk.output import part_of, sync_folder
from service.client.bulk.totals import Totals
from service.errors import ConfigError

_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """How far a run is.

    settings: all that decides what comes out, by name. place: in the input, what the output's first
    `output_size` bytes are the translation of; None at the beginning. models: the version of each
    that has answered, by name.
    """

    settings: Mapping[str, object]
    place: Place | None = None
    output_size: int = 0
    models: Mapping[str, str] = field(default_factory=dict)
    totals: Totals = field(default_factory=Totals)
    is_done: bool = False

    def write(self, output: Path) -> None:
        """Replaces the journal of an output, for good or not at all."""
        path = journal_of(output)
        new = path.with_name(path.name + ".new")
        with new.open("w", encoding="utf-8") as file:
            json.dump({"journal": _FORMAT, **asdict(self)}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
        sync_folder(path)


def journal_of(output: Path) -> Path:
    return output.with_name(output.name + ".journal")


def resumed(output: Path, settings: Mapping[str, object]) -> Journal:
    """The journal to go on from: that of the output, or a new one if nothing was written yet.

    Raises ConfigError if something is there that a run with these settings didn't write.
    """
    new, path = Journal(settings=settings), journal_of(output)
    try:
        read = _parsed(path.read_text("utf-8"))
    except FileNotFoundError:
        read = new
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ConfigError(str(path), ["is no journal of this version"]) from error
    if not output.exists() and not part_of(output).exists():
        return new
    if faults := [*_faults(output, read, settings)]:
        raise ConfigError(str(output), faults)
    return read


def _faults(output: Path, read: Journal, settings: Mapping[str, object]) -> Iterator[str]:
    part, journal = part_of(output), journal_of(output)
    names = {**settings, **read.settings}
    if changed := [name for name in names if settings.get(name) != read.settings.get(name)]:
        yield (
            f"was begun with other {', '.join(changed)}; go on with the same, or remove "
            f"{part.name if part.exists() else output.name} and {journal.name} to begin again"
        )
    elif output.exists():
        if not read.is_done:
            yield "is there already; move it away, or give another --output"
    elif read.place is None and part.stat().st_size:  # what a run writes has a journal
        yield f"{part.name} is there already, without a journal; move it away"
    elif part.stat().st_size < read.output_size:
        yield f"{part.name} has less than the {read.output_size} bytes of {journal.name}"


def _parsed(text: str) -> Journal:
    """Raises KeyError, TypeError and ValueError."""
    fields: dict[str, Any] = json.loads(text)
    if fields.pop("journal") != _FORMAT:
        raise ValueError("another format")
    place, totals = Place(**fields.pop("place")), Totals(**fields.pop("totals"))
    return Journal(**fields, place=place, totals=totals)
