"""The systems that are measured, behind one face: translate a corpus of token ids."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import ctranslate2
from sentencepiece import SentencePieceProcessor

from bench.ctranslate2_model import save_ctranslate2_model
from bench.settings import served_precision
from bench.vocabulary_map import save_vocabulary_map
from export.rebuild import attention_layer_of, network_of
from service.batching import QueueLimits
from service.bundle import Bundle
from service.decoding import DecodingOptions, Hypothesis, decode
from service.engine import Engine, load_engine, usable_cores
from service.server.pauses import shorten_pauses
from training.model import Translator
from training.step_model import TorchStepModel
from training.transformer import Transformer

Ids: TypeAlias = Sequence[int]

WHOLE_CORPUS = QueueLimits(max_sentences=1 << 20, max_tokens=1 << 30)
_TORCH_ROWS = 64


class Timed(Protocol):
    """What can be timed."""

    def prepare(self, sources: Sequence[Ids]) -> Any:
        """Sources, ids with EOS, in the system's own form of tokens."""

    def run(self, prepared: Any) -> Any:
        """Translates all of them: only this is timed."""


class System(Timed, Protocol):
    """What can be compared."""

    def ids(self, results: Any) -> list[tuple[int, ...]]:
        """The targets without EOS, in the order of the sources, from what `run` returned."""


def translate(system: System, sources: Sequence[Ids]) -> list[tuple[int, ...]]:
    """Targets without EOS, in the order of the sources, ids with EOS."""
    return system.ids(system.run(system.prepare(sources)))


def engine_of(bundle: Bundle) -> Engine:
    """The engine as the server runs it, with a queue that takes a whole corpus."""
    engine = load_engine(bundle, precision=served_precision(bundle), queue=WHOLE_CORPUS)
    shorten_pauses()
    return engine


@dataclass(frozen=True, slots=True)
class EngineSystem:
    """Everything is submitted at once, the longest first: `translate_batch` sorts as well."""

    engine: Engine
    options: DecodingOptions

    def prepare(self, sources: Sequence[Ids]) -> Sequence[Ids]:
        return sources

    def run(self, prepared: Sequence[Ids]) -> list[Hypothesis]:
        order = sorted(range(len(prepared)), key=lambda index: -len(prepared[index]))
        futures = self.engine.submit_all([prepared[index] for index in order], self.options)
        by_index = dict(zip(order, futures, strict=True))
        return [by_index[index].result()[0] for index in range(len(prepared))]

    def ids(self, results: Sequence[Hypothesis]) -> list[tuple[int, ...]]:
        return [hypothesis.ids for hypothesis in results]


@dataclass(frozen=True, slots=True)
class Peer:
    """A bundle's Transformer, written as a model of ctranslate2."""

    directory: Path
    pieces: Sequence[str]
    compute_type: str
    has_map: bool
    """Whether it can choose from the bundle's lists instead of the whole vocabulary."""

    @classmethod
    def write(cls, bundle: Bundle, directory: Path) -> "Peer":
        """Writes the bundle's own weights; ctranslate2 quantises them again when it loads them."""
        network = network_of(bundle)
        assert isinstance(network, Transformer)
        processor = SentencePieceProcessor(model_proto=bundle.tokenizer_bytes("source"))
        named = processor.get_piece_size()
        # A vocabulary of random weights may be larger than that of the tokenizer.
        pieces = [
            processor.id_to_piece(index) if index < named else f"<{index}>"
            for index in range(bundle.manifest.vocabulary_size)
        ]
        save_ctranslate2_model(
            network, pieces, directory, attention_layer=attention_layer_of(bundle)
        )
        compute_type = "int8" if served_precision(bundle) == "int8" else "float32"
        if lexicon := bundle.lexicon():
            save_vocabulary_map(lexicon, pieces, directory)
        return cls(directory, pieces, compute_type, lexicon is not None)

    def best(self) -> ctranslate2.Translator:
        """A worker of one thread for every core: its fastest configuration on a CPU."""
        return self.load(inter_threads=usable_cores(), intra_threads=1)

    def default(self) -> ctranslate2.Translator:
        """One worker of as many threads as it likes."""
        return self.load()

    def load(self, **threads: int) -> ctranslate2.Translator:
        return ctranslate2.Translator(
            str(self.directory), compute_type=self.compute_type, **threads
        )


class Ctranslate2System:
    """`translate_batch` of the whole corpus; it sorts and cuts it into batches of `batch_size`."""

    def __init__(
        self,
        translator: ctranslate2.Translator,
        pieces: Sequence[str],
        options: DecodingOptions,
        batch_size: int = 0,
        min_length: int = 1,
        use_map: bool = False,
    ) -> None:
        self._translator = translator
        self._pieces = pieces
        self._ids = {piece: index for index, piece in enumerate(pieces)}
        self._options: dict[str, Any] = {
            "beam_size": options.beam_size,
            "patience": options.patience,
            "length_penalty": options.length_penalty,
            "min_decoding_length": min_length,
            "max_decoding_length": options.max_length,
            "max_input_length": 0,
            "return_attention": options.attention,
            "max_batch_size": batch_size,
            "use_vmap": use_map,
        }

    def prepare(self, sources: Sequence[Ids]) -> list[list[str]]:
        return [[self._pieces[index] for index in source] for source in sources]

    def run(self, prepared: list[list[str]]) -> Any:
        return self._translator.translate_batch(prepared, **self._options)

    def ids(self, results: Any) -> list[tuple[int, ...]]:
        ids = self._ids
        return [tuple(ids[piece] for piece in result.hypotheses[0]) for result in results]


@dataclass(frozen=True, slots=True)
class TorchSystem:
    """PyTorch in eager mode, driven by the service's own search."""

    network: Translator
    options: DecodingOptions

    def prepare(self, sources: Sequence[Ids]) -> Sequence[Ids]:
        return sources

    def run(self, prepared: Sequence[Ids]) -> list[Hypothesis]:
        model = TorchStepModel(self.network)
        found = decode(model, prepared, self.options, max_rows=_TORCH_ROWS)
        return [hypotheses[0] for hypotheses in found]

    def ids(self, results: Sequence[Hypothesis]) -> list[tuple[int, ...]]:
        return [hypothesis.ids for hypothesis in results]
