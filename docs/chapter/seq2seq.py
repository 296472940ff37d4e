"""Section 3: what attention adds to a recurrent encoder-decoder of the same size."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import torch

from docs.chapter.comparison import WITH, WITHOUT, Learner, is_by_heart, learners
from docs.chapter.figure import Figure, Run
from service.decoding import DecodingOptions, decode
from training import plots
from training.evaluate import bleu, corpus_bleu, translate
from training.step_model import TorchStepModel
from training.vocabulary import EOS_ID

# As the textbook asks for them, and what its answers are.
PHRASES: Final[Mapping[str, str]] = {
    "Go.": "Va !",
    "I lost.": "J'ai perdu.",
    "I'm home.": "Je suis chez moi.",
    "He's calm.": "Il est calme.",
}
SENTENCE: Final = "She gave me the book."
_COLOURS: Final = {WITHOUT: plots.RED, WITH: plots.BLUE}
# The most words of an English sentence in each group but the last.
_LONGEST: Final = (4, 6, 8, 10, 12, 15)


@dataclass(frozen=True)
class LengthGroup:
    """The scores of sentences of similar length."""

    label: str
    """Words of the English sentence."""
    num_sources: int
    scores: Mapping[str, float]
    """BLEU, 0 to 100, by the network's name."""


def learning_curves(run: Run) -> Figure:
    """Loss and BLEU on the validation set while both networks learn."""
    found = learners(run)
    picture, (left, right) = plots.canvas(columns=2, height=3.3)
    for name, learner in found.items():
        curves, colour = learner.curves, _COLOURS[name]
        loss, score = curves["valid/loss"], curves["valid/bleu"]
        left.plot(list(loss), list(loss.values()), "o-", color=colour, label=name, markersize=4)
        right.plot(list(score), list(score.values()), "o-", color=colour, label=name, markersize=4)
    plots.label(left, xlabel="training step", ylabel="loss (nats per token)", title="Loss")
    plots.label(right, xlabel="training step", ylabel="BLEU (0 to 100)", title="Greedy BLEU")
    left.legend()
    tested_on = "the sentences of the training" if is_by_heart(run) else "unseen sentences"
    first = learners(replace(run, quick=True))
    return Figure(
        picture,
        caption=f"Loss and BLEU on {tested_on} of two recurrent translators of the same size, "
        "trained on the same batches: attention is all in which they differ.",
        numbers={
            f"first losses {name}": list(learner.curves["train/loss"].values())
            for name, learner in first.items()
        },
        measured={
            f"last {tag} {name}": list(learner.curves[tag].values())[-1]
            for name, learner in found.items()
            for tag in ("valid/loss", "valid/bleu")
        }
        | {"parameters": sum(p.numel() for p in found[WITH].model.parameters())},
    )


def bleu_by_source_length(run: Run) -> Figure:
    """BLEU of both networks, for short sources and long ones."""
    groups = scores_by_length(learners(run), num_sources=40 if run.quick else None)
    picture, (axes,) = plots.canvas(height=3.6)
    for shift, name in ((-0.2, WITHOUT), (0.2, WITH)):
        places = [place + shift for place in range(len(groups))]
        heights = [group.scores[name] for group in groups]
        bars = axes.bar(places, heights, width=0.38, color=_COLOURS[name], label=name)
        axes.bar_label(bars, fmt="%.1f", fontsize=8)
    axes.set_xticks(
        range(len(groups)), [f"{group.label}\n({group.num_sources})" for group in groups]
    )
    plots.label(axes, xlabel="words of the English sentence (sentences)", ylabel="BLEU (0 to 100)")
    _legend_above(axes)
    return Figure(
        picture,
        caption="Greedy BLEU of both networks by the length of the English sentence, "
        "the longest on the right.",
        numbers={},
        measured={name: [group.scores[name] for group in groups] for name in (WITHOUT, WITH)},
    )


