"""The command line of training.

python -m training train CONFIG
python -m training evaluate CHECKPOINT
python -m training distill CHECKPOINT OUTPUT
"""

import argparse
import dataclasses
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from service.decoding import DecodingOptions
from service.errors import TranslationError
from training.checkpoint import load_translator
from training.config import TrainingConfig, load_config
from training.distill import distill, write_pairs
from training.evaluate import corpus_bleu, load_eval_set, translate
from training.memory import keep_freed_memory
from training.train import resume, start
from training.vocabulary import load_vocabulary


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m training",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True)
    _add_train(commands.add_parser("train", help="train a translator"))
    _add_evaluate(commands.add_parser("evaluate", help="score a checkpoint"))
    _add_distill(
        commands.add_parser("distill", help="write a teacher's translations of its training set")
    )
    options = parser.parse_args(arguments)
    try:
        status: int = options.command(options)
    except (OSError, ValueError, FloatingPointError, TranslationError) as error:
        print(f"{parser.prog}: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    return status


def _add_train(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", type=Path, help="a file as in training/configs")
    parser.add_argument("--directory", type=Path, help="of the run; default: runs/NAME")
    parser.add_argument(
        "--resume",
        choices=["auto", "never"],
        default="never",
        help="auto: continue a run that is there",
    )
    parser.add_argument("--data-dir", help="overrides data.data_dir")
    parser.add_argument(
        "--total-steps", type=int, help="overrides run.total_steps; also of a resumed run"
    )
    parser.set_defaults(command=_train)


def _train(options: argparse.Namespace) -> int:
    config = _overridden(load_config(options.config), options)
    directory = options.directory or Path("runs", config.name)
    directory.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(
        level=logging.INFO,
        format="%(asctime)s %(message)s",
        handlers=[logging.StreamHandler(), logging.FileHandler(directory / "log.txt")],
    )
    keep_freed_memory()
    goes_on = options.resume == "auto" and (directory / "last.pt").exists()
    trainer = resume(directory, config) if goes_on else start(config, directory)
    return 0 if trainer.run() else 1


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", type=Path, help="best.pt or last.pt of a run")
    parser.add_argument("--split", choices=["valid", "test"], default="valid")
    parser.add_argument("--beam-size", type=int, default=1)
    parser.add_argument("--length-penalty", type=float, default=1.0)
    parser.add_argument("--data-dir", help="overrides data.data_dir of the checkpoint")
    parser.add_argument("--output", type=Path, help="a file for the translations, one a line")
    parser.set_defaults(command=_evaluate)


def _evaluate(options: argparse.Namespace) -> int:
    trained = load_translator(options.checkpoint)
    data = trained.config.data
    path = Path(
        options.data_dir or data.data_dir, data.test if options.split == "test" else data.valid
    )
    sources, references = load_eval_set(path, data.source_column)
    search = DecodingOptions(beam_size=options.beam_size, length_penalty=options.length_penalty)
    hypotheses = translate(trained.model, load_vocabulary(trained.vocabulary), sources, search)
    if options.output is not None:
        options.output.write_text("".join(f"{line}\n" for line in hypotheses), encoding="utf-8")
    score = corpus_bleu(hypotheses, references)
    print(
        f"BLEU {score.bleu:.2f} on {len(sources)} sources of {path.name}, "
        f"step {trained.step}; {score.signature}"
    )
    return 0


def _add_distill(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", type=Path, help="best.pt of the teacher's run")
    parser.add_argument("output", type=Path, help="a file for data.distilled, gzipped")
    parser.add_argument(
        "--beam-size", type=int, default=4, help="of so many, the closest to the references is kept"
    )
    parser.add_argument("--data-dir", help="overrides data.data_dir of the checkpoint")
    parser.set_defaults(command=_distill)


def _distill(options: argparse.Namespace) -> int:
    teacher = load_translator(options.checkpoint)
    data = teacher.config.data
    path = Path(options.data_dir or data.data_dir, data.train)
    sources, references = load_eval_set(path, data.source_column)
    width = options.beam_size
    search = DecodingOptions(beam_size=width, num_hypotheses=width)
    pairs = distill(teacher, sources, references, search)
    write_pairs(options.output, pairs, data.source_column)
    print(f"{len(pairs)} of {len(sources)} sources of {path.name} translated, step {teacher.step}")
    return 0


def _overridden(config: TrainingConfig, options: argparse.Namespace) -> TrainingConfig:
    if options.data_dir is not None:
        config = dataclasses.replace(
            config, data=dataclasses.replace(config.data, data_dir=options.data_dir)
        )
    if options.total_steps is not None:
        config = dataclasses.replace(
            config, run=dataclasses.replace(config.run, total_steps=options.total_steps)
        )
    return TrainingConfig.from_dict(config.to_dict())  # which checks it


if __name__ == "__main__":
    sys.exit(main())
