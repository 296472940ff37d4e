"""One file, from its beginning or from where it was left, to its end."""

import time
from contextlib import closing
from dataclasses import replace
from functools import partial
from threading import Event

from service.client.bulk.calls import USUAL_RETRIES, Caller, Retries, TranslationClient
from service.client.bulk.journal import Journal, resumed
from service.client.bulk.lines import LineReader, Place
from service.client.bulk.output import Output, OutputReader, publish
from service.client.bulk.plan import Plan
from service.client.bulk.progress import Progress
from service.client.bulk.totals import Totals
from service.client.bulk.windows import MAX_WINDOW_LINES, Written, in_order, windows, written
from service.errors import ConfigError, InvalidArgument, Unavailable
from service.pb import translation_pb2 as pb

# After so many lines, or bytes of text, the output is made safe. Places of the input and not of the
# clock: where the members of a compressed output end is then the same in every run.
CHECKPOINT_LINES = 512
CHECKPOINT_BYTES = 1 << 20
# A run in which more lines fail for what may pass stops, and goes on another time.
MAX_PASSING = 1000


def run(
    plan: Plan, client: TranslationClient, progress: Progress, retries: Retries = USUAL_RETRIES
) -> Totals:
    """Translates a file; returns the totals of all of it.

    Lines that failed for what may have passed in an earlier process are tried again.

    Raises ConfigError if what is there of the output isn't of this input and these options, or the
    model was replaced on the way; InvalidArgument for the first line that can't be translated, if
    the plan is strict, and for a damaged input; OSError; and what clients raise.
    """
    with LineReader(plan.source, plan.shard) as reader:
        found = journal = resumed(plan.output, plan.settings(reader.file_size))
        if not journal.is_done:
            _FileRun(plan, reader, journal, progress).go_on(client, retries)
            journal = resumed(plan.output, journal.settings)
        if not plan.output.exists():
            publish(plan.output)
    if not found.totals.passing:  # else an earlier process was there, whose reasons are gone
        return journal.totals
    with LineReader(plan.source, plan.shard) as reader:
        _FileRun(plan, reader, replace(journal, place=None), progress).mend(
            journal, client, retries
        )
    return resumed(plan.output, journal.settings).totals


