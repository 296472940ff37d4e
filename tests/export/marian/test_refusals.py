"""What can't be imported is refused with one line that names the fault."""

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from export.__main__ import main
from export.marian import MarianError, read_checkpoint
from tests.export.marian.conftest import arguments
from tests.tiny_marian import VARIANTS, write_marian

PLAIN = VARIANTS[0]
MULTILINGUAL = next(variant for variant in VARIANTS if variant.multilingual)
WEIGHTS = "model.safetensors"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return write_marian(tmp_path / "checkpoint", PLAIN)


def faults(directory: Path) -> str:
    with pytest.raises(MarianError) as caught:
        read_checkpoint(directory)
    return str(caught.value)


def edit_json(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def edit_weights(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    tensors = load_file(path)
    change(tensors)
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path)


@pytest.mark.parametrize("name", ["config.json", "vocab.json", "source.spm", "target.spm", WEIGHTS])
def test_a_file_that_is_missing_is_named(directory: Path, name: str) -> None:
    (directory / name).unlink()
    assert name in faults(directory)


@pytest.mark.parametrize("name", ["config.json", "vocab.json", "source.spm", WEIGHTS])
def test_a_file_of_something_else_is_named(directory: Path, name: str) -> None:
    (directory / name).write_bytes(b"\xff\xd8\xff\xe0 a picture")
    assert name in faults(directory)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model_type", "bart"),
        ("activation_function", "mish"),
        ("normalize_before", True),
        ("add_final_layer_norm", True),
        ("static_position_embeddings", False),
        ("tie_word_embeddings", False),
        ("decoder_ffn_dim", 128),
        ("decoder_attention_heads", 4),
        ("encoder_layers", "six"),
        ("encoder_layers", 0),
        ("scale_embedding", 1),
        ("eos_token_id", [0, 1]),
        ("decoder_start_token_id", 100_000),
        ("d_model", 33),
    ],
)
def test_a_setting_that_is_not_supported_is_named_with_its_value(
    directory: Path, key: str, value: object
) -> None:
    edit_json(directory / "config.json", **{key: value})
    assert f"{key} is {json.dumps(value)}" in faults(directory)


def test_all_settings_at_fault_are_named_at_once(directory: Path) -> None:
    edit_json(directory / "config.json", normalize_before=True, activation_function="mish")
    edit_json(directory / "generation_config.json", bad_words_ids=[[1, 2]])
    found = faults(directory)
    assert all(key in found for key in ("normalize_before", "activation_function", "bad_words_ids"))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda t: t.pop("model.decoder.layers.0.fc1.weight"), "layers.0.fc1.weight is missing"),
        (lambda t: t.update(extra=torch.zeros(1)), "1 tensors are of no MarianMTModel"),
        (
            lambda t: t.update({"model.encoder.layers.1.fc2.bias": torch.zeros(7)}),
            "fc2.bias is [7], the settings say [32]",
        ),
        (lambda t: t["final_logits_bias"].fill_(float("nan")), "final_logits_bias has values"),
        (
            lambda t: t.update({"model.encoder.embed_positions.weight": torch.zeros(128, 32)}),
            "embed_positions.weight has other positions",
        ),
        (
            lambda t: t.update({"lm_head.weight": torch.zeros_like(t["model.shared.weight"])}),
            "differs from",
        ),
    ],
)
def test_a_tensor_that_does_not_fit_is_named(
    directory: Path, change: Callable[[dict[str, Any]], object], expected: str
) -> None:
    edit_weights(directory / WEIGHTS, change)
    assert expected in faults(directory)


