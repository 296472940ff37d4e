"""The rpc that scores given translations, on a real server."""

from pathlib import Path

import pytest

from service.client import Client
from service.client.local import LocalClient
from service.errors import InvalidArgument, TranslationError, UnknownModel
from service.pb import translation_pb2 as pb
from tests.corpus import ROOT, SENTENCES

SOURCE = "Two young women are walking."
TARGET = "Deux jeunes femmes marchent dans la rue."
MODELS = ("tiny-transformer", "tiny-bahdanau")
SHIPPED = ("transformer-en-fr", "bahdanau-en-fr")


def score(client: Client | LocalClient, *targets: str, **fields: object) -> list[pb.PairScore]:
    pairs = [pb.SentencePair(source=SOURCE, target=target) for target in targets]
    return list(client.score(pb.ScoreRequest(pairs=pairs, **fields)).scores)  # type: ignore[arg-type]


@pytest.mark.parametrize("model", MODELS)
def test_a_score_is_that_of_the_translation_that_begins_so(client: Client, model: str) -> None:
    [scored] = score(client, TARGET, model=model)
    num_tokens = len(scored.token_scores.tokens)
    request = pb.TranslateRequest(
        contents=[SOURCE],
        model=model,
        include_token_scores=True,
        options=pb.DecodingOptions(prefix=TARGET, max_length=num_tokens),
    )
    [translation] = client.translate(request).translations
    [hypothesis] = translation.sentences[0].hypotheses
    assert translation.translated_text == TARGET
    assert hypothesis.token_scores.tokens == scored.token_scores.tokens
    expected = list(hypothesis.token_scores.log_probs)
    assert list(scored.token_scores.log_probs)[:-1] == pytest.approx(expected, abs=1e-4)
    assert (scored.source_token_count, scored.target_token_count) == (
        translation.sentences[0].source_token_count,
        num_tokens + 1,
    )


@pytest.mark.parametrize("model", SHIPPED)
def test_what_a_model_said_has_the_score_that_it_came_with(model: str) -> None:
    sources = [text for text in SENTENCES if text.isascii() and not text.isupper()]
    options = pb.DecodingOptions(shortlist=False, beam_size=4, length_penalty=0.6)
    with LocalClient(ROOT / "models") as client:
        request = pb.TranslateRequest(
            contents=sources, model=model, options=options, include_token_scores=True
        )
        translations = client.translate(request).translations
        pairs = [
            pb.SentencePair(source=source, target=translation.translated_text)
            for source, translation in zip(sources, translations, strict=True)
        ]
        asked = pb.ScoreRequest(pairs=pairs, model=model, length_penalty=0.6)
        scores = client.score(asked).scores
    said = [translation.sentences[0].hypotheses[0] for translation in translations]
    alike = [
        (found, scored)
        for found, scored in zip(said, scores, strict=True)
        # Not where the model spelt a word in another way than its tokenizer does.
        if found.token_scores.tokens == scored.token_scores.tokens
    ]
    assert len(alike) >= 0.8 * len(sources)
    for found, scored in alike:
        # In int8 a sum that rounds to the neighbouring integer moves what a recurrence makes of it.
        assert scored.log_prob == pytest.approx(found.log_prob, rel=1e-2, abs=1e-2)
        assert scored.score == pytest.approx(found.score, rel=1e-2, abs=1e-2)


def test_scores_come_in_order_and_name_their_model(client: Client) -> None:
    pairs = [pb.SentencePair(source=SOURCE, target=target) for target in (TARGET, "", "dog")]
    response = client.score(pb.ScoreRequest(pairs=pairs, model="tiny-bahdanau"))
    assert (response.model, response.model_version) == ("tiny-bahdanau", "1")
    alone = [score(client, pair.target, model="tiny-bahdanau")[0] for pair in pairs]
    assert [each.log_prob for each in response.scores] == pytest.approx(
        [each.log_prob for each in alone], abs=1e-4
    )
    assert [len(each.token_scores.log_probs) for each in response.scores] == [
        each.target_token_count for each in alone
    ]


def test_attention_comes_when_it_is_asked_for(client: Client) -> None:
    [plain], [full] = (score(client, TARGET, include_attention=asked) for asked in (False, True))
    assert not plain.HasField("attention")
    attention = full.attention
    assert attention.num_sources == full.source_token_count
    assert attention.num_targets == full.target_token_count - 1
    assert len(attention.weights) == attention.num_sources * attention.num_targets
    words = [TARGET[token.begin : token.end] for token in attention.target_tokens]
    assert "".join(words) == TARGET.replace(" ", "")


def test_each_head_has_its_attention_where_it_is_asked_for(client: Client) -> None:
    asked = {"include_attention": True, "include_attention_heads": True}
    attention = score(client, TARGET, **asked)[0].attention
    assert attention.num_heads > 1
    size = attention.num_sources * attention.num_targets
    assert len(attention.weights) == attention.num_heads * size


def test_the_length_penalty_is_the_requests(client: Client) -> None:
    [off] = score(client, TARGET, length_penalty=0)
    assert off.score == off.log_prob
    [wu] = score(client, TARGET, length_penalty=1, length_form=pb.LENGTH_FORM_WU)
    assert wu.score == pytest.approx(wu.log_prob * 6 / (5 + wu.target_token_count), rel=1e-5)


def test_scoring_needs_no_server(client: Client, models: Path) -> None:
    with LocalClient(models) as local:
        assert score(local, TARGET, model=MODELS[0]) == score(client, TARGET, model=MODELS[0])


@pytest.mark.parametrize(
    ("request_", "error", "message"),
    [
        (pb.ScoreRequest(), InvalidArgument, "pairs is empty"),
        (
            pb.ScoreRequest(pairs=[pb.SentencePair(source="a", target="b")] * 257),
            InvalidArgument,
            "pairs has 257 texts, the limit is 256",
        ),
        (
            pb.ScoreRequest(pairs=[pb.SentencePair(source=SOURCE, target="dog " * 90)]),
            InvalidArgument,
            r"pairs\[0\]\.target has more than 80 tokens",
        ),
        (
            pb.ScoreRequest(pairs=[pb.SentencePair(target=TARGET)]),
            InvalidArgument,
            r"pairs\[0\]\.source is blank",
        ),
        (
            pb.ScoreRequest(pairs=[pb.SentencePair(source="a")], length_penalty=11),
            InvalidArgument,
            "length_penalty is 11",
        ),
        (
            pb.ScoreRequest(pairs=[pb.SentencePair(source="a")], length_form=9),  # type: ignore[arg-type]
            InvalidArgument,
            "length_form is 9",
        ),
        (
            pb.ScoreRequest(pairs=[pb.SentencePair(source="a")], model="other"),
            UnknownModel,
            "model 'other' is not served",
        ),
    ],
)
def test_what_cannot_be_scored_is_refused_with_the_reason(
    client: Client, request_: pb.ScoreRequest, error: type[TranslationError], message: str
) -> None:
    with pytest.raises(error, match=message):
        client.score(request_)