class _FileRun:
    """What one process does for a file."""

    def __init__(
        self, plan: Plan, reader: LineReader, journal: Journal, progress: Progress
    ) -> None:
        self._plan = plan
        self._reader = reader
        self._found = journal
        self._settings = journal.settings
        self._models = dict(journal.models)
        self._totals = journal.totals
        self._size = journal.output_size
        self._progress = progress
        self._begun = time.monotonic() - journal.totals.seconds
        self._start(journal.place)
        self._safe = self._done = reader.place

    def go_on(self, client: TranslationClient, retries: Retries) -> None:
        """Translates what is left, and says in the journal that it is done."""
        request, max_lines = self._settled(client)
        stop = Event()
        work = partial(
            written, format=self._plan.format, caller=Caller(client, request, retries, stop)
        )
        groups = windows(self._reader, max_lines)
        self._progress.show(*self._reader.progress(self._done), self._totals)
        with Output(self._plan.output) as output:
            self._begin(output)
            try:
                with closing(in_order(work, groups, self._plan.at_once)) as results:
                    for result in results:
                        self._take(result, output)
            finally:
                stop.set()
            size = output.finish()
            resumed(self._plan.output, self._settings)  # raises if somebody has put a file there
            self._checkpoint(size, is_done=True)

    def mend(self, done: Journal, client: TranslationClient, retries: Retries) -> None:
        """Tries the lines of an output again whose failure may have passed, all others stay.

        done: the journal of the output. Until all are tried, it stays as it is.
        """
        caller = Caller(client, self._settled(client)[0], retries)
        again = set(self._totals.passing)
        with Output(self._plan.output) as output, OutputReader(self._plan.output) as earlier:
            output.begin(0)
            for line in self._reader:
                data = earlier.line()
                if line.number in again:
                    [result] = written([line], self._plan.format, caller)
                    self._check(result)
                    self._totals.mend(result)
                    data = result.data
                output.write(data)
                self._done = line.after
                if self._is_due(self._done):  # members end where they did
                    output.checkpoint()
                    self._safe = self._done
            if self._done != done.place or earlier.line():
                fault = "it or its input has changed since it was done; remove it to begin again"
                raise ConfigError(str(self._plan.output), [fault])
            size = output.finish()
        publish(self._plan.output)
        self._checkpoint(size, is_done=True)

    def _start(self, place: Place | None) -> None:
        """Where an earlier process has got to."""
        if place is None:
            return
        if not self._reader.go_on_from(place):
            raise ConfigError(
                str(self._plan.source),
                [f"its first {place.lines} lines have changed since they were translated"],
            )
        if self._totals.segments:
            self._progress.say(f"{self._plan.output}: going on after line {place.lines}")

    def _begin(self, output: Output) -> None:
        """Makes the output, which nobody else can write now, what the journal says of it."""
        if resumed(self._plan.output, self._settings) != self._found:
            fault = "another process has written it in the meantime; look again"
            raise ConfigError(str(self._plan.output), [fault])
        output.begin(self._size)
        self._checkpoint(self._size)  # a part that has no journal is somebody else's

    def _settled(self, client: TranslationClient) -> tuple[pb.TranslateRequest, int]:
        """The request with the one model that answers all of it, if there is one; lines at once.

        A run is longer than the life of a version: it is asked for by name from the first text on.
        """
        request = pb.TranslateRequest()
        request.CopyFrom(self._plan.request)
        answer, listed = Caller(client, request).check(), client.list_models()
        languages = {model.source_language_code for model in listed.models}
        if request.model or request.source_language_code not in ("", "und") or len(languages) == 1:
            models = self._models or {answer.model: answer.model_version}
            request.model, request.model_version = next(iter(models.items()))
        return request, min(MAX_WINDOW_LINES, listed.limits.max_contents)

    def _take(self, results: list[Written], output: Output) -> None:
        """Writes what has come out, in order."""
        for result in results:
            self._check(result)
            self._totals.add(result)
            output.write(result.data)
            self._done = result.line.after
            if self._is_due(self._done):
                self._checkpoint(output.checkpoint())
        self._totals.seconds = time.monotonic() - self._begun
        self._progress.show(*self._reader.progress(self._done), self._totals)

    def _check(self, result: Written) -> None:
        """Tells of a line that failed, or raises it if strict. Raises for another model."""
        if result.translation is None:
            fault = f"{self._plan.source}: line {result.line.number}: {result.fault}"
            if self._plan.strict:
                raise InvalidArgument(fault)
            self._progress.say(fault)
            if len(self._totals.passing) >= MAX_PASSING:
                raise Unavailable(f"{fault}; as {MAX_PASSING} lines before it, which may pass")
            return
        name, version = result.translation.model, result.translation.model_version
        if self._models.setdefault(name, version) != version:
            fault = f"{name} {self._models[name]} is no longer served, {version} is"
            raise ConfigError(str(self._plan.output), [f"{fault}; begin again, or serve it"])

    def _is_due(self, place: Place) -> bool:
        return (
            place.lines - self._safe.lines >= CHECKPOINT_LINES
            or place.offset - self._safe.offset >= CHECKPOINT_BYTES
        )

    def _checkpoint(self, size: int, is_done: bool = False) -> None:
        """Notes that the output is safe up to here."""
        self._safe = self._done
        self._totals.seconds = time.monotonic() - self._begun
        Journal(
            settings=self._settings,
            place=self._safe,
            output_size=size,
            models=self._models,
            totals=self._totals,
            is_done=is_done,
        ).write(self._plan.output)