@pytest.mark.parametrize(
    "odd",
    [
        lambda tensor: tensor.int(),
        lambda tensor: tensor.to_sparse(),
        lambda tensor: tensor.to("meta"),
        lambda tensor: tensor.to(torch.complex64),
    ],
    ids=["integers", "sparse", "without values", "complex"],
)
def test_a_tensor_that_is_not_made_of_floats_is_named(
    directory: Path, odd: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    tensors = load_file(directory / WEIGHTS)
    name = "model.decoder.layers.0.fc1.weight"
    torch.save(tensors | {name: odd(tensors[name])}, directory / "pytorch_model.bin")
    (directory / WEIGHTS).unlink()
    assert f"tensor {name} isn't made of plain floats" in faults(directory)


def test_doubles_beyond_float32_are_not_finite(directory: Path) -> None:
    name = "model.decoder.layers.0.fc1.weight"
    edit_weights(directory / WEIGHTS, lambda t: t.update({name: t[name].double() * 1e300}))
    assert f"tensor {name} has values that are not finite" in faults(directory)


def test_weights_without_names_are_refused(directory: Path) -> None:
    tensors = load_file(directory / WEIGHTS)
    torch.save(dict(enumerate(tensors.values())), directory / "pytorch_model.bin")
    (directory / WEIGHTS).unlink()
    assert "something else than tensors by name" in faults(directory)


def test_truncated_weights_are_told_from_sound_ones(directory: Path) -> None:
    whole = (directory / WEIGHTS).read_bytes()
    (directory / WEIGHTS).write_bytes(whole[: len(whole) // 2])
    assert f"{WEIGHTS} is damaged" in faults(directory)


class Code:
    """What runs when it is unpickled, if it is."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return Path.touch, (Path("unpickled"),)


def test_a_pickle_of_code_is_refused_and_not_run(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (directory / WEIGHTS).unlink()
    torch.save({"model.shared.weight": Code()}, directory / "pytorch_model.bin")
    assert "running it isn't safe" in faults(directory)
    (directory / "pytorch_model.bin").write_bytes(pickle.dumps(Code()))
    assert "pytorch_model.bin" in faults(directory)
    assert not Path("unpickled").exists()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"a dog": 100_000}, "'a dog' is 100000"),
        ({"a dog": "one"}, "'a dog' is 'one'"),
        ({"a dog": 5}, "two pieces have the same id"),
        ({"": 5}, "an empty piece"),
    ],
)
def test_a_vocabulary_that_does_not_fit_is_refused(
    directory: Path, change: dict[str, object], expected: str
) -> None:
    edit_json(directory / "vocab.json", **change)
    assert expected in faults(directory)


@pytest.mark.parametrize("piece", ["</s>", "<unk>"])
def test_a_vocabulary_needs_its_special_pieces(directory: Path, piece: str) -> None:
    path = directory / "vocab.json"
    ids = json.loads(path.read_text())
    del ids[piece]
    path.write_text(json.dumps(ids))
    assert f"no '{piece}'" in faults(directory)


def test_a_model_of_several_languages_wants_one_of_them(tmp_path: Path) -> None:
    checkpoint = read_checkpoint(write_marian(tmp_path / "many", MULTILINGUAL))
    with pytest.raises(MarianError, match="--target-token: >>deu<<, >>fra<<"):
        checkpoint.source_prefix(None)
    with pytest.raises(MarianError, match="'>>ita<<' isn't among its: >>deu<<, >>fra<<"):
        checkpoint.source_prefix(">>ita<<")


def test_the_command_says_so_in_one_line(
    directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit_json(directory / "config.json", normalize_before=True)
    assert main(arguments(tmp_path, directory, PLAIN)) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"python -m export: {directory}: config.json: normalize_before is true, only false is "
        "supported"
    ]
    assert not (tmp_path / "bundle").exists()


@pytest.mark.parametrize("layer", ["-1", "99"])
def test_a_layer_that_there_is_not_is_refused(
    layer: str, directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments(tmp_path, directory, PLAIN), "--attention-layer", layer]) == 2
    assert f"--attention-layer is {layer}; the network's are 0 to 0" in capsys.readouterr().err


def test_only_english_has_sentences_of_the_repository(
    directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(directory), str(tmp_path / "bundle"), "--target-language", "en"]
    assert main(["import", *given, "--source-language", "fr"]) == 2
    assert "no sentences of fr" in capsys.readouterr().err
