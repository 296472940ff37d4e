"""Options of the search over the wire: each does what it says, and none is ever our fault."""

import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.client import Client
from service.errors import InvalidArgument
from service.pb import translation_pb2 as pb
from tests.running_server import RunningServer

TEXT = "Two young women are walking."
MODELS = ["tiny-transformer", "tiny-bahdanau"]


def translate(client: Client, text: str = TEXT, **options: Any) -> pb.Translation:
    request = pb.TranslateRequest(
        contents=[text],
        options=pb.DecodingOptions(**options),
        include_token_scores=True,
        include_alignment=True,
    )
    [translation] = client.translate(request).translations
    return translation


def the_best(translation: pb.Translation) -> pb.Hypothesis:
    return translation.sentences[0].hypotheses[0]


def test_a_translation_begins_with_its_prefix(client: Client) -> None:
    translation = translate(client, f"  {TEXT} A man.", prefix="Deux femmes", max_length=20)
    assert translation.translated_text.startswith("  Deux femmes")
    biased = translate(client, prefix="Deux femmes", prefix_bias_beta=0.999, max_length=20)
    assert biased.translated_text.startswith("Deux femmes")


def test_alternatives_begin_differently_after_the_prefix(client: Client) -> None:
    pair = pb.SentencePair(source=TEXT, target="Deux")
    [score] = client.score(pb.ScoreRequest(pairs=[pair])).scores
    begun = [token.text for token in score.token_scores.tokens]
    asked: dict[str, Any] = {
        "prefix": "Deux",
        "beam_size": 4,
        "num_hypotheses": 4,
        "max_length": 12,
    }
    translation = translate(client, return_alternatives=True, **asked)
    pieces = [[t.text for t in each.token_scores.tokens] for each in _hypotheses(translation)]
    assert all(each[: len(begun)] == begun for each in pieces)
    assert len({each[len(begun)] for each in pieces}) == 4


def _hypotheses(translation: pb.Translation) -> list[pb.Hypothesis]:
    return [each for sentence in translation.sentences for each in sentence.hypotheses]


def test_a_forbidden_text_does_not_come_however_likely_it_is(client: Client) -> None:
    likely: dict[str, Any] = {"prefix": "Deux jeunes", "prefix_bias_beta": 0.999, "max_length": 12}
    assert "Deux jeunes" in translate(client, **likely).translated_text
    forbidden = translate(client, suppress_sequences=["rue", "Deux jeunes"], **likely)
    assert "Deux jeunes" not in forbidden.translated_text


def test_no_bytes_come_where_unknown_characters_are_forbidden(client: Client) -> None:
    asked: dict[str, Any] = {"sampling_temperature": 1.0, "beam_size": 1, "max_length": 40}
    free = [translate(client, sampling_seed=seed, **asked) for seed in range(4)]
    known = [
        translate(client, sampling_seed=seed, forbid_unknown=True, **asked) for seed in range(4)
    ]
    assert any(_has_bytes(translation) for translation in free)
    assert not any(_has_bytes(translation) for translation in known)


def _has_bytes(translation: pb.Translation) -> bool:
    tokens = the_best(translation).token_scores.tokens
    return any(token.text.startswith("<0x") for token in tokens)


def test_the_same_seed_gives_the_same_and_another_one_something_else(client: Client) -> None:
    asked: dict[str, Any] = {"sampling_temperature": 1.0, "beam_size": 1, "max_length": 20}
    texts = [
        translate(client, sampling_seed=seed, **asked).translated_text for seed in (7, 7, 2**64 - 1)
    ]
    assert texts[0] == texts[1] != texts[2]


