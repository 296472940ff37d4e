"""Every metric of the service, declared once: the names, labels and buckets dashboards rely on.

    Metrics ─┬─ process, build, models, reloads      what the whole server tells
             ├─ rpc(...)   ──> RpcMetrics            what an rpc tells, in the ecosystem's names
             └─ model(...) ──> ModelMetrics          what an engine tells: its Observer

The registry is an argument, nothing is global. Label values come from closed sets: served models,
registered rpcs, gRPC's codes, the reasons of `service.errors` and `service.decoding`; never what a
client typed. Every series exists at zero as soon as its model or rpc is known, so that the first
event is an increase that `rate` sees. Labels are resolved beforehand: counting costs a few
microseconds, and may be done from any thread.
"""

from service.metrics.buckets import LATENCY_BUCKETS, STEP_BUCKETS
from service.metrics.metrics import Metrics, ReloadOutcome
from service.metrics.model import ModelMetrics
from service.metrics.rpc import RpcMetrics

__all__ = [
    "LATENCY_BUCKETS",
    "STEP_BUCKETS",
    "Metrics",
    "ModelMetrics",
    "ReloadOutcome",
    "RpcMetrics",
]
