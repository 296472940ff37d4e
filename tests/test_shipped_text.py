"""Real text through the bundles that come with the repository."""

import random
from collections.abc import Iterator, Sequence

import pytest

from service.bundle import read_bundle
from service.engine import load_engine
from service.text.protect import FOUND_KINDS, Kind, Protection
from service.text.protect.stand_ins import NAMES as STAND_INS
from service.translator import TextOptions, Translator
from tests.corpus import ROOT, TATOEBA, needs_tatoeba
from training.evaluate import corpus_bleu, load_eval_set

NAMES = ("transformer-en-fr", "bahdanau-en-fr")
NUM_SENTENCES = 600
PLACEHOLDERS = ["{name}", "{{user}}", "${total}", "%s", "%(count)d", "%NAME%", "{0:.2f}"]
ADDRESSES = ["https://example.com/a?b=c", "www.example.org/x", "me.you@example.com", "@someone"]
NUMBERS = ["$3.50", "12:30", "25 km", "1,000", "2024-05-12"]
SIGNS = ["🙂", "👍🏽", "❤️", "出口", "→"]

pytestmark = needs_tatoeba


@pytest.fixture(scope="module", params=NAMES)
def translator(request: pytest.FixtureRequest) -> Iterator[Translator]:
    bundle = read_bundle(ROOT / "models" / request.param)
    engine = load_engine(bundle, precision="int8")
    yield Translator(bundle, engine)
    engine.close()


@pytest.fixture(scope="module")
def pairs() -> tuple[list[str], list[list[str]]]:
    sources, references = load_eval_set(TATOEBA / "test.tsv.gz")
    return sources[:NUM_SENTENCES], references[:NUM_SENTENCES]


def texts(
    translator: Translator, contents: Sequence[str], options: TextOptions | None = None
) -> list[str]:
    return [t.text for t in translator.translate(contents, text_options=options)]


def glued(sentences: Sequence[str]) -> list[str]:
    """Paragraphs of two to six sentences, cut at the same places every time."""
    draw, paragraphs, position = random.Random(0), list[str](), 0
    while position < len(sentences):
        size = draw.randint(2, 6)
        paragraphs.append(" ".join(sentences[position : position + size]))
        position += size
    return paragraphs


def test_sentences_in_paragraphs_score_as_they_do_alone(
    translator: Translator, pairs: tuple[list[str], list[list[str]]]
) -> None:
    sources, references = pairs
    first = [[text] for text in glued([listed[0] for listed in references])]
    alone = corpus_bleu(glued(texts(translator, sources)), first).bleu
    together = corpus_bleu(texts(translator, glued(sources)), first).bleu
    assert together == pytest.approx(alone, abs=0.5)


def test_capitals_score_nearly_as_ordinary_letters_do(
    translator: Translator, pairs: tuple[list[str], list[list[str]]]
) -> None:
    sources, references = pairs
    usual = corpus_bleu(texts(translator, sources), references).bleu
    capitals = texts(translator, [source.upper() for source in sources])
    upper = [[text.upper() for text in listed] for listed in references]
    assert corpus_bleu(capitals, upper).bleu > usual - 2


def with_inserted(sources: Sequence[str], parts: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Each source with one to three parts between its words, and those parts."""
    draw, result = random.Random(1), list[tuple[str, list[str]]]()
    for source in sources:
        words, chosen = source.split(), draw.sample(list(parts), draw.randint(1, 3))
        for part in chosen:
            words.insert(draw.randrange(len(words)), part)
        result.append((" ".join(words), chosen))
    return result


def test_placeholders_addresses_and_numbers_all_come_back_once(
    translator: Translator, pairs: tuple[list[str], list[list[str]]]
) -> None:
    cases = with_inserted(pairs[0], PLACEHOLDERS + ADDRESSES + NUMBERS)
    options = TextOptions(protection=Protection(FOUND_KINDS))
    results = texts(translator, [text for text, _ in cases], options)
    for (text, parts), result in zip(cases, results, strict=True):
        assert all(result.count(part) == 1 for part in parts), (text, result)


def test_addresses_and_signs_that_the_model_cannot_spell_come_back_unasked(
    translator: Translator, pairs: tuple[list[str], list[list[str]]]
) -> None:
    cases = with_inserted(pairs[0][:200], SIGNS + ADDRESSES)
    results = texts(translator, [text for text, _ in cases])
    for (text, parts), result in zip(cases, results, strict=True):
        assert all(result.count(part) == 1 for part in parts), (text, result)


@pytest.mark.parametrize(
    ("source", "spans", "parts"),
    [
        ("Go to {name}日本 today.", [], ["{name}", "日本"]),
        ("I saw 👩\u200d10:30 today.", [], ["👩\u200d10:30"]),
        ("I see 👩\u200d👩\u200d👧 there.", [(8, 9)], ["👩\u200d👩\u200d👧"]),
        ("The busשלום was empty.", [], ["busשלום", "empty"]),
        ("twenty minutes ẞ \u200b dog house", [], ["ẞ", "dog house"]),
        ("HE KEEPS \ufe0fHIS MONEY IN THE BANK.", [], ["\ufe0fHIS"]),
        ("I am happy &#x1F600; today, {name}日本.", [], ["&#x1F600;", "{name}", "日本"]),
    ],
)
def test_what_is_unknown_beside_what_is_protected_is_neither_lost_nor_doubled(
    translator: Translator, source: str, spans: list[tuple[int, int]], parts: list[str]
) -> None:
    terms = {"empty": "vide", "dog house": "niche"}
    options = TextOptions(
        protection=Protection(FOUND_KINDS, html="&#" in source, glossary=terms),
        protected_spans={0: spans} if spans else {},
    )
    [translation] = translator.translate([source], text_options=options)
    for part in translation.kept:
        before, after = source[slice(*part.source)], translation.text[slice(*part.target)]
        assert after == (terms[before] if part.kind is Kind.TERM else before)
        assert translation.text.count(after) == 1
    kept = sorted(part.source for part in translation.kept)
    assert [source[start:end] for start, end in kept] == parts
    assert not any(name.lower() in translation.text.lower() for name in STAND_INS)


def test_a_long_sentence_is_translated_to_its_end(translator: Translator) -> None:
    source = (
        "My brother, who lives in Berlin, wanted to visit us last summer, but the train was late, "
        "the weather was bad, and he had lost his money, so he stayed at home, read a book, wrote "
        "a letter to his mother, and went to bed early."
    )
    (translation,) = translator.translate([source])
    assert len(translation.sentences) > 1
    ends = [0, *(sentence.source[1] for sentence in translation.sentences)]
    starts = [*(sentence.source[0] for sentence in translation.sentences), len(source)]
    assert all(
        source[end:start].isspace() or end == start for end, start in zip(ends, starts, strict=True)
    )
    if translator.name.startswith("transformer"):
        for word in ("train", "argent", "lettre", "mère"):
            assert word in translation.text
