"""One worker's thread: a new worker takes the place of one that died.

    starting ──its model is warm──> working <──a new model is made── down
       └────a fault──> ended           └──a fault outside a step──────^
                         ^─────────────stop from anywhere

What goes wrong at the start is the caller's to hear: `started` says so. Later the first attempt to
come back is made at once. If it fails, or the new worker dies before its first step, the next
ones come after pauses that double up to `MAX_PAUSE_SECONDS`, and if no fellow works, those who wait
are told instead of waiting for nobody.
"""

import logging
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread

from service.batching import Load
from service.decoding import StepModel
from service.engine.dispatcher import Dispatcher
from service.engine.observer import Observer
from service.engine.worker import Worker, fail_all
from service.errors import WorkerFailed

_LOG = logging.getLogger(__name__)
_FIRST_PAUSE_SECONDS = 0.05
MAX_PAUSE_SECONDS = 5.0


class Supervisor:
    """Runs workers of one load, one after another, on a thread of its own from the start.

    started: done when the first worker has its model and `warm_up` has been through it, or with
        what it failed of: then the thread has ended.
    """

    def __init__(
        self,
        make_worker: Callable[[], Worker],
        warm_up: Callable[[StepModel], None],
        load: Load,
        dispatcher: Dispatcher,
        observer: Observer,
    ) -> None:
        self.started = Future[None]()
        self._make_worker = make_worker
        self._warm_up = warm_up
        self._load = load
        self._dispatcher = dispatcher
        self._observer = observer
        self._thread = Thread(target=self._run, name="decode", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def is_healthy(self) -> bool:
        """Whether its worker can run; False while none has a model: at the start, after a death."""
        return self.is_alive and self._load.is_working

    def join(self, timeout: float) -> None:
        """Waits for the thread to end, after the dispatcher was stopped."""
        self._thread.join(timeout)

    def _run(self) -> None:
        worker, failures = self._make_worker(), 0  # since the last step that worked
        if not self._start(worker):
            return
        while not self._dispatcher.is_stopped:
            try:
                if not self._load.is_working:
                    self._restart(worker)
                worker.run()
            except BaseException:
                # Whatever ends a thread: nobody else would hear of it, and sentences would hang.
                _LOG.exception("a worker died, with %d sentences", worker.num_live)
                failures = 1 if worker.has_stepped else failures + 1
                self._bury(worker, is_hopeless=failures > 1)
                self._dispatcher.pause(pause_seconds(failures))
                worker = self._make_worker()

    def _start(self, worker: Worker) -> bool:
        try:
            self._warm_up(worker.prepare())
        except BaseException as error:
            self._give_up()
            self.started.set_exception(error)
            return False
        self._dispatcher.restore(self._load)
        self.started.set_result(None)
        return True

    def _restart(self, worker: Worker) -> None:
        worker.prepare()
        self._dispatcher.restore(self._load)
        _LOG.warning("another worker runs in the place of the one that died")
        self._observer.worker_restarted()

    def _bury(self, worker: Worker, is_hopeless: bool) -> None:
        """Answers those in flight here and, if nobody can be hoped for, those who wait."""
        self._dispatcher.lose(self._load)
        try:
            worker.abandon(_lost("a worker died"))
            if is_hopeless:
                self._give_up()
        except Exception:
            _LOG.exception("the observer could not be told of a worker's death")

    def _give_up(self) -> None:
        waiting = self._dispatcher.give_up()
        fail_all(waiting, _lost("no worker can run the model"), self._observer)


def _lost(why: str) -> WorkerFailed:
    return WorkerFailed(f"{why}; the server's log has the details")


def pause_seconds(failures: int) -> float:
    """The pause after the last of some failures in a row, before the next attempt."""
    if failures < 2:
        return 0.0
    return float(min(MAX_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2 ** min(failures - 2, 32)))
