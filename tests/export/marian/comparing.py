"""What we and `generate` make of the same texts, by searches that mean the same."""

from collections.abc import Sequence

from service.decoding import DecodingOptions, Hypothesis, Stopping, decode
from service.session import Graphs, OnnxModel
from tests.export.marian.conftest import Imported
from tests.tiny_marian import generation
from training.vocabulary import EOS_ID

MAX_TOKENS = 30
_TOGETHER = 64


def faults(imported: Imported, texts: Sequence[str], beam_size: int) -> list[str]:
    """Where ids, text or score of our translation are not those of `generate`."""
    _, target = imported.tokenizers
    found = []
    ours, theirs = translate(imported, beam_size, texts), generate(imported, beam_size, texts)
    for text, hypothesis, (ids, translation, score) in zip(texts, ours, theirs, strict=True):
        ids_here = imported.their_target_ids(list(hypothesis.ids))
        text_here = target.decode(hypothesis.ids).strip()  # as Marian's does
        if (ids_here, text_here) != (ids, translation) or abs(hypothesis.score - score) >= 1e-3:
            found.append(f"{text!r}: {text_here!r} {hypothesis.score}, not {translation!r} {score}")
    return found


def translate(imported: Imported, beam_size: int, texts: Sequence[str]) -> list[Hypothesis]:
    """The search that is `generate`'s with `early_stopping`."""
    options = DecodingOptions(
        beam_size=beam_size,
        stopping=Stopping.FINISHED,
        max_length=MAX_TOKENS,
        max_length_ratio=0,
    )
    model = OnnxModel(Graphs.load(imported.bundle, "fp32"), _TOGETHER)
    source, _ = imported.tokenizers
    sources = [[*source.encode(text), EOS_ID] for text in texts]
    return [best for best, *_ in decode(model, sources, options, max_rows=_TOGETHER)]


def generate(
    imported: Imported, beam_size: int, texts: Sequence[str]
) -> list[tuple[list[int], str, float]]:
    """Of each text: the ids before EOS, their text, and the log-probability of a token."""
    model, tokenizer = imported.theirs, imported.their_tokenizer
    written = [imported.written_for_them(text) for text in texts]
    batch = tokenizer(written, return_tensors="pt", padding=True)
    pad = imported.checkpoint.settings.pad
    # As default for what is None too, which is no default of its own.
    model.generation_config = generation(
        pad,
        num_beams=beam_size,
        early_stopping=beam_size > 1,
        max_length=MAX_TOKENS + 1,  # with the start
        forced_eos_token_id=None,
        output_scores=True,
        return_dict_in_generate=True,
    )
    found = model.generate(**batch)
    results = []
    for index, sequence in enumerate(found.sequences[:, 1:].tolist()):
        said = [id for id in sequence if id != pad]
        if beam_size > 1:
            score = float(found.sequences_scores[index])
        else:
            steps = zip(said, found.scores, strict=False)
            score = sum(float(scores[index, id]) for id, scores in steps) / len(said)
        text = tokenizer.decode(sequence, skip_special_tokens=True)
        results.append((said[:-1] if said[-1] == 0 else said, text, score))
    return results
