"""Section 6: the attention of one sentence in torch, in ONNX's graphs and over gRPC.

A real server process answers from what is shipped in models/ and from the same weights in float32.
"""

import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from docs.chapter.figure import Figure, Run
from docs.chapter.sentence import SENTENCE
from docs.make_readme import serving
from export.rebuild import attention_layer_of, rebuild
from service.bundle import Bundle
from service.client import Client
from service.decoding import DecodingOptions, StepModel, decode
from service.pb import translation_pb2 as pb
from service.session import Graphs, OnnxModel
from service.text import Tokenizer
from training import plots
from training.step_model import TorchStepModel

TORCH = "torch"
"""What all others are held against: the served weights, as torch computes with them."""
ONNX_FLOAT, GRPC_FLOAT = "ONNX, float32", "gRPC, float32"
ONNX_INT8, GRPC_INT8 = "ONNX, int8", "gRPC, int8"
_MAX_ROWS = 4
# Over gRPC as in process: one hypothesis, from the whole vocabulary.
_SEARCH = DecodingOptions(beam_size=1, attention=True, shortlist=False)
_REQUESTED = pb.DecodingOptions(beam_size=1, shortlist=False)


@dataclass(frozen=True, eq=False)
class View:
    """One way to the translation of the sentence."""

    target: tuple[str, ...]
    """The pieces of the translation."""
    weights: NDArray[np.float32]
    """(target, source), the mean of the heads; the last source token is its end."""


def views(run: Run) -> dict[str, View]:
    """Every way from torch to the wire, in float32 first."""
    shipped = run.served.bundle
    with tempfile.TemporaryDirectory() as folder:
        models = Path(folder)
        float32 = rebuild(_renamed(shipped), models / "float32")
        shutil.copytree(shipped.directory, models / shipped.manifest.name)
        with _client(models) as client:
            return {
                TORCH: _in_process(_torch_model(run), shipped),
                ONNX_FLOAT: _in_process(_onnx_model(float32, "fp32"), float32),
                GRPC_FLOAT: _over_grpc(client, float32),
                ONNX_INT8: _in_process(_onnx_model(shipped, "int8"), shipped),
                GRPC_INT8: _over_grpc(client, shipped),
            }


def differences(found: Mapping[str, View]) -> dict[str, float]:
    """The largest difference of a weight from torch's, of every other way.

    Raises:
        ValueError: if one translates the sentence in another way.
    """
    reference = found[TORCH]
    for name, view in found.items():
        if view.target != reference.target:
            raise ValueError(f"{name} says {view.target}, {TORCH} {reference.target}")
    return {
        name: float(np.abs(view.weights - reference.weights).max())
        for name, view in found.items()
        if name != TORCH
    }


def one_sentence_three_ways(run: Run) -> Figure:
    """The same attention from torch, from the graphs and from a server, in both precisions."""
    found = views(run)
    apart = differences(found)
    source = [token.piece for token in run.served.tokenizer.encode_tokens(SENTENCE)]
    draw = partial(
        plots.heatmap,
        xlabel="",
        ylabel="",
        columns=[*source, "</s>"],
        rows=found[TORCH].target,
    )
    picture, axes = plots.canvas(2, 3, height=5.8, sharex=True, sharey=True)
    for place, name in zip((*axes[:3], *axes[4:]), found, strict=True):
        title = f"{name}\nat most {apart[name]:.1e} from torch" if name in apart else f"{name}\n"
        draw(place, found[name].weights, title=title)
    rounding = np.abs(found[ONNX_INT8].weights - found[TORCH].weights)
    title = "|int8 − torch|\n100 times as dark"
    draw(axes[3], rounding, title=title, limits=(0.0, 0.01))
    for place in axes[3:]:
        place.set_xlabel("source (key)")
    for place in axes[::3]:
        place.set_ylabel("translation (query)")
    return Figure(
        picture,
        caption="One sentence's cross-attention (white 0, dark 1) in torch, in the exported "
        "graphs and from a server, in float32 above and int8 below.",
        numbers={TORCH: found[TORCH].weights.tolist()},
        measured=apart,
    )


def _renamed(bundle: Bundle) -> Bundle:
    """The same bundle under a name that it can be served under beside itself."""
    name = f"{bundle.manifest.name}-float32"
    return replace(bundle, manifest=replace(bundle.manifest, name=name))


def _torch_model(run: Run) -> TorchStepModel:
    bundle = run.served.bundle
    layer, heads = attention_layer_of(bundle), bundle.manifest.attention.num_heads
    return TorchStepModel(run.served.network, slice(layer * heads, (layer + 1) * heads))


def _onnx_model(bundle: Bundle, precision: str) -> OnnxModel:
    return OnnxModel(Graphs.load(bundle, precision), _MAX_ROWS)


def _in_process(model: StepModel, bundle: Bundle) -> View:
    tokenizer = Tokenizer.from_bytes(bundle.tokenizer_bytes("source"))
    source = [*tokenizer.encode(SENTENCE), bundle.manifest.special_ids.eos]
    [[hypothesis]] = decode(model, [source], [_SEARCH], max_rows=_MAX_ROWS)
    _, tokens = tokenizer.decode_tokens(hypothesis.ids)
    assert hypothesis.attention is not None
    return View(tuple(token.piece for token in tokens), hypothesis.attention)


@contextmanager
def _client(models: Path) -> Iterator[Client]:
    """A client of a server process that serves every bundle of a folder."""
    with serving(f"--models={models}", "--port=0", "--metrics-port=0") as banner:
        found = re.search(r"on (localhost:\d+)", banner)
        assert found, f"the server said {banner!r}"
        with Client(found[1]) as client:
            yield client


def _over_grpc(client: Client, bundle: Bundle) -> View:
    request = pb.TranslateRequest(
        contents=[SENTENCE],
        model=bundle.manifest.name,
        options=_REQUESTED,
        include_attention=True,
    )
    [translation] = client.translate(request).translations
    attention = translation.sentences[0].hypotheses[0].attention
    weights = np.array(attention.weights, np.float32)
    return View(
        tuple(token.text for token in attention.target_tokens),
        weights.reshape(attention.num_targets, attention.num_sources),
    )


FIGURES = (one_sentence_three_ways,)
