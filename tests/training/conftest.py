"""A tiny run: its configuration, and the pairs that it trains on."""

import gzip
from pathlib import Path

import pytest

from training.config import TrainingConfig, load_config

TOML = """
name = "tiny"
[data]
data_dir = "{folder}"
train = "pairs.tsv.gz"
valid = "pairs.tsv.gz"
test = "pairs.tsv.gz"
column_languages = ["en", "fr"]
source_language = "en"
target_language = "fr"
licence = "CC0-1.0"
attribution = "written for the test"
max_tokens = 40
max_length_ratio = 3.0
batch_tokens = 300
[vocabulary]
size = 430
character_coverage = 1.0
[augment]
join = 0.1
max_joined = 2
upper_case = 0.05
lower_case_source = 0.05
source_splits = 0.1
target_splits = 0.0
[model]
architecture = "transformer"
model_size = 16
num_heads = 2
feed_forward_size = 32
encoder_layers = 1
decoder_layers = 1
dropout = 0.1
[optimizer]
name = "muon"
peak_rate = 1e-2
muon_peak_rate = 1e-2
betas = [0.9, 0.98]
weight_decay = 0.0
warmup_steps = 5
clip_norm = 1.0
[run]
total_steps = 24
seed = 1
threads = 1
label_smoothing = 0.1
ema_decay = 0.9
autocast = true
validate_every_steps = 8
validation_sentences = 5
checkpoint_every_seconds = 0.0
log_every_steps = 10
"""


@pytest.fixture
def config_path(tmp_path: Path) -> Path:
    pairs = [
        f"The {noun} is {state}.\tLe {noun} est {state} !"
        for noun in ("cat", "dog", "house", "car", "tree", "sea")
        for state in ("big", "red", "old", "new", "here", "nice")
    ]
    (tmp_path / "pairs.tsv.gz").write_bytes(gzip.compress("\n".join(pairs).encode()))
    path = tmp_path / "tiny.toml"
    path.write_text(TOML.format(folder=tmp_path.as_posix()))
    return path


@pytest.fixture
def config(config_path: Path) -> TrainingConfig:
    return load_config(config_path)