def test_token_scores_and_alignment_come_when_they_are_asked_for(client: Client) -> None:
    best = the_best(translate(client, max_length=12))
    scores = best.token_scores
    assert len(scores.log_probs) == best.target_token_count
    assert sum(scores.log_probs) == pytest.approx(best.log_prob, abs=1e-4)
    pairs = [f"{pair.source}-{pair.target}" for pair in best.alignment.pairs]
    assert best.alignment.pharaoh.split() == pairs != []
    words = [TEXT[word.begin : word.end] for word in best.alignment.source_words]
    assert words == ["Two", "young", "women", "are", "walking", "."]
    plain = the_best(client.translate(pb.TranslateRequest(contents=[TEXT])).translations[0])
    assert not (plain.HasField("token_scores") or plain.HasField("alignment"))


def test_options_that_leave_no_translation_are_named(client: Client) -> None:
    with pytest.raises(InvalidArgument, match="min_alternative_prob: no translation of a sentence"):
        translate(client, return_alternatives=True, min_alternative_prob=1.0)


# What is refused of each option, by itself or beside others.
REFUSED: dict[str, dict[str, Any]] = {
    "beam_size": {"beam_size": 65},
    "num_hypotheses": {"num_hypotheses": 2},
    "length_penalty": {"length_penalty": 11.0},
    "max_length": {"max_length": 0},
    "max_length_ratio": {"max_length_ratio": 101.0},
    "stopping": {"stopping": 99},
    "patience": {"stopping": pb.STOPPING_BEST, "patience": 2.0},
    "length_form": {"length_form": 99},
    "coverage_penalty": {"coverage_penalty": -0.1},
    "min_length": {"min_length": 9, "max_length": 8},
    "min_length_ratio": {"min_length_ratio": 4.0, "max_length_ratio": 3.0},
    "repetition_penalty": {"repetition_penalty": 0.9},
    "no_repeat_ngram_size": {"no_repeat_ngram_size": 33},
    "suppress_sequences": {"suppress_sequences": [" "]},
    "prefix": {"prefix": " "},
    "prefix_bias_beta": {"prefix_bias_beta": 0.5},
    "return_alternatives": {"return_alternatives": True, "beam_size": 2},
    "min_alternative_prob": {"min_alternative_prob": 0.5},
    "sampling_temperature": {"sampling_temperature": 0.5, "beam_size": 2},
    "sampling_top_k": {"sampling_top_k": 5},
    "sampling_top_p": {"sampling_temperature": 1.0, "sampling_top_p": 0.0},
    "sampling_seed": {"sampling_seed": 5},
    "forbid_unknown": {
        "forbid_unknown": True, "return_alternatives": True, "min_alternative_prob": 1.0
    },
}  # fmt: skip
FIELDS = {
    *pb.TranslateRequest.DESCRIPTOR.fields_by_name,
    *pb.DecodingOptions.DESCRIPTOR.fields_by_name,
    *pb.ScoreRequest.DESCRIPTOR.fields_by_name,
}


def test_a_refusal_of_every_option_is_tested() -> None:
    never = {"shortlist"}  # true and false are fine with everything
    assert REFUSED.keys() == set(pb.DecodingOptions.DESCRIPTOR.fields_by_name) - never


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("streamed", [False, True])
def test_a_refusal_names_fields_that_the_caller_sets(
    name: str, streamed: bool, client: Client
) -> None:
    options = pb.DecodingOptions(**REFUSED[name])
    with pytest.raises(InvalidArgument) as raised:
        if streamed:
            segment = pb.Segment(content=TEXT, options=options)
            [(_, fault)] = client.translate_stream([segment])
            assert isinstance(fault, Exception)
            raise fault
        client.translate(pb.TranslateRequest(contents=[TEXT], options=options))
    named = set(re.findall(r"[a-z]+(?:_[a-z]+)+|prefix|stopping|patience", str(raised.value)))
    assert name in named <= FIELDS


