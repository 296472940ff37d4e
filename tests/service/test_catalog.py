"""The catalog: bundles come, change and go while it serves, and what is wrong changes nothing."""

import asyncio
import gc
import os
import shutil
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from service.bundle import Bundle, write_bundle
from service.catalog import Catalog, Outcome, State, held
from service.config import ServerConfig
from service.errors import (
    ConfigError,
    InvalidArgument,
    StartupError,
    Unavailable,
    UnknownModel,
)
from service.metrics import Metrics
from tests.installing import install, spoil, switch, version_of
from tests.tiny_bundle import tiny_bundle

NAME = "tiny-bahdanau"
USUAL = "transformer-en-fr"
Scenario = Callable[[Catalog, Path], Awaitable[None]]


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> list[Bundle]:
    """One model in versions 1, 2 and 3."""
    place = tmp_path_factory.mktemp("versions")
    first = tiny_bundle(place / "1", "bahdanau")
    return [first, *(version_of(first, place / version, version) for version in ("2", "3"))]


@pytest.fixture
def directory(versions: list[Bundle], tmp_path: Path) -> Path:
    """A models directory with version 1 in the folder `it`."""
    install(versions[0], tmp_path / "models" / "it")
    return tmp_path / "models"


@asynccontextmanager
async def loaded(
    directory: Path, metrics: Metrics | None = None, **settings: object
) -> AsyncIterator[Catalog]:
    """A catalog that serves a directory, without patience for folders that are gone."""
    config = ServerConfig(models=directory, device="cpu", workers=1, max_rows=4, **settings)  # type: ignore[arg-type]
    catalog = Catalog(config, metrics, patience_seconds=0)
    try:
        await catalog.load()
        yield catalog
    finally:
        await catalog.close()


def serving(catalog: Catalog) -> list[tuple[str, str]]:
    return [(model.name, model.version) for model in catalog.router.models]


def states(catalog: Catalog) -> dict[tuple[str, str], State]:
    return {(each.folder, each.version): each.state for each in catalog.bundles()}


def faults(metrics: Metrics) -> float | None:
    return metrics.registry.get_sample_value("nmt_failed_bundles")


async def until(condition: Callable[[], bool]) -> None:
    """Lets the other tasks run until it is so; the test's timeout bounds it."""
    while not condition():
        await asyncio.sleep(0)


def test_nothing_is_served_before_it_is_loaded(directory: Path) -> None:
    catalog = Catalog(ServerConfig(models=directory))
    with pytest.raises(Unavailable, match="is loading its models"):
        _ = catalog.router
    assert catalog.names == [] == catalog.bundles()


def test_a_new_version_takes_over_and_the_old_one_ends_with_its_last_request(
    directory: Path, versions: list[Bundle]
) -> None:
    async def scenario() -> None:
        async with loaded(directory) as catalog:
            old = catalog.router.choose(NAME)
            with held([old]):
                install(versions[1], directory / "it")
                report = await catalog.reload()
                assert [change.outcome for change in report.changes] == [Outcome.LOADED]
                assert serving(catalog) == [(NAME, "2")]
                assert states(catalog) == {("it", "1"): State.RETIRING, ("it", "2"): State.SERVING}
                [translation] = await old.translator.translate_async(["Two women."])
                assert translation.text
            await until(lambda: states(catalog) == {("it", "2"): State.SERVING})
            with pytest.raises(Unavailable):
                old.translator.engine.submit_all([[1]], old.translator.default_options)

    asyncio.run(scenario())


def test_nothing_refers_to_the_graphs_of_a_version_that_was_closed(
    directory: Path, versions: list[Bundle]
) -> None:
    async def scenario() -> None:
        async with loaded(directory) as catalog:
            engine = weakref.ref(catalog.router.choose(NAME).translator.engine)
            await catalog.router.choose(NAME).translator.translate_async(["Two women."])
            install(versions[1], directory / "it")
            await catalog.reload()
            await until(lambda: len(catalog.bundles()) == 1)
            gc.disable()
            await until(lambda: engine() is None)
            assert engine() is None and serving(catalog) == [(NAME, "2")]

    try:
        asyncio.run(scenario())
    finally:
        gc.enable()


