"""float16 on a GPU against CTranslate2 and PyTorch: `python -m bench.gpu [--device cpu]`.

Every bundle's own weights, as float16 graphs on the device and as what the peers make of them.
CTranslate2 has no recurrent models, so those are compared with PyTorch alone. On the CPU it shows
that everything works, and nothing else: there the peers are given float32.
"""

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import ctranslate2
import torch
from torch import Tensor

from bench.corpus import ROOT, load_corpus
from bench.side_by_side import encode
from bench.systems import (
    WHOLE_CORPUS,
    Ctranslate2System,
    EngineSystem,
    Ids,
    Peer,
    System,
    TorchSystem,
)
from bench.table import Row, format_table
from bench.timing import alternate
from export.rebuild import network_of, rebuild
from service.bundle import Bundle, read_bundle
from service.decoding import DecodingOptions, Stopping
from service.engine import load_engine
from service.session import device_fault
from training.model import StepOutput, Translator

_MAX_ROWS = 256


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints a table for each bundle; 1 if the device can't be had."""
    options = _parser().parse_args(arguments)
    if fault := device_fault(options.device):
        print(fault, file=sys.stderr)
        return 1
    texts = load_corpus(options.sentences).sources
    for path in sorted(options.models.glob("*/bundle.json")):
        rows = list(measured(read_bundle(path.parent), texts, options.device, options.rounds))
        print(format_table(rows), end="\n\n", flush=True)
    return 0


def measured(bundle: Bundle, texts: Sequence[str], device: str, rounds: int) -> Iterator[Row]:
    """Sentences a second of every system, greedy and with a beam of 4."""
    sources = encode(bundle, texts)
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as stack:
        for beam_size in (1, 4):
            options = DecodingOptions(
                beam_size=beam_size, max_length=100, stopping=Stopping.FINISHED, shortlist=False
            )
            place = Path(scratch, str(beam_size))
            systems = _systems(bundle, options, device, place, stack)
            yield from _race(bundle.manifest.name, systems, sources, beam_size, rounds)


def _systems(
    bundle: Bundle,
    options: DecodingOptions,
    device: str,
    place: Path,
    stack: contextlib.ExitStack,
) -> dict[str, System]:
    halved = rebuild(bundle, place / "halved", ["fp16"])
    engine = load_engine(
        halved, precision="fp16", device=device, max_rows=_MAX_ROWS, queue=WHOLE_CORPUS
    )
    systems: dict[str, System] = {
        "this engine": EngineSystem(stack.enter_context(contextlib.closing(engine)), options)
    }
    if bundle.manifest.architecture == "transformer":
        peer = replace(
            Peer.write(bundle, place / "peer"),
            compute_type="float16" if device == "cuda" else "float32",
        )
        translator = ctranslate2.Translator(
            str(peer.directory), device=device, compute_type=peer.compute_type
        )
        systems["ctranslate2"] = Ctranslate2System(translator, peer.pieces, options, _MAX_ROWS)
    network: Any = OnDevice(network_of(bundle), device)
    systems["pytorch"] = TorchSystem(network, options)
    return systems


def _race(
    name: str, systems: dict[str, System], sources: Sequence[Ids], beam_size: int, rounds: int
) -> Iterator[Row]:
    runs = {name: partial(system.run, system.prepare(sources)) for name, system in systems.items()}
    alternate(runs, 1)  # nothing is warm yet
    for system, seconds in alternate(runs, rounds).items():
        values = {"sentences/s": len(sources) / median(seconds)}
        yield Row(name, f"beam {beam_size}", system, values)


@dataclass(frozen=True, slots=True)
class OnDevice:
    """A network on a device, in float16 there if it is a GPU, for a search in host memory."""

    network: Translator
    device: str

    def eval(self) -> "OnDevice":
        """The same on the device."""
        return OnDevice(self.network.to(self.device).eval(), self.device)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.network, name)

    def encode(
        self, source_ids: Tensor, lengths: Tensor
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Memory and state, which stay on the device."""
        with self._precision():
            return self.network.encode(source_ids.to(self.device), lengths.to(self.device))

    def step(
        self,
        tokens: Tensor,
        positions: Tensor,
        lengths: Tensor,
        memory: tuple[Tensor, ...],
        state: tuple[Tensor, ...],
    ) -> StepOutput:
        """A step whose logits and attention are brought to the host."""
        with self._precision():
            output = self.network.step(
                tokens.to(self.device),
                positions.to(self.device),
                lengths.to(self.device),
                memory,
                state,
            )
        return replace(output, logits=output.logits.cpu(), attention=output.attention.cpu())

    def _precision(self) -> contextlib.AbstractContextManager[Any]:
        return torch.autocast(self.device, torch.float16, enabled=self.device == "cuda")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu", description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--models", type=Path, default=ROOT / "models", help="default models/")
    parser.add_argument("--sentences", type=Path, help="pairs as .tsv.gz, or one sentence a line")
    parser.add_argument("--rounds", type=int, default=5, help="default %(default)s")
    return parser


if __name__ == "__main__":
    sys.exit(main())
