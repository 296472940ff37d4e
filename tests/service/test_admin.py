"""The admin rpcs and their command, on a real server."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from service.bundle import Bundle, read_bundle
from service.catalog import Catalog
from service.config import ServerConfig
from service.pb import admin_pb2 as pb
from service.pb.admin_pb2_grpc import AdminServiceStub
from service.rpc import add_admin
from tests.installing import install, spoil, version_of
from tests.running_server import RunningServer, run_service, running_server

NAME = "tiny-bahdanau"


@pytest.fixture(scope="module")
def bundle(models: Path) -> Bundle:
    return read_bundle(models / "bahdanau")


@pytest.fixture(scope="module")
def directory(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A models directory with version 1 in the folder `it-1`."""
    directory = tmp_path_factory.mktemp("models")
    install(bundle, directory / "it-1")
    return directory


@pytest.fixture(scope="module")
def server(directory: Path) -> Iterator[RunningServer]:
    """A server that looks at its directory only when it is asked to."""
    flags = ("--admin=on", "--admin-port=0", "--watch-seconds=0", "--workers=1")
    with running_server(directory, *flags) as server:
        yield server


def admin(server: RunningServer, *arguments: str) -> tuple[int, list[str]]:
    """The exit code of an admin command, and its lines with single spaces."""
    result = run_service("admin", "--server", f"localhost:{server.admin_port}", *arguments)
    return result.returncode, [" ".join(line.split()) for line in result.stdout.splitlines()]


def test_versions_are_installed_listed_and_taken_out_again(
    server: RunningServer, directory: Path, bundle: Bundle
) -> None:
    head = "FOLDER MODEL VERSION STATE REASON"
    one, two = f"it-1 {NAME} 1", f"it-2 {NAME} 2"
    assert admin(server, "list") == (0, [head, f"{one} SERVING"])

    version_of(bundle, directory / "it-2", "2")
    assert admin(server, "reload") == (0, [head, f"{one} UNCHANGED", f"{two} LOADED"])
    assert admin(server, "list") == (0, [head, f"{one} SERVING", f"{two} SERVING"])

    assert admin(server, "unload", NAME)[0] == 1  # which one?
    code, [_, unloaded] = admin(server, "unload", NAME, "2")
    assert code == 0 and unloaded.startswith(f"{two} UNLOADED unloaded by hand")
    assert admin(server, "list")[1][1:] == [f"{one} SERVING", unloaded]

    install(bundle, directory / "it-3")
    spoil(directory / "it-3")
    code, [_, *_, failed] = admin(server, "reload")
    assert code == 1 and failed.startswith("it-3 FAILED fp32/step.onnx has ")


def test_a_folder_whose_name_is_no_text_is_shown_escaped(
    server: RunningServer, directory: Path
) -> None:
    for name in (b"no-\xff-utf-8", b"two\nlines"):
        folder = directory / os.fsdecode(name)
        folder.mkdir()
        (folder / "bundle.json").touch()
    for action in ("reload", "list"):
        _, lines = admin(server, action)
        folders = [line.split()[0] for line in lines if "is no strict JSON" in line]
        assert folders == [r"no-\xff-utf-8", r"two\nlines"]


def test_the_last_model_stays_and_the_command_says_so(server: RunningServer) -> None:
    result = run_service("admin", f"--server=localhost:{server.admin_port}", "unload", NAME, "1")
    assert result.returncode == 2
    assert "nothing would be left to serve" in result.stderr
    result = run_service("admin", f"--server=localhost:{server.admin_port}", "unload", "nobody")
    assert result.returncode == 1
    assert result.stderr.startswith("NOT_FOUND: model 'nobody' is not served")


def test_a_server_that_is_not_there_is_named() -> None:
    result = run_service("admin", "--server=localhost:1", "list")
    assert result.returncode == 1
    assert result.stderr.startswith("UNAVAILABLE: localhost:1: ")


def test_the_port_of_the_clients_answers_no_admin_rpc(server: RunningServer) -> None:
    with grpc.insecure_channel(server.address) as channel:
        with pytest.raises(grpc.RpcError) as caught:
            AdminServiceStub(channel).ListBundles(pb.ListBundlesRequest())
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_a_directory_without_bundles_is_a_failed_precondition(directory: Path) -> None:
    async def scenario() -> grpc.aio.AioRpcError:
        server = grpc.aio.server()
        add_admin(server, Catalog(ServerConfig(models=directory / "nowhere")))
        port = server.add_insecure_port("localhost:0")
        await server.start()
        async with grpc.aio.insecure_channel(f"localhost:{port}") as channel:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await AdminServiceStub(channel).Reload(pb.ReloadRequest())
        await server.stop(None)
        return caught.value

    error = asyncio.run(scenario())
    assert error.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert "nowhere is not a directory" in (error.details() or "")
