"""The rpcs of nmt.v1.AdminService: what operators ask of the catalog."""

from typing import Any, TypeAlias

import grpc

from service.catalog import BundleStatus, Catalog, Change
from service.pb import admin_pb2 as pb
from service.pb.admin_pb2_grpc import AdminServiceServicer, add_AdminServiceServicer_to_server
from service.rpc.servicer import answered

ADMIN_SERVICE: str = pb.DESCRIPTOR.services_by_name["AdminService"].full_name
_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


class AdminServicer(AdminServiceServicer):
    """Every rpc is one call of the catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    async def Reload(self, request: pb.ReloadRequest, context: _Context) -> pb.ReloadResponse:
        return await answered(self._reload(), context)

    async def ListBundles(
        self, request: pb.ListBundlesRequest, context: _Context
    ) -> pb.ListBundlesResponse:
        return await answered(self._list(), context)

    async def Unload(self, request: pb.UnloadRequest, context: _Context) -> pb.UnloadResponse:
        return await answered(self._unload(request), context)

    async def _reload(self) -> pb.ReloadResponse:
        report = await self._catalog.reload()
        return pb.ReloadResponse(changes=map(_change, report.changes))

    async def _list(self) -> pb.ListBundlesResponse:
        return pb.ListBundlesResponse(bundles=map(_bundle, self._catalog.bundles()))

    async def _unload(self, request: pb.UnloadRequest) -> pb.UnloadResponse:
        status = await self._catalog.unload(request.model, request.version)
        return pb.UnloadResponse(bundle=_bundle(status))


def add_admin(server: grpc.aio.Server, catalog: Catalog) -> None:
    """Answers admin requests for `catalog`."""
    add_AdminServiceServicer_to_server(AdminServicer(catalog), server)  # type: ignore[no-untyped-call]


def _bundle(status: BundleStatus) -> pb.Bundle:
    return pb.Bundle(
        folder=_as_text(status.folder),
        model=status.name,
        version=status.version,
        state=f"BUNDLE_STATE_{status.state.value}",
        reason=_as_text(status.reason),
    )


def _change(change: Change) -> pb.FolderChange:
    return pb.FolderChange(
        folder=_as_text(change.folder),
        outcome=f"FOLDER_OUTCOME_{change.outcome.value}",
        model=change.name,
        version=change.version,
        reason=_as_text(change.reason),
    )


def _as_text(name: str) -> str:
    r"""A folder's name, or what quotes one; bytes that aren't UTF-8 are spelled as in `\xff`."""
    return name.encode(errors="surrogateescape").decode(errors="backslashreplace")