def test_a_request_that_pins_a_version_gets_it_and_others_the_newest(
    directory: Path, versions: list[Bundle]
) -> None:
    install(versions[1], directory / "it-10")
    install(versions[2], directory / "it-9")

    async def scenario() -> None:
        async with loaded(directory) as catalog:
            assert serving(catalog) == [(NAME, "2"), (NAME, "3"), (NAME, "1")]
            assert catalog.router.choose(NAME).version == "2"
            assert catalog.router.choose("", "en", "fr").version == "2"
            assert catalog.router.choose(NAME, version="1").version == "1"
            with pytest.raises(UnknownModel, match="version '4' of .* served: 2, 3, 1"):
                catalog.router.choose(NAME, version="4")

    asyncio.run(scenario())


def test_a_broken_new_version_leaves_the_old_one_serving_and_says_why(
    directory: Path, versions: list[Bundle], caplog: pytest.LogCaptureFixture
) -> None:
    metrics = Metrics(CollectorRegistry())

    def reloads(outcome: str) -> float | None:
        return metrics.registry.get_sample_value("nmt_reloads_total", {"outcome": outcome})

    async def scenario() -> None:
        async with loaded(directory, metrics) as catalog:
            install(versions[1], directory / "it")
            spoil(directory / "it")
            [change] = (await catalog.reload()).changes
            assert change.outcome is Outcome.FAILED and "fp32/step.onnx has " in change.reason
            assert serving(catalog) == [(NAME, "1")]
            assert {each.state for each in catalog.bundles()} == {State.SERVING, State.FAILED}
            assert change.reason in caplog.text and reloads("failed") == 1

            caplog.clear()
            report = await catalog.reload()
            assert report.changes == (change,) and not caplog.text
            assert str(report) == f"it: FAILED ({change.reason})"
            assert (reloads("failed"), reloads("unchanged")) == (1, 1)

            install(versions[1], directory / "it")
            [mended] = (await catalog.reload()).changes
            assert (mended.outcome, mended.reason) == (Outcome.LOADED, "")
            assert serving(catalog) == [(NAME, "2")] and reloads("loaded") == 2

    asyncio.run(scenario())


def test_a_version_whose_languages_or_beams_cannot_be_served_is_refused_alone(
    directory: Path, versions: list[Bundle]
) -> None:
    async def scenario() -> None:
        async with loaded(directory) as catalog:
            search = versions[0].manifest.search
            wide = {"search": type(search)(beam_size=5, max_length=search.max_length)}
            version_of(versions[0], directory / "odd", "5", source_language="english")
            version_of(versions[0], directory / "wide", "6", **wide)
            install(versions[1], directory / "good")
            failed = (await catalog.reload()).having(Outcome.FAILED)
            assert [change.folder for change in failed] == ["odd", "wide"]
            assert "searches with 5 beams" in failed[1].reason
            assert serving(catalog) == [(NAME, "1"), (NAME, "2")]

    asyncio.run(scenario())


def test_a_bundle_that_was_touched_but_is_the_same_is_not_loaded_again(
    directory: Path, versions: list[Bundle]
) -> None:
    async def scenario() -> None:
        async with loaded(directory) as catalog:
            model = catalog.router.choose(NAME)
            install(versions[0], directory / "it")
            [change] = (await catalog.reload()).changes
            assert change.outcome is Outcome.UNCHANGED
            assert catalog.router.choose(NAME) is model

    asyncio.run(scenario())


def test_a_folder_behind_a_symbolic_link_is_replaced_when_the_link_is_switched(
    versions: list[Bundle], tmp_path: Path
) -> None:
    directory = tmp_path / "models"
    directory.mkdir()
    switch(versions[0], directory / "it")

    async def scenario() -> None:
        async with loaded(directory) as catalog:
            switch(versions[1], directory / "it")
            await catalog.reload()
            assert serving(catalog) == [(NAME, "2")]

    asyncio.run(scenario())


