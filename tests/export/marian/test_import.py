"""An imported bundle says what `generate` says of the checkpoint, token for token."""

import numpy as np
import pytest
import torch

from export.rebuild import network_of
from service.decoding import DecodingOptions
from service.engine import load_engine
from service.session import Graphs, OnnxModel
from service.translator import Translator
from tests.export.marian.comparing import MAX_TOKENS, faults, generate, translate
from tests.export.marian.conftest import LANGUAGE_TOKEN, Imported
from tests.tiny_marian import ENGLISH
from training.vocabulary import BOS_ID, EOS_ID, PAD_ID

TEXTS = (
    *ENGLISH,
    "A dog.",
    "J. and ç: what only French has",
    "two  spaces  and a tab\there",
    "Zebras quiz 27% of us @ home",
    "☃ snow ☃☃ and Привет",
    "the “lazy” dog’s ladder…",
)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_it_says_what_generate_says(imported: Imported, beam_size: int) -> None:
    assert faults(imported, TEXTS, beam_size) == []
    different = {tuple(best.ids) for best in translate(imported, beam_size, TEXTS)}
    assert len(different) > 1, "sources that don't matter test little"


def test_it_reads_what_marian_reads(imported: Imported) -> None:
    source, _ = imported.tokenizers
    for text in TEXTS:
        theirs = imported.their_tokenizer(imported.written_for_them(text))["input_ids"]
        assert imported.their_source_ids([*source.encode(text), EOS_ID]) == theirs
        assert [token.id for token in source.encode_tokens(text)] == source.encode(text)


def test_every_row_becomes_the_text_that_marian_makes_of_it(imported: Imported) -> None:
    target = imported.checkpoint.vocabularies.target
    said = range(EOS_ID + 1, target.num_said)
    decoder = imported.their_tokenizer.decoder
    named = [id for id in said if target.rows[id] in decoder]
    theirs = imported.their_tokenizer.decode(
        imported.their_target_ids(named), skip_special_tokens=True
    )
    assert imported.tokenizers[1].decode(named) == theirs


def test_the_service_translates_with_it(imported: Imported) -> None:
    engine = load_engine(imported.bundle, precision="fp32")
    try:
        translator = Translator(imported.bundle, engine)
        options = DecodingOptions(max_length=MAX_TOKENS, max_length_ratio=0)
        (found,) = translator.translate([TEXTS[0]], options)
    finally:
        engine.close()
    ((_, expected, _),) = generate(imported, 1, TEXTS[:1])
    assert found.text == expected


def test_the_bundle_gives_its_network_back(imported: Imported) -> None:
    expected = imported.checkpoint.model.state_dict()
    found = network_of(imported.bundle)
    assert found.config == imported.checkpoint.model.config
    for name, tensor in found.state_dict().items():
        torch.testing.assert_close(tensor, expected[name])


def test_the_bundle_says_where_it_is_from(imported: Imported) -> None:
    manifest = imported.bundle.manifest
    assert manifest.name == imported.directory.name
    assert (manifest.search.beam_size, manifest.search.length_penalty) == (4, 1.0)
    assert manifest.provenance["licence"] == "CC-BY-4.0"
    facts = manifest.provenance["marian"]
    assert facts["config"]["model_type"] == "marian"
    is_pickled = imported.variant.pickled
    assert facts["weights"]["file"] == ("pytorch_model.bin" if is_pickled else "model.safetensors")
    source, _ = imported.tokenizers
    first = source.encode_tokens("A man")[0].piece
    assert (
        (first == LANGUAGE_TOKEN) == bool(manifest.source_prefix) == imported.variant.multilingual
    )


def test_pad_and_start_are_never_said(imported: Imported) -> None:
    model = OnnxModel(Graphs.load(imported.bundle, "fp32"), 4)
    model.append([[*imported.tokenizers[0].encode("A man"), EOS_ID]], 1)
    output = model.step(np.array([[BOS_ID]]), np.zeros(1, np.int32), 2, attention=False, full=True)
    assert output.full_log_probs is not None
    assert max(output.full_log_probs[0, [PAD_ID, BOS_ID]]) < -150
