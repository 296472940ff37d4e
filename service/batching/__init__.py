"""Who joins the running batch next: the queue of sentences behind one model.

Pure data structures: no thread, no lock, no clock (`now` is an argument) and no tensor. The engine
guards them with its lock, and every worker asks the `Batcher` before every step. It owns the
waiting sentences and refuses new ones beyond its bounds, or whose deadline can't be met, best
before they are read; what runs already is described to it by `Load`.

    Batcher ── Line, one for each beam width ── page: who comes next, by length
       │                                     └─ groups: the requests behind it take turns
       └────── Throughput: how long it takes
"""

from service.batching.batcher import Batcher
from service.batching.sentence import Admission, Answer, Load, QueueLimits, Request, Sentence
from service.batching.throughput import Throughput

__all__ = [
    "Admission",
    "Answer",
    "Batcher",
    "Load",
    "QueueLimits",
    "Request",
    "Sentence",
    "Throughput",
]