def test_a_removed_folder_is_unloaded_but_never_the_last_one(
    directory: Path, versions: list[Bundle]
) -> None:
    install(versions[1], directory / "other")
    metrics = Metrics(CollectorRegistry())

    async def scenario() -> None:
        async with loaded(directory, metrics) as catalog:
            shutil.rmtree(directory / "other")
            [removed] = (await catalog.reload()).having(Outcome.UNLOADED)
            assert (removed.folder, removed.version) == ("other", "2")
            unloaded = {"outcome": "unloaded"}
            assert metrics.registry.get_sample_value("nmt_reloads_total", unloaded) == 1
            assert serving(catalog) == [(NAME, "1")]

            shutil.rmtree(directory / "it")
            with pytest.raises(ConfigError, match="has no bundle"):
                await catalog.reload()
            assert serving(catalog) == [(NAME, "1")]

            install(versions[2], directory / "broken")
            spoil(directory / "broken")
            kept = {change.folder: change.reason for change in (await catalog.reload()).changes}
            assert "nothing would be left" in kept["it"]
            assert serving(catalog) == [(NAME, "1")]

    asyncio.run(scenario())


def test_the_configured_default_model_is_never_taken_away(
    directory: Path, versions: list[Bundle]
) -> None:
    version_of(versions[0], directory / "other", "1", name="another")

    async def scenario() -> None:
        async with loaded(directory, default_model=NAME) as catalog:
            shutil.rmtree(directory / "it")
            report = await catalog.reload()
            [reason] = [change.reason for change in report.changes if change.folder == "it"]
            assert "default model 'tiny-bahdanau' is not served" in reason
            with pytest.raises(ConfigError, match="default model 'tiny-bahdanau'"):
                await catalog.unload(NAME)
            assert catalog.router.default == NAME

    asyncio.run(scenario())


