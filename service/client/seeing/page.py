"""Translations as a page for a browser: one file, which asks the network for nothing.

The page holds its data as JSON and draws them by itself (`assets/`); nothing that anybody wrote is
ever read as markup. Its policy lets only this very script and style run, and nothing be fetched.
"""

import base64
import hashlib
import json
from collections.abc import Iterable
from importlib.resources import files
from string import Template
from typing import Any

from service.client.seeing.lines import Line, Part
from service.client.seeing.views import HypothesisView, SentenceView, View

_SCRIPTS = ("drawing.js", "sentence.js")
# More digits than anybody sees would make long pages longer.
_DIGITS = 4


def page_of(sentences: Iterable[SentenceView]) -> str:
    """The whole page, HTML."""
    style, script = _asset("page.css"), "".join(map(_asset, _SCRIPTS))
    return Template(_asset("page.html")).substitute(
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
        data=_json([_sentence(sentence) for sentence in sentences]),
    )


def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """As a content security policy names an inline script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _json(data: object) -> str:
    """JSON that can stand inside a <script>: no text in it ends or comments the element."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _sentence(sentence: SentenceView) -> dict[str, Any]:
    return {
        "text": sentence.text,
        "model": sentence.model,
        "languages": [sentence.source_language, sentence.target_language],
        "hypotheses": [_hypothesis(hypothesis) for hypothesis in sentence.hypotheses],
    }


def _hypothesis(hypothesis: HypothesisView) -> dict[str, Any]:
    return {
        "text": hypothesis.text,
        "score": round(hypothesis.score, _DIGITS),
        "logProb": round(hypothesis.log_prob, _DIGITS),
        "isCut": hypothesis.is_cut,
        "words": _view(hypothesis.words),
        "pieces": _view(hypothesis.pieces),
    }


def _view(view: View) -> dict[str, Any]:
    return {
        "source": _line(view.source),
        "target": _line(view.target),
        "weights": [[round(weight, _DIGITS) for weight in row] for row in view.weights],
        "logProbs": [round(log_prob, _DIGITS) for log_prob in view.log_probs],
        "pairs": view.pairs,
    }


def _line(line: Line) -> list[str | dict[str, Any]]:
    """Text between words is a string."""
    return [_part(part) if part.is_seen else part.text for part in line]


def _part(part: Part) -> dict[str, Any]:
    return {"text": part.text, "isGhost": part.is_ghost, "readAs": part.read_as}
