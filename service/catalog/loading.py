"""From a bundle on disk to a `ServedModel` that is warmed up, or to what is wrong with it."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from service.batching import QueueLimits
from service.bundle import Bundle, Manifest
from service.catalog.routing import Router
from service.catalog.served import ServedModel
from service.config import ServerConfig
from service.engine import load_engine
from service.errors import BundleError, ConfigError
from service.metrics import Metrics
from service.session import device_fault
from service.text import Tokenizer
from service.translator import Translator

_LOG = logging.getLogger(__name__)
# Best first; a bundle need not have them all.
_PRECISIONS = {"cpu": ("int8", "fp32"), "cuda": ("fp16",)}


def repeated_versions(bundles: Sequence[Bundle]) -> Iterator[str]:
    """A fault for every version of a model that several bundles are."""
    places: dict[tuple[str, str], list[str]] = {}
    for bundle in bundles:
        key = bundle.manifest.name, bundle.manifest.version
        places.setdefault(key, []).append(bundle.directory.name)
    for (name, version), folders in places.items():
        if len(folders) > 1:
            yield f"version {version} of {name} is in {', '.join(folders)}; keep one of them"


def load_model(bundle: Bundle, config: ServerConfig, metrics: Metrics | None = None) -> ServedModel:
    """Loads and warms up a bundle; takes seconds. Device `auto` is cuda where that works.

    Raises ConfigError if the bundle lacks the precision or the machine the device, or if a beam of
    the bundle's own width has no room in a batch, and BundleError if the bundle can't be run.
    """
    name, beam_size = bundle.manifest.name, bundle.manifest.search.beam_size
    if beam_size > config.max_rows:
        fault = f"is {config.max_rows}, but bundle {name} searches with {beam_size} beams"
        raise ConfigError("--max-rows", [fault])
    Router([bundle.manifest])  # its languages must be tags
    with _blamed_on(bundle, "its tokenizers can't be used"):
        _check_tokenizers(bundle)
    if config.device == "auto":
        try:
            return _load_on("cuda", bundle, config, metrics)
        except ConfigError as error:
            _LOG.info("%s runs on the cpu: %s", name, "; ".join(error.faults))
    return _load_on("cpu" if config.device == "auto" else config.device, bundle, config, metrics)


def try_out(bundle: Bundle) -> None:
    """Translates a sentence in every precision that a CPU runs. Raises BundleError."""
    for precision in _PRECISIONS["cpu"]:
        if precision in bundle.manifest.precisions:
            config = ServerConfig(device="cpu", precision=precision, workers=1)
            model = load_model(bundle, config)
            try:
                with _blamed_on(bundle, f"{precision} can't translate"):
                    model.translator.translate(["Hello!"])
            finally:
                model.close()


def _load_on(
    device: str, bundle: Bundle, config: ServerConfig, metrics: Metrics | None
) -> ServedModel:
    if fault := device_fault(device):  # before the bundle is blamed for what it lacks
        raise ConfigError("--device", [fault])
    precision = _choose_precision(bundle.manifest, device, config.precision)
    observer = metrics.model(bundle.manifest.name) if metrics else None
    with _blamed_on(bundle, f"{precision} can't be loaded"):
        engine = load_engine(
            bundle,
            precision=precision,
            device=device,
            workers=config.workers,
            max_rows=config.max_rows,
            queue=QueueLimits(config.max_queue_sentences, config.max_queue_tokens),
            observer=observer,
            own_kernels=config.kernels == "auto",
        )
    try:
        with _blamed_on(bundle, f"{precision} can't run with {config.max_rows} rows"):
            engine.wait_until_ready()
        with _blamed_on(bundle, "its tokenizers or its search can't be used"):
            translator = Translator(bundle, engine)
    except BundleError:
        engine.close()
        raise
    folder = bundle.directory.name
    if observer is None:
        return ServedModel(translator, precision, device, folder)
    unwatch = observer.watch(
        waiting=lambda: engine.num_waiting,
        rows=lambda: engine.num_rows,
        max_rows=engine.max_rows_in_flight,
    )
    return ServedModel(translator, precision, device, folder, unwatch)


def _check_tokenizers(bundle: Bundle) -> None:
    """Raises BundleError if the manifest's special ids are other pieces of its tokenizers."""
    manifest = bundle.manifest
    ids, faults = manifest.special_ids, list[str]()
    for side in ("source", "target"):
        tokenizer = Tokenizer.from_bytes(bundle.tokenizer_bytes(side))
        for key, id in (("eos", tokenizer.eos_id), ("unk", tokenizer.unk_id)):
            if (expected := getattr(ids, key)) != id:
                faults.append(
                    f"special_ids.{key} is {expected}, but the {side} tokenizer's is {id}"
                )
    if faults:
        raise BundleError(str(bundle.directory), faults)


@contextmanager
def _blamed_on(bundle: Bundle, what: str) -> Iterator[None]:
    """Names the bundle in whatever goes wrong with it."""
    try:
        yield
    except ConfigError:
        raise
    except BundleError as error:
        directory, subject = str(bundle.directory), error.subject
        prefix = "" if subject == directory else f"{subject}: "
        raise BundleError(directory, [prefix + fault for fault in error.faults]) from error
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise BundleError(str(bundle.directory), [f"{what}: {reason}"]) from error


def _choose_precision(manifest: Manifest, device: str, wanted: str) -> str:
    if wanted != "auto":
        return wanted  # checked against the bundle when its graphs are loaded
    for precision in _PRECISIONS[device]:
        if precision in manifest.precisions:
            return precision
    have, need = ", ".join(manifest.precisions), " or ".join(_PRECISIONS[device])
    raise ConfigError(f"model {manifest.name}", [f"{device} needs {need}, the bundle has {have}"])