def test_a_refusal_of_heads_names_their_field(client: Client) -> None:
    named = "^include_attention_heads is set without attention"
    pair = pb.SentencePair(source=TEXT, target="Deux")
    with pytest.raises(InvalidArgument, match=named):
        client.score(pb.ScoreRequest(pairs=[pair], include_attention_heads=True))
    with pytest.raises(InvalidArgument, match=named):
        client.translate(pb.TranslateRequest(contents=[TEXT], include_attention_heads=True))
    settings = pb.TranslateStreamSettings(include_attention_heads=True)
    with pytest.raises(InvalidArgument, match=named):
        [*client.translate_stream([pb.Segment(content=TEXT)], settings)]


def some_of(drawn: Mapping[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """A few at a time: of many, one is always out of its range."""
    names = st.lists(st.sampled_from(sorted(drawn)), max_size=5, unique=True)
    return names.flatmap(lambda chosen: st.fixed_dictionaries({n: drawn[n] for n in chosen}))


UNIT = st.sampled_from([0.0, 0.01, 0.5, 0.99, 1.0, float("nan")])
WORDS = st.sampled_from(["Deux", "la rue", "dog", ".", " ", "naïve 中", "\0"])
DRAWN: dict[str, st.SearchStrategy[Any]] = {
    "beam_size": st.integers(0, 6),
    "num_hypotheses": st.integers(0, 6),
    "length_penalty": st.sampled_from([0.0, 1.0, 10.0, -1.0, float("inf")]),
    "max_length": st.integers(0, 24),
    "max_length_ratio": st.sampled_from([0.0, 0.5, 3.0, 101.0]),
    "stopping": st.integers(0, 3),
    "patience": st.sampled_from([0.0, 0.3, 1.0, 2.0]),
    "shortlist": st.booleans(),
    "length_form": st.integers(0, 3),
    "coverage_penalty": st.sampled_from([0.0, 0.2, 10.0, 11.0]),
    "min_length": st.integers(-1, 24),
    "min_length_ratio": st.sampled_from([0.0, 0.5, 4.0]),
    "repetition_penalty": st.sampled_from([0.5, 1.0, 1.3, 10.0]),
    "no_repeat_ngram_size": st.integers(-1, 4),
    "suppress_sequences": st.lists(WORDS, max_size=4),
    "prefix": st.lists(WORDS, max_size=3).map(" ".join),
    "prefix_bias_beta": UNIT,
    "return_alternatives": st.booleans(),
    "min_alternative_prob": UNIT,
    "sampling_temperature": st.sampled_from([0.0, 1e-9, 1.0, 10.0]),
    "sampling_top_k": st.integers(-1, 600),
    "sampling_top_p": UNIT,
    "sampling_seed": st.integers(0, 2**64 - 1),
    "forbid_unknown": st.booleans(),
}


def test_every_option_on_the_wire_is_drawn() -> None:
    assert DRAWN.keys() == set(pb.DecodingOptions.DESCRIPTOR.fields_by_name)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    drawn=some_of(DRAWN),
    model=st.sampled_from(MODELS),
    flags=st.tuples(st.booleans(), st.booleans(), st.booleans()),
)
def test_any_options_are_answered_or_refused_by_name_and_never_our_fault(
    server: RunningServer,
    client: Client,
    drawn: dict[str, Any],
    model: str,
    flags: tuple[bool, bool, bool],
) -> None:
    attention, token_scores, alignment = flags
    asked = {"max_length": 24, **drawn}
    request = pb.TranslateRequest(
        contents=[TEXT, "A man. THE DOG 中!", "42"],
        model=model,
        options=pb.DecodingOptions(**asked),
        include_attention=attention,
        include_token_scores=token_scores,
        include_alignment=alignment,
    )
    try:
        translations = client.translate(request).translations
    except InvalidArgument as refusal:
        assert any(name in str(refusal) for name in asked)
        return
    for hypothesis in (each for translation in translations for each in _hypotheses(translation)):
        assert 1 <= hypothesis.target_token_count <= asked["max_length"]
        assert hypothesis.HasField("attention") == attention
        assert hypothesis.HasField("token_scores") == token_scores
        assert hypothesis.HasField("alignment") == alignment
