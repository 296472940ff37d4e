"""How a stream comes into the queue: never refused, and never with too much at once."""

import asyncio
import math
from collections.abc import Sequence

import pytest

from service.batching import QueueLimits, Request
from service.errors import DeadlineExceeded, QueueFull
from service.translator import StreamEntrance
from service.translator.entrance import Entrance
from tests.gate import GREEDY, Stage
from tests.started_server import until

SOURCE = [5, 0]


async def entered(
    entrance: Entrance,
    stage: Stage,
    sources: Sequence[Sequence[int]] = (SOURCE,),
    deadline: float = math.inf,
) -> None:
    """Hands sources over and waits for what they become."""
    options = [GREEDY] * len(sources)
    futures = await entrance.enter(stage.engine, sources, options, deadline, 0)
    await asyncio.gather(*map(asyncio.wrap_future, futures))


def test_a_stream_has_no_more_sentences_inside_than_it_may() -> None:
    async def scenario() -> None:
        stage, entrance = Stage(), StreamEntrance(max_inside=3)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(entered(entrance, stage, [SOURCE] * 2)) for _ in range(5)]
            await asyncio.to_thread(stage.gate.await_worker)  # nothing ends before it opens
            assert stage.engine.num_accepted == 2
            assert not any(task.done() for task in tasks)
            stage.gate.open()
        stage.engine.close()
        assert stage.recorder.ends["finished"] == 10

    asyncio.run(scenario())


def test_a_window_larger_than_a_stream_may_have_comes_in_alone() -> None:
    async def scenario() -> None:
        stage, entrance = Stage(), StreamEntrance(max_inside=1)
        stage.gate.open()
        await asyncio.gather(*(entered(entrance, stage, [SOURCE] * 3) for _ in range(2)))
        stage.engine.close()
        assert stage.recorder.ends["finished"] == 6

    asyncio.run(scenario())


def test_a_stream_waits_for_a_full_queue_which_refuses_a_request() -> None:
    async def scenario() -> None:
        stage, entrance = Stage(queue=QueueLimits(max_sentences=1)), StreamEntrance(max_inside=9)
        running = stage.in_flight(SOURCE)
        waiting = stage.submit(SOURCE)
        task = asyncio.create_task(entered(entrance, stage))
        await asyncio.sleep(0)
        with pytest.raises(QueueFull):
            await entered(Entrance(Request(1, 2)), stage)
        assert not task.done()
        stage.gate.open()
        await task
        assert waiting.done() and running[0].done()
        assert [str(reason) for reason in stage.recorder.refusals] == ["queue_sentences"]
        stage.engine.close()

    asyncio.run(scenario())


def test_who_waits_for_room_is_not_overtaken_by_who_needs_less() -> None:
    async def scenario() -> None:
        stage = Stage(queue=QueueLimits(max_sentences=4))
        stage.in_flight(SOURCE)
        stage.submit(SOURCE)
        large, small = StreamEntrance(max_inside=9), StreamEntrance(max_inside=9)
        tasks = [asyncio.create_task(entered(large, stage, [SOURCE] * 2))]
        await asyncio.sleep(0)
        tasks += [asyncio.create_task(entered(small, stage)) for _ in range(2)]
        await asyncio.sleep(0)
        assert stage.engine.num_waiting == 1
        stage.gate.open()
        await asyncio.gather(*tasks)
        stage.engine.close()

    asyncio.run(scenario())


def test_what_finds_no_room_in_its_time_is_too_late() -> None:
    async def scenario() -> None:
        stage, entrance = Stage(queue=QueueLimits(max_sentences=1)), StreamEntrance(max_inside=9)
        stage.in_flight(SOURCE)
        stage.submit(SOURCE)
        task = asyncio.create_task(entered(entrance, stage, deadline=1.0))
        await asyncio.sleep(0)
        stage.clock.now = 2.0
        with pytest.raises(DeadlineExceeded):
            await task
        stage.gate.open()
        stage.engine.close()

    asyncio.run(scenario())


def test_a_cancelled_window_makes_room_for_the_next() -> None:
    async def scenario() -> None:
        stage, entrance = Stage(), StreamEntrance(max_inside=1)
        first = asyncio.create_task(entered(entrance, stage))
        await until(lambda: stage.engine.num_accepted == 1)
        second = asyncio.create_task(entered(entrance, stage))
        first.cancel()
        await asyncio.wait([first])
        stage.gate.open()
        await second
        stage.engine.close()
        assert stage.recorder.ends["finished"] == 1

    asyncio.run(scenario())
