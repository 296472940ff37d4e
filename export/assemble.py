"""The files of a bundle from a network: graphs of each precision, and the manifest that describes
them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from export.graphs import (
    TABLE,
    ActivationRange,
    FloatProducts,
    GraphOptions,
    IntegerProducts,
    Products,
    ShortlistLayer,
    encoder_graph,
    for_cuda,
    half_precision,
    num_attention_heads,
    shortlist_memory,
    step_graph,
)
from service.bundle import (
    Attention,
    Lexicon,
    Limits,
    Manifest,
    SearchDefaults,
    SpecialIds,
    TensorSpec,
)
from training.model import Translator
from training.vocabulary import BOS_ID, EOS_ID, PAD_ID, UNK_ID

NETWORK = "network"
"""The key of the provenance under which `Translator.config_dict()` is kept."""
ATTENTION_LAYER = "attention_layer"
"""The key of the provenance for the decoder layer whose attention the step returns."""
ALIGNMENT = "alignment"
"""The key of the provenance for the report on how that layer was chosen."""


@dataclass(frozen=True, slots=True)
class Description:
    """What a network doesn't know about itself."""

    name: str
    version: str
    """Empty for one that follows from the bundle's content."""
    source_language: str
    target_language: str
    limits: Limits
    attention_layer: int
    alignment: Mapping[str, Any] = field(default_factory=dict)
    """How that layer was chosen, as plain JSON; empty if nobody chose."""
    source_prefix: tuple[int, ...] = ()
    search: SearchDefaults = SearchDefaults()
    """But for its length, which is that of the limits."""

    @property
    def graph_options(self) -> GraphOptions:
        limits = self.limits
        return GraphOptions(
            self.attention_layer, limits.max_source_tokens, limits.max_target_tokens
        )


def graph_files(
    model: Translator,
    precisions: Iterable[str],
    options: GraphOptions,
    ranges: Mapping[str, ActivationRange],
    lexicon: Lexicon | None = None,
) -> dict[str, bytes]:
    """The graphs of each precision by their path in a bundle; only int8 needs the ranges, and only
    int8 can choose from shortlists.
    """
    files = {}
    for precision in precisions:
        for name, write in (("encoder", encoder_graph), ("step", step_graph)):
            graph = write(model, _products(precision, ranges, lexicon), options)
            if precision == "fp16":
                graph = half_precision(for_cuda(graph))
            files[f"{precision}/{name}.onnx"] = graph.SerializeToString()
    return files


def manifest_for(
    model: Translator,
    description: Description,
    precisions: Iterable[str],
    provenance: Mapping[str, Any],
    *,
    shortlist: bool = False,
) -> Manifest:
    """The manifest of a network's bundle; the provenance also gets what `rebuild` needs."""
    limits = description.limits
    return Manifest(
        name=description.name,
        version=description.version,
        architecture=model.config.architecture,
        source_language=description.source_language,
        target_language=description.target_language,
        vocabulary_size=model.embedding.weight.size(0),
        special_ids=SpecialIds(pad=PAD_ID, eos=EOS_ID, decoder_start=BOS_ID, unk=UNK_ID),
        limits=limits,
        memory=tuple(TensorSpec(spec.name, spec.axes) for spec in model.memory_specs),
        state=tuple(TensorSpec(spec.name, spec.axes) for spec in model.state_specs),
        attention=Attention(layer=0, num_layers=1, num_heads=num_attention_heads(model)),
        precisions=tuple(precisions),
        shortlist=shortlist_memory(model.embedding.weight.size(1)) if shortlist else (),
        source_prefix=description.source_prefix,
        search=replace(description.search, max_length=limits.max_target_tokens),
        provenance={
            **provenance,
            NETWORK: model.config_dict(),
            ATTENTION_LAYER: description.attention_layer,
            ALIGNMENT: dict(description.alignment),
        },
    )


def _products(
    precision: str, ranges: Mapping[str, ActivationRange], lexicon: Lexicon | None
) -> Products:
    if precision in ("fp32", "fp16"):
        return FloatProducts()
    if precision == "int8":
        shortlist = ShortlistLayer(lexicon.common, ranges[TABLE]) if lexicon else None
        return IntegerProducts(ranges, shortlist)
    raise ValueError(f"precision {precision!r} is unknown; choose fp32, int8 or fp16")