def scores_by_length(
    found: Mapping[str, Learner], num_sources: int | None = None
) -> list[LengthGroup]:
    """The test set in groups of similar source length, of the first sources if not of all."""
    sources, references = found[WITH].sources[:num_sources], found[WITH].references
    translations = {
        name: translate(learner.model, learner.tokenizer, sources)
        for name, learner in found.items()
    }
    groups = []
    for low, high in zip((1, *(most + 1 for most in _LONGEST)), (*_LONGEST, None), strict=True):
        chosen = [
            index
            for index, source in enumerate(sources)
            if low <= len(source.split()) <= (high or len(source))
        ]
        if not chosen:
            continue
        scores = {
            name: corpus_bleu([said[i] for i in chosen], [references[i] for i in chosen]).bleu
            for name, said in translations.items()
        }
        label = f"{low}–{high}" if high else f"{low} or more"
        groups.append(LengthGroup(label, len(chosen), scores))
    return groups


def classic_phrases(run: Run) -> Figure:
    """The textbook's four phrases: what both networks say, and its BLEU with n-grams to 2."""
    picture, (axes,) = plots.canvas(height=3.4)
    scores: dict[str, list[float]] = {}
    for shift, (name, learner) in zip((-0.2, 0.2), learners(run).items(), strict=True):
        said = translate(learner.model, learner.tokenizer, list(PHRASES))
        scores[name] = phrase_scores(said)
        places = [place + shift for place in range(len(PHRASES))]
        bars = axes.barh(places, scores[name], height=0.38, color=_COLOURS[name], label=name)
        labels = [
            f"{_printable(text)}  {score:.2f}"
            for text, score in zip(said, scores[name], strict=True)
        ]
        axes.bar_label(bars, labels, padding=4, fontsize=9)
    axes.set_yticks(range(len(PHRASES)), list(PHRASES))
    axes.invert_yaxis()
    axes.set_xlim(0, 1.6)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
    plots.label(axes, xlabel="BLEU with n-grams to 2 (0 to 1)", ylabel="English phrase")
    _legend_above(axes)
    return Figure(
        picture,
        caption="The four phrases of the textbook, what each network says for them, and how much "
        "of it the textbook expects.",
        numbers={},
        measured=scores,
    )


def phrase_scores(said: Sequence[str]) -> list[float]:
    """The textbook's BLEU of a translation of each phrase, 0 to 1."""
    return [
        bleu(text.split(), expected.split(), k=2)
        for text, expected in zip(said, PHRASES.values(), strict=True)
    ]


def _legend_above(axes: plots.Axes) -> None:
    """Where no bar can reach."""
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2)


def _printable(text: str) -> str:
    """A network that has learned nothing yet says anything, control characters too."""
    return "".join(filter(str.isprintable, text))[:30]


def decoder_attention(run: Run) -> Figure:
    """Where the network with attention looks for each word of a translation."""
    learner = learners(run)[WITH]
    tokens = learner.tokenizer.encode_tokens(SENTENCE)
    source = [*learner.tokenizer.encode(SENTENCE), EOS_ID]
    options = DecodingOptions(attention=True, max_length=20)
    [[hypothesis]] = decode(TorchStepModel(learner.model), [source], [options])
    _, words = learner.tokenizer.decode_tokens(hypothesis.ids)
    assert hypothesis.attention is not None
    weights = torch.from_numpy(hypothesis.attention)
    picture, (axes,) = plots.canvas(height=4.2)
    plots.heatmap(
        axes,
        weights,
        xlabel="source (key)",
        ylabel="translation (query)",
        columns=[*(token.piece for token in tokens), "</s>"],
        rows=[token.piece for token in words],
        bar="attention weight",
    )
    return Figure(
        picture,
        caption=f"The decoder's attention while it translates “{SENTENCE}”: "
        "each row is one step, and its weights sum to 1.",
        numbers={"sums of the first rows": weights.sum(-1)[:2].tolist()},
        measured={"largest weight of each row": weights.max(-1).values.tolist()},
    )


FIGURES = (learning_curves, bleu_by_source_length, classic_phrases, decoder_attention)
