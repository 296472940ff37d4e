"""Many requests at a time, their answers in order, and never more read than that.

A window is what one request holds: some lines, few bytes. Its texts are read, translated and
written in a thread of its own, since that is where a client waits.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from service.client.bulk.calls import Caller
from service.client.bulk.formats import Format, LineFault, Segment
from service.client.bulk.lines import MAX_LINE_BYTES, Line
from service.pb import translation_pb2 as pb

MAX_WINDOW_LINES = 64
# Of text; a longer line is a window of its own.
MAX_WINDOW_BYTES = 1 << 17
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Written:
    """What comes out for a line; `fault` says why it has no translation, which is None then."""

    line: Line
    data: bytes
    translation: pb.Translation | None
    fault: LineFault | None = None


def windows(lines: Iterable[Line], max_lines: int = MAX_WINDOW_LINES) -> Iterator[list[Line]]:
    """Lines that are sent together, in order. A line that would be too much begins the next one."""
    window, size = list[Line](), 0
    for line in lines:
        length = len(line.data or b"")
        if window and (len(window) == max_lines or size + length > MAX_WINDOW_BYTES):
            yield window
            window, size = [], 0
        window.append(line)
        size += length
    if window:
        yield window


def in_order(
    work: Callable[[_Item], _Result], items: Iterable[_Item], at_once: int
) -> Generator[_Result, None, None]:
    """What `work` makes of each item, in order, in threads; must be closed.

    At most `at_once` items are taken whose results haven't been. Raises what `work` raises.
    """
    pool, remaining = ThreadPoolExecutor(at_once), iter(items)
    pending = deque[Future[_Result]]()
    try:
        while True:
            for item in islice(remaining, at_once - len(pending)):
                pending.append(pool.submit(work, item))
            if not pending:
                return
            yield pending.popleft().result()
    finally:
        # Those at work end by themselves, at the latest when the client is closed.
        pool.shutdown(wait=False, cancel_futures=True)


def written(window: Sequence[Line], format: Format, caller: Caller) -> list[Written]:
    """What comes out for each line of a window."""
    read = [_read(line, format) for line in window]
    outcomes = iter(caller.outcomes([s.text for s in read if not isinstance(s, LineFault)]))
    return [
        _unread(line, segment, format)
        if isinstance(segment, LineFault)
        else _translated(line, segment, next(outcomes))
        for line, segment in zip(window, read, strict=True)
    ]


def _read(line: Line, format: Format) -> Segment | LineFault:
    if line.data is None:
        return LineFault(f"more than {MAX_LINE_BYTES} bytes")
    try:
        return format.segment(line.data.decode())
    except UnicodeDecodeError:
        return LineFault("not UTF-8; convert it first, with iconv")
    except LineFault as fault:
        return fault


def _unread(line: Line, fault: LineFault, format: Format) -> Written:
    return Written(line, format.unread(fault).encode() + line.end, None, fault)


def _translated(line: Line, segment: Segment, outcome: pb.Translation | LineFault) -> Written:
    if isinstance(outcome, LineFault):
        return Written(line, segment.failed(outcome).encode() + line.end, None, outcome)
    return Written(line, segment.translated(outcome).encode() + line.end, outcome)
