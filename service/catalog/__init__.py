"""The models of a server: a directory of bundles, loaded, routed to, and replaced while it serves.

    folders ──> attempt ──────────> catalog ──> arrangement ──> routing      held ──> a request's
    look        read, loading       swap        order, default  who answers           lease
                                      └──> retiring: closed when the last lease has ended

Knows no rpc. What is wrong with a bundle is told in the log, the metrics and `Catalog.bundles`; the
others serve, and so does what served before. The first load fails only if nothing can be served, or
not the configured default model.
"""

from service.catalog.catalog import Catalog
from service.catalog.routing import Router
from service.catalog.served import ServedModel, held
from service.catalog.states import BundleStatus, Change, Outcome, ReloadReport, State

__all__ = [
    "BundleStatus",
    "Catalog",
    "Change",
    "Outcome",
    "ReloadReport",
    "Router",
    "ServedModel",
    "State",
    "held",
]
