"""What capitals and lower case cost a model in BLEU, and how much truecasing gives back.

    python -m bench.case models/transformer-en-fr ../data/valid.tsv.gz --sentences 200

Each line is one way to give the same sentences to the model. `as is`: the model copes alone.
`truecased`: the source goes through `Truecaser`; for capitals, the answer through `upper_case`.
Capitals are scored against references in capitals, the rest against the references as they are.
Drives the engine and not the translator, so it measures both ways whatever the translator does.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from sentencepiece import SentencePieceProcessor

from service.batching import QueueLimits
from service.bundle import Bundle, read_bundle
from service.decoding import DecodingOptions
from service.engine import Engine, load_engine
from service.text import Tokenizer
from service.text.case import Truecaser, is_all_caps, upper_case
from training.evaluate import corpus_bleu, load_eval_set

Change = Callable[[str], str]


class CaseBench:
    """One bundle and one evaluation set, translated after any change to its sources."""

    def __init__(
        self, bundle: Bundle, engine: Engine, sources: list[str], references: list[list[str]]
    ) -> None:
        self._engine = engine
        self._sources = sources
        self._references = references
        self._eos = bundle.manifest.special_ids.eos
        self._source = Tokenizer.from_bytes(bundle.tokenizer_bytes("source"))
        self._target = Tokenizer.from_bytes(bundle.tokenizer_bytes("target"))
        processor = SentencePieceProcessor()
        processor.load_from_serialized_proto(bundle.tokenizer_bytes("source"))
        self._truecaser = Truecaser(processor.encode, processor.get_score)

    def lines(self) -> list[str]:
        """One line for each way: BLEU, and what was done."""
        capitals = [[text.upper() for text in texts] for texts in self._references]
        return [
            self._line("as written", str, str, self._references),
            self._line("capitals, as is", str.upper, str, capitals),
            self._line("capitals, as is, answer in capitals", str.upper, _upper, capitals),
            self._line("capitals, truecased", self._repaired, _upper, capitals),
            self._line("lower case, as is", str.lower, str, self._references),
            self._line("lower case, truecased", self._recased, str, self._references),
            self._line("as written, truecased", self._truecaser, str, self._references),
        ]

    def _line(self, name: str, before: Change, after: Change, references: list[list[str]]) -> str:
        answers = map(after, self._translate([before(text) for text in self._sources]))
        return f"{corpus_bleu(list(answers), references).bleu:6.2f}  {name}"

    def _repaired(self, text: str) -> str:
        text = text.upper()
        return self._truecaser(text) if is_all_caps(text) else text

    def _recased(self, text: str) -> str:
        return self._truecaser(text.lower())

    def _translate(self, texts: Sequence[str]) -> list[str]:
        ids = [[*self._source.encode(text), self._eos] for text in texts]
        futures = self._engine.submit_all(ids, DecodingOptions())
        return [self._target.decode(future.result()[0].ids) for future in futures]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("bundle", type=Path)
    parser.add_argument("pairs", type=Path, help="a .tsv.gz of pairs, the source first")
    parser.add_argument("--source-column", type=int, default=0, help="0 or 1")
    parser.add_argument("--sentences", type=int, default=200)
    options = parser.parse_args()
    sources, references = load_eval_set(options.pairs, options.source_column)
    step = max(1, len(sources) // options.sentences)
    bundle = read_bundle(options.bundle)
    engine = load_engine(
        bundle,
        precision=bundle.manifest.precisions[0],
        device="cpu",
        workers=1,
        max_rows=32,
        queue=QueueLimits(len(sources), 1 << 20),
    )
    try:
        bench = CaseBench(bundle, engine, sources[::step], references[::step])
        print("\n".join(bench.lines()))
    finally:
        engine.close()


def _upper(text: str) -> str:
    return upper_case(text).text


if __name__ == "__main__":
    main()
