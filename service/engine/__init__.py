"""The decode loop: from submitted sentences to hypotheses, on worker threads.

    submit ──> Dispatcher ──────> Supervisor, one thread each
               (one lock, the       └─ Worker with its own model and batch, until it dies
               Batcher inside)         loop: admit -> join -> step -> resolve
                                         └─> the sentence's future

Owns threads, futures, cancellation, deadlines, the replacement of dead workers and the way down. A
future is always resolved: with hypotheses, with a `TranslationError`, or by the caller who cancels
it. Knows no text, no event loop and no metrics library; an `Observer` is told what happens.
"""

from service.engine.cores import usable_cores
from service.engine.engine import Engine, load_engine
from service.engine.observer import Observer, SilentObserver

__all__ = ["Engine", "Observer", "SilentObserver", "load_engine", "usable_cores"]
