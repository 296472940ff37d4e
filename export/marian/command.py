"""`python -m export import`: a Marian checkpoint, translated by itself, becomes a proven bundle."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from export.alignment import Choice, by_hand, by_shared_pieces
from export.arguments import positive
from export.assemble import ALIGNMENT, Description
from export.build import Candidate, Evidence, build_candidate
from export.marian.checkpoint import MarianCheckpoint, read_checkpoint
from export.verify import EvalSet, Tolerances
from service.bundle import PRECISIONS, Limits, SearchDefaults
from service.decoding import DecodingOptions, decode
from service.text import Tokenizer
from training.data import Example
from training.step_model import TorchStepModel
from training.vocabulary import EOS_ID

_ENGLISH = Path(__file__).parents[2] / "bench" / "sentences.txt"
_MAX_TOKENS = 512


def add_import(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("checkpoint", type=Path, help="folder with config.json and its neighbours")
    parser.add_argument("directory", type=Path, help="of the new bundle")
    parser.add_argument("--source-language", required=True, help="BCP 47 tag, such as en")
    parser.add_argument("--target-language", required=True, help="BCP 47 tag, such as fr")
    parser.add_argument(
        "--target-token", help="before every source of a multilingual model, such as '>>fra<<'"
    )
    parser.add_argument("--precision", nargs="+", choices=PRECISIONS, default=["int8"])
    parser.add_argument("--name", help="what clients ask for; default: the checkpoint's folder")
    parser.add_argument("--version", default="", help="default: a hash of the content")
    parser.add_argument("--licence", default="", help="of the checkpoint, for the provenance")
    parser.add_argument("--attribution", default="", help="who made it, for the provenance")
    parser.add_argument(
        "--calibrate",
        type=Path,
        metavar="FILE",
        help="source sentences, one a line, to calibrate and verify on; default: for English, the "
        "repository's own",
    )
    parser.add_argument(
        "--sentences", type=positive, default=200, help="of the file; default %(default)s"
    )
    parser.add_argument("--max-source-tokens", type=positive, default=_MAX_TOKENS)
    parser.add_argument("--max-target-tokens", type=positive, default=_MAX_TOKENS)
    parser.add_argument(
        "--attention-layer", type=int, help="that is returned; default: the one that aligns best"
    )
    parser.add_argument(
        "--max-bleu-loss",
        type=float,
        default=25.0,
        help="that int8 and fp16 may cost, of 100, against the float32 translations; "
        "default %(default)s",
    )
    parser.set_defaults(command=_import)


def _import(options: argparse.Namespace) -> None:
    if options.directory.exists():  # which is noticed anyway, minutes later
        raise ValueError(f"{options.directory} exists; remove it or choose another name")
    texts = _sentences(options)
    checkpoint = read_checkpoint(options.checkpoint)
    prefix = checkpoint.source_prefix(options.target_token)
    settings = checkpoint.settings
    limits = Limits(
        min(options.max_source_tokens, settings.max_positions),
        min(options.max_target_tokens, settings.max_positions),
    )
    evidence = _evidence(checkpoint, texts, prefix, limits)
    choice = _attention_layer(checkpoint, evidence.calibration, options.attention_layer)
    description = Description(
        name=options.name or checkpoint.directory.resolve().name,
        version=options.version,
        source_language=options.source_language,
        target_language=options.target_language,
        limits=limits,
        attention_layer=choice.layer,
        alignment=choice.report,
        source_prefix=prefix,
        search=SearchDefaults(settings.num_beams, settings.length_penalty),
    )
    candidate = Candidate(checkpoint.model, checkpoint.tokenizers, _provenance(checkpoint, options))
    tolerances = Tolerances(bleu=options.max_bleu_loss)
    bundle = build_candidate(
        candidate, options.directory, description, options.precision, evidence, tolerances
    )
    provenance = bundle.manifest.provenance
    report = {key: provenance[key] for key in (ALIGNMENT, "verification")}
    print(json.dumps(report, indent=2))


def _sentences(options: argparse.Namespace) -> list[str]:
    """Different ones, as many as wanted, from all over the file."""
    path: Path | None = options.calibrate
    if path is None:
        is_english = options.source_language.lower().split("-")[0] == "en"
        if not is_english or not _ENGLISH.exists():
            raise ValueError(
                f"no sentences of {options.source_language} to calibrate and verify on; name a "
                "file of them with --calibrate"
            )
        path = _ENGLISH
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    texts = list(dict.fromkeys(filter(None, lines)))
    if not texts:
        raise ValueError(f"{path} has no sentences; name another file with --calibrate")
    count: int = options.sentences
    return texts[:: max(1, len(texts) // count)][:count]


def _evidence(
    checkpoint: MarianCheckpoint, texts: Sequence[str], prefix: Sequence[int], limits: Limits
) -> Evidence:
    """What the network makes of the sentences is what int8 is calibrated on and held against."""
    source = Tokenizer.from_bytes(checkpoint.vocabularies.source_model, prefix)
    target = Tokenizer.from_bytes(checkpoint.vocabularies.target_model)
    encoded = [(text, [*source.encode(text), EOS_ID]) for text in texts]
    fitting = [(text, ids) for text, ids in encoded if 1 < len(ids) <= limits.max_source_tokens]
    if not fitting:
        raise ValueError(
            f"no sentence has at most {limits.max_source_tokens} tokens; raise --max-source-tokens"
        )
    sources = [ids for _, ids in fitting]
    greedy = DecodingOptions(max_length=limits.max_target_tokens - 1)
    found = [best.ids for best, *_ in decode(TorchStepModel(checkpoint.model), sources, greedy)]
    pairs = zip(sources, found, strict=True)
    own = [[target.decode(ids)] for ids in found]
    return Evidence(
        calibration=[Example(ids, [*translation, EOS_ID]) for ids, translation in pairs],
        valid=EvalSet([text for text, _ in fitting], own),
        test=None,
    )


def _attention_layer(
    checkpoint: MarianCheckpoint, examples: Sequence[Example], wanted: int | None
) -> Choice:
    model, vocabularies = checkpoint.model, checkpoint.vocabularies
    if wanted is not None:
        return by_hand(model, wanted)
    if vocabularies.source is vocabularies.target:
        return by_shared_pieces(model, examples)
    layer = max(0, model.config.decoder_layers - 2)
    return Choice(layer, {"chosen_by": "being the last but one (Garg et al. 2019, section 4.2)"})


def _provenance(checkpoint: MarianCheckpoint, options: argparse.Namespace) -> dict[str, Any]:
    return {
        "licence": options.licence,
        "attribution": options.attribution,
        "marian": checkpoint.facts,
        "target_token": options.target_token or "",
    }