def test_the_default_depends_on_what_is_served_and_not_on_what_was(
    directory: Path, versions: list[Bundle], caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        version_of(versions[0], directory / "usual", "1", name=USUAL)
        async with loaded(directory) as catalog:
            assert catalog.router.default == USUAL
            (directory / "usual").rename(directory / ".usual")
            await catalog.reload()
            assert catalog.router.default == NAME
            assert f"{NAME} answers requests that name no model" in caplog.text
            version_of(versions[0], directory / "other", "1", name="another")
            await catalog.reload()
            assert catalog.router.default == ""
            assert "none is the default; --default-model makes one" in caplog.text
            (directory / ".usual").rename(directory / "usual")
            await catalog.reload()
            async with loaded(directory) as anew:
                assert catalog.router.default == anew.router.default == USUAL

    asyncio.run(scenario())


def test_a_folder_that_was_renamed_goes_on_serving(directory: Path, versions: list[Bundle]) -> None:
    async def scenario() -> None:
        async with loaded(directory) as catalog:
            (directory / "it").rename(directory / "renamed")
            await catalog.reload()
            assert [model.folder for model in catalog.router.models] == ["renamed"]

    asyncio.run(scenario())


def test_a_version_that_another_folder_has_already_is_refused(
    directory: Path, versions: list[Bundle]
) -> None:
    async def scenario() -> None:
        async with loaded(directory) as catalog:
            install(versions[0], directory / "copy")
            [failed] = (await catalog.reload()).having(Outcome.FAILED)
            assert (failed.folder, failed.reason) == (
                "copy",
                "folder it has the same version of the same model; keep one of them",
            )

    asyncio.run(scenario())


def test_two_folders_that_exchange_their_bundles_both_go_on(
    directory: Path, versions: list[Bundle]
) -> None:
    install(versions[1], directory / "other")

    async def scenario() -> None:
        async with loaded(directory) as catalog:
            install(versions[1], directory / "it")
            install(versions[0], directory / "other")
            report = await catalog.reload()
            assert len(report.having(Outcome.LOADED)) == 2
            assert serving(catalog) == [(NAME, "1"), (NAME, "2")]

    asyncio.run(scenario())


def test_a_server_starts_with_what_is_good_and_says_what_is_broken(
    directory: Path, versions: list[Bundle], caplog: pytest.LogCaptureFixture
) -> None:
    install(versions[1], directory / "it-2")
    spoil(directory / "it-2")
    install(versions[0], directory / "it-3")
    metrics = Metrics(CollectorRegistry())

    async def scenario() -> None:
        async with loaded(directory, metrics, default_model=NAME) as catalog:
            assert serving(catalog) == [(NAME, "1")]
            reasons = {each.folder: each.reason for each in catalog.bundles()}
            assert reasons["it"] == ""
            assert reasons["it-2"].startswith("fp32/step.onnx has ")
            assert reasons["it-3"].startswith("folder it has the same version")
            assert all(reason in caplog.text for reason in reasons.values())
            assert faults(metrics) == 2

            install(versions[2], directory / "it-2")
            shutil.rmtree(directory / "it-3")
            await catalog.reload()
            assert serving(catalog) == [(NAME, "3"), (NAME, "1")] and faults(metrics) == 0

    asyncio.run(scenario())


def test_a_pipe_in_the_place_of_a_manifest_is_waited_for_neither_at_the_start_nor_later(
    directory: Path,
) -> None:
    def pipe_at(folder: Path) -> None:
        folder.mkdir()
        os.mkfifo(folder / "bundle.json")

    async def scenario() -> None:
        pipe_at(directory / "a-pipe")
        async with loaded(directory) as catalog:
            pipe_at(directory / "another")
            failed = (await catalog.reload()).having(Outcome.FAILED)
            assert [change.folder for change in failed] == ["a-pipe", "another"]
            assert all("no regular file" in change.reason for change in failed)
            assert serving(catalog) == [(NAME, "1")]

    asyncio.run(scenario())


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_manifest_is_told_once_and_looked_at_again_when_it_has_changed(
    make: Callable[[Path], None],
    directory: Path,
    versions: list[Bundle],
    caplog: pytest.LogCaptureFixture,
) -> None:
    folder = directory / "it-2"
    folder.mkdir()
    make(folder / "bundle.json")

    async def scenario() -> None:
        async with loaded(directory) as catalog:
            assert f"{folder} can't be served" in caplog.text
            caplog.clear()
            for _ in range(2):
                [failed] = (await catalog.reload()).having(Outcome.FAILED)
                assert failed.folder == "it-2" and not caplog.text
            shutil.rmtree(folder)
            install(versions[1], folder)
            [loaded_now] = (await catalog.reload()).having(Outcome.LOADED)
            assert loaded_now.folder == "it-2"

    asyncio.run(scenario())


def test_a_folder_counts_as_failed_for_as_long_as_it_is(
    directory: Path, versions: list[Bundle]
) -> None:
    metrics = Metrics(CollectorRegistry())

    async def scenario() -> None:
        async with loaded(directory, metrics) as catalog:
            assert faults(metrics) == 0
            install(versions[1], directory / "broken")
            spoil(directory / "broken")
            for _ in range(2):
                await catalog.reload()
                assert faults(metrics) == 1
            (directory / "it").rename(directory / ".it")
            await catalog.reload()
            assert faults(metrics) == 2, "the folder of what must go on serving is missing"
            shutil.rmtree(directory / "broken")
            with pytest.raises(ConfigError, match="has no bundle"):
                await catalog.reload()
            assert faults(metrics) == 1
            (directory / ".it").rename(directory / "it")
            await catalog.reload()
            assert faults(metrics) == 0

    asyncio.run(scenario())


def start_fails(directory: Path, **settings: object) -> tuple[str, ...]:
    """The faults for which nothing is served at all."""

    async def scenario() -> StartupError:
        with pytest.raises(StartupError) as caught:
            async with loaded(directory, None, **settings):
                pass
        return caught.value

    return asyncio.run(scenario()).faults


def test_where_nothing_can_be_served_every_fault_is_raised_at_once(
    directory: Path, versions: list[Bundle]
) -> None:
    install(versions[1], directory / "other")
    for folder in ("it", "other"):
        spoil(directory / folder)
    assert [fault.partition(" has ")[0] for fault in start_fails(directory)] == [
        "it: fp32/step.onnx",
        "other: fp32/step.onnx",
    ]


def test_a_configured_default_that_is_in_no_bundle_is_found_before_anything_is_loaded(
    versions: list[Bundle], tmp_path: Path
) -> None:
    whole, directory = versions[0], tmp_path / "models"
    files = {name: (whole.directory / name).read_bytes() for name in whole.manifest.files}
    # Would be found wrong if it were loaded.
    write_bundle(directory / "it", whole.manifest, files | {"fp32/step.onnx": b"no graph"})
    [fault] = start_fails(directory, default_model="other")
    assert fault == f"default model 'other' is not served; served: {NAME}"

    version_of(whole, directory / "a-other", "1", name="other")
    spoil(directory / "a-other")
    unserved, broken = start_fails(directory, default_model="other")
    assert broken.startswith("a-other: fp32/step.onnx has ") and unserved == fault


def test_a_configured_default_that_cannot_be_loaded_stops_the_start(
    directory: Path, versions: list[Bundle]
) -> None:
    search = versions[0].manifest.search
    wide = {"search": type(search)(beam_size=5, max_length=search.max_length)}
    version_of(versions[0], directory / "wide", "1", name="other", **wide)
    unserved, reason = start_fails(directory, default_model="other")
    assert unserved.startswith("default model 'other' is not served")
    assert reason.startswith("wide: is 4, but bundle other searches with 5 beams")


def test_the_version_before_serves_again_when_the_newest_is_unloaded(
    directory: Path, versions: list[Bundle]
) -> None:
    install(versions[1], directory / "it-2")

    async def scenario() -> None:
        async with loaded(directory) as catalog:
            with pytest.raises(InvalidArgument, match="tiny-bahdanau 2, tiny-bahdanau 1"):
                await catalog.unload(NAME)
            assert (await catalog.unload(NAME, "2")).state is State.UNLOADED
            assert catalog.router.choose(NAME).version == "1"
            report = await catalog.reload()
            assert serving(catalog) == [(NAME, "1")]
            assert ["unloaded by hand" in change.reason for change in report.changes] == [
                False,
                True,
            ]
            with pytest.raises(ConfigError, match="nothing would be left"):
                await catalog.unload(NAME)

            install(versions[2], directory / "it-2")
            await catalog.reload()
            assert serving(catalog) == [(NAME, "3"), (NAME, "1")]

    asyncio.run(scenario())


def test_a_listener_hears_of_names_that_come_and_go(
    directory: Path, versions: list[Bundle]
) -> None:
    async def scenario() -> None:
        async with loaded(directory) as catalog:
            heard = list[list[str]]()
            catalog.subscribe(lambda: heard.append(catalog.names))
            version_of(versions[0], directory / "other", "1", name="another")
            await catalog.reload()
            shutil.rmtree(directory / "other")
            await catalog.reload()
            assert heard[-1] == [NAME] and ["another", NAME] in heard

    asyncio.run(scenario())


def test_the_watch_finds_what_changes(directory: Path, versions: list[Bundle]) -> None:
    async def scenario() -> None:
        async with loaded(directory, watch_seconds=0.01) as catalog:
            watch = asyncio.create_task(catalog.watch())
            install(versions[1], directory / "it")
            await until(lambda: serving(catalog) == [(NAME, "2")])
            shutil.rmtree(directory / "it")
            install(versions[2], directory / "it")
            await until(lambda: serving(catalog) == [(NAME, "3")])
            assert not watch.done()
            watch.cancel()

    asyncio.run(scenario())


def test_a_watch_of_zero_seconds_ends_at_once(directory: Path) -> None:
    async def scenario() -> None:
        watch = asyncio.create_task(
            Catalog(ServerConfig(models=directory, watch_seconds=0)).watch()
        )
        await until(watch.done)
        assert watch.exception() is None

    asyncio.run(scenario())
