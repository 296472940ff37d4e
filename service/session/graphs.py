"""Loading a bundle's two graphs for a device, and what belongs to them."""

from collections.abc import Collection
from dataclasses import dataclass

import onnxruntime

from service.bundle import Bundle, Limits, Manifest
from service.errors import ConfigError
from service.session.devices import device_fault, prepare
from service.session.kernels import MAX_PLACES, library
from service.session.loading import accepted, load_session
from service.session.placement import OnHost, Placement, placement_on
from service.session.shortlist import Shortlists


@dataclass(frozen=True)
class Graphs:
    """The encoder and step sessions of a bundle in one precision; safe to share between threads.

    `manifest` has its tensors as this precision's graphs do; `shortlists` are there if the graphs
    can choose from a sentence's own words; `placement` is where the step graph has its rows.
    """

    manifest: Manifest
    encoder: onnxruntime.InferenceSession
    step: onnxruntime.InferenceSession
    shortlists: Shortlists | None = None
    placement: Placement = OnHost()

    @classmethod
    def load(
        cls,
        bundle: Bundle,
        precision: str,
        *,
        device: str = "cpu",
        threads: int = 1,
        max_device_bytes: int = 0,
        own_kernels: bool = True,
    ) -> "Graphs":
        """Loads both graphs; `threads` are those of one call, and each graph takes at most
        `max_device_bytes` of a GPU's memory beside the rows, 0 for as much as it needs.
        On the CPU they use this service's own kernels where these were built, unless that isn't
        wanted or a sentence may be too long for them.

        Raises ConfigError for a precision the bundle lacks or a device onnxruntime can't give, and
        BundleError for a file that is no graph.
        """
        _check_available(bundle.manifest, precision, device)
        prepare(device)
        takes_kernels = own_kernels and device == "cpu" and _fits_kernels(bundle.manifest.limits)
        kernels = accepted(library()) if takes_kernels else None
        encoder, step = (
            load_session(
                bundle.graph_path(precision, graph),
                device,
                threads=threads,
                max_device_bytes=max_device_bytes,
                kernels=kernels,
            )
            for graph in ("encoder", "step")
        )
        can_choose = any(each.name == "whole_vocabulary" for each in step.get_inputs())
        lexicon = bundle.lexicon() if can_choose else None
        manifest = bundle.manifest.in_precision(precision)
        placement = placement_on(device, _dtypes_of_rows(manifest), max_device_bytes)
        shortlists = Shortlists(lexicon) if lexicon else None
        return cls(manifest, encoder, step, shortlists, placement)


def _dtypes_of_rows(manifest: Manifest) -> Collection[str]:
    """The types of the elements of all that lives from step to step."""
    return {spec.dtype for spec in manifest.memory + manifest.shortlist + manifest.state}


def _fits_kernels(limits: Limits) -> bool:
    return max(limits.max_source_tokens, limits.max_target_tokens) <= MAX_PLACES


def _check_available(manifest: Manifest, precision: str, device: str) -> None:
    faults = []
    if precision not in manifest.precisions:
        known = ", ".join(manifest.precisions)
        faults.append(f"precision {precision} is not in bundle {manifest.name}, which has {known}")
    if fault := device_fault(device):
        faults.append(fault)
    if faults:
        raise ConfigError(f"model {manifest.name}", faults)
