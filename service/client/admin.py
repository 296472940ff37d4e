"""The `admin` command: what a server's operator asks of it, answered with a table.

python -m service admin list
python -m service admin reload
python -m service admin unload transformer-en-fr 2
"""

import argparse
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import grpc

from service.client.access import access_from
from service.client.remote import reraise
from service.pb import admin_pb2 as pb
from service.pb.admin_pb2_grpc import AdminServiceStub

# Reloading takes as long as it takes to load every bundle that has changed.
TIMEOUT_SECONDS = 600.0
_Call: TypeAlias = Callable[[str, Any], Any]


def admin(options: argparse.Namespace) -> int:
    """Runs `options.action`; returns 1 if a bundle can't be served, else 0.

    Raises ConfigError, and the exceptions of `service.errors` that the server raised.
    """
    access = access_from(options, os.environ)
    with access.channel(options.server) as channel:
        stub = AdminServiceStub(channel)  # type: ignore[no-untyped-call]

        def call(method: str, request: Any) -> Any:
            rpc = getattr(stub, method)
            return rpc(request, timeout=TIMEOUT_SECONDS, metadata=access.metadata)

        try:
            rows = _ACTIONS[options.action](call, options)
        except grpc.RpcError as error:
            reraise(error, options.server, access)
    for line in table([("FOLDER", "MODEL", "VERSION", "STATE", "REASON"), *rows]):
        print(line)
    return int(any(row[3] == "FAILED" for row in rows))


def table(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """Lines with the cells of a column below each other; the last one is as long as it is.

    Control characters are escaped: a folder's name must neither break a line nor steer a terminal.
    """
    rows = [[*map(_printable, row)] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()


def _printable(cell: str) -> str:
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in cell
    )


def _list(call: _Call, options: argparse.Namespace) -> list[Sequence[str]]:
    response = call("ListBundles", pb.ListBundlesRequest())
    return list(map(_row, response.bundles))


def _reload(call: _Call, options: argparse.Namespace) -> list[Sequence[str]]:
    response = call("Reload", pb.ReloadRequest())
    return [
        (change.folder, change.model, change.version, _outcome(change.outcome), change.reason)
        for change in response.changes
    ]


def _unload(call: _Call, options: argparse.Namespace) -> list[Sequence[str]]:
    request = pb.UnloadRequest(model=options.model, version=options.version)
    return [_row(call("Unload", request).bundle)]


def _row(bundle: pb.Bundle) -> Sequence[str]:
    state = pb.BundleState.Name(bundle.state).removeprefix("BUNDLE_STATE_")
    return bundle.folder, bundle.model, bundle.version, state, bundle.reason


def _outcome(outcome: pb.FolderOutcome) -> str:
    return pb.FolderOutcome.Name(outcome).removeprefix("FOLDER_OUTCOME_")


_ACTIONS = {"list": _list, "reload": _reload, "unload": _unload}
