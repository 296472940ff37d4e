"""The recurrent translator with additive attention (Bahdanau et al. 2015), with a tied embedding.

Owns the network. Its decoder is spelled as matrix products, so that it exports and quantises; what
does not depend on the recurrence is computed outside the loop over target positions.
`RaggedEncoder` is the one part that an exported graph replaces.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from training.attention import AdditiveAttention
from training.model import StepOutput, TensorSpec, TiedEmbedding, Translator, TranslatorConfig


@dataclass(frozen=True)
class BahdanauConfig(TranslatorConfig):
    """Sizes of a recurrent translator; the defaults train in an hour on two CPU cores."""

    architecture: ClassVar[str] = "bahdanau"
    embedding_size: int = 256
    encoder_size: int = 256
    """Per direction."""
    encoder_layers: int = 1
    bidirectional: bool = True
    decoder_size: int = 512
    decoder_layers: int = 1
    attention_size: int = 256
    attention: bool = True
    """False: every step sees the encoder's final state instead (Cho et al. 2014, 2.2), as the
    measure of what attention adds; such a network can't be exported."""
    dropout: float = 0.2
    """On embeddings, between layers and on the readout."""

    @property
    def memory_size(self) -> int:
        """Width of the encoder's outputs."""
        return self.encoder_size * (2 if self.bidirectional else 1)

    def build(self) -> "Bahdanau":
        return Bahdanau(self)


class RaggedEncoder(nn.Module):
    """A GRU over rows of different lengths in which padding is never read.

    The backward direction starts at each row's last real token, and the final state of the forward
    direction is the one at that token.
    """

    def __init__(self, config: BahdanauConfig) -> None:
        super().__init__()
        self.gru = nn.GRU(
            config.embedding_size,
            config.encoder_size,
            config.encoder_layers,
            batch_first=True,
            bidirectional=config.bidirectional,
            dropout=config.dropout if config.encoder_layers > 1 else 0.0,
        )

    def forward(self, embedded: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs (batch, source_len, memory_size), top layer's final state (batch, memory_size).

        `embedded` is (batch, source_len, embedding_size), `lengths` (batch,), each at least 1.
        Outputs are zero at padding.
        """
        packed = pack_padded_sequence(
            embedded, lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        outputs, finals = self.gru(packed)
        padded, _ = pad_packed_sequence(outputs, batch_first=True, total_length=embedded.size(1))
        num_directions = 2 if self.gru.bidirectional else 1
        return padded, torch.cat(tuple(finals[-num_directions:]), dim=-1)


class RecurrentStep(nn.Module):
    """One step of a gated recurrent unit whose input was projected beforehand (Cho et al. 2014).

    The reset gate is applied after the product, as in `nn.GRU` and ONNX's `linear_before_reset=1`.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.hidden_projection = nn.Linear(size, 3 * size)

    def forward(self, projected_input: Tensor, hidden: Tensor) -> Tensor:
        """New hidden (rows, size) from hidden (rows, size) and projected input (rows, 3 * size).

        The input's parts are for reset gate, update gate and candidate, in this order.
        """
        input_reset, input_update, input_new = projected_input.chunk(3, -1)
        reset, update, new = self.hidden_projection(hidden).chunk(3, -1)
        candidate = torch.tanh(input_new + torch.sigmoid(input_reset + reset) * new)
        return candidate + torch.sigmoid(input_update + update) * (hidden - candidate)


class Decoder(nn.Module):
    """Attention, recurrence and deep output of the target side.

    `hidden` is always one (rows, decoder_size) tensor per layer, rows = sentence * beam.
    """

    def __init__(self, config: BahdanauConfig) -> None:
        super().__init__()
        size, memory_size = config.decoder_size, config.memory_size
        self.num_layers = config.decoder_layers
        self.bridge = nn.Linear(memory_size, self.num_layers * size)
        self.attention = AdditiveAttention(size, memory_size, config.attention_size)
        self.embedded_projection = nn.Linear(config.embedding_size, 3 * size)
        self.context_projection = nn.Linear(memory_size, 3 * size, bias=False)
        self.upper_projections = nn.ModuleList(
            nn.Linear(size, 3 * size) for _ in range(self.num_layers - 1)
        )
        self.steps = nn.ModuleList(RecurrentStep(size) for _ in range(self.num_layers))
        self.readout = nn.Linear(size + memory_size + config.embedding_size, config.embedding_size)
        self.dropout = nn.Dropout(config.dropout)

    def initial_hidden(self, final_state: Tensor) -> tuple[Tensor, ...]:
        """tanh(W s) per layer from the encoder's final state (batch, memory_size)."""
        hidden = torch.tanh(self.bridge(final_state))
        # Autocast gives bfloat16 here; the recurrence accumulates in the precision of the weights.
        return hidden.to(self.bridge.weight.dtype).chunk(self.num_layers, -1)

    def advance(
        self,
        projected_embedded: Tensor,
        hidden: tuple[Tensor, ...],
        memory: tuple[Tensor, ...],
        source_lengths: Tensor,
    ) -> tuple[tuple[Tensor, ...], Tensor, Tensor]:
        """New hidden per layer, context (rows, memory_size) and weights (rows, source_len).

        `projected_embedded` (rows, 3 * decoder_size) is the embedded input after its projection;
        memory is the encoder's outputs and their projection as keys, one row per sentence.
        """
        encoder_outputs, projected_keys = memory
        # The beams of a sentence are so many queries on its one memory.
        queries = hidden[-1].view(encoder_outputs.size(0), -1, hidden[-1].size(-1))
        context, weights = self.attention.attend(
            queries, projected_keys, encoder_outputs, source_lengths
        )
        context = context.flatten(0, 1)
        layer_input = projected_embedded + self.context_projection(context)
        new_hidden = [self.steps[0](layer_input, hidden[0])]
        for project, step, old in zip(
            self.upper_projections, self.steps[1:], hidden[1:], strict=True
        ):
            new_hidden.append(step(project(self.dropout(new_hidden[-1])), old))
        return tuple(new_hidden), context, weights.flatten(0, 1)

    def deep_output(self, hidden: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """Features (..., embedding_size) of the top hidden state, context and embedded input.

        Bahdanau et al. 2015, A.2.2, with tanh in place of maxout.
        """
        readout: Tensor = self.readout(torch.cat((hidden, context, embedded), dim=-1))
        features: Tensor = self.dropout(torch.tanh(readout))
        return features


class Bahdanau(Translator):
    """GRU encoder, additive attention, GRU decoder with deep output (Bahdanau et al. 2015).

    Memory: the encoder's outputs and the same projected as keys. State: the hidden state of each
    decoder layer. `StepOutput.attention` has one head; without attention it is uniform.
    """

    config: BahdanauConfig

    def __init__(self, config: BahdanauConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = TiedEmbedding(config.vocabulary_size, config.embedding_size)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = RaggedEncoder(config)
        self.decoder = Decoder(config)
        self.apply(_initialise)

    @property
    def memory_specs(self) -> tuple[TensorSpec, ...]:
        return (
            TensorSpec("encoder_outputs", ("sentence", "source", self.config.memory_size)),
            TensorSpec("projected_keys", ("sentence", "source", self.config.attention_size)),
        )

    @property
    def state_specs(self) -> tuple[TensorSpec, ...]:
        return tuple(
            TensorSpec(f"hidden_{layer}", ("sentence * beam", self.config.decoder_size))
            for layer in range(self.config.decoder_layers)
        )

    def decoder_features(
        self, source_ids: Tensor, source_lengths: Tensor, target_ids: Tensor
    ) -> Tensor:
        memory, hidden = self.encode(source_ids, source_lengths)
        embedded = self.dropout(self.embedding(target_ids))
        hiddens: list[Tensor] = []
        contexts: list[Tensor] = []
        for projected in self.decoder.embedded_projection(embedded).unbind(1):
            hidden, context, _ = self.decoder.advance(projected, hidden, memory, source_lengths)
            hiddens.append(hidden[-1])
            contexts.append(context)
        return self.decoder.deep_output(
            torch.stack(hiddens, dim=1), torch.stack(contexts, dim=1), embedded
        )

    def encode(
        self, source_ids: Tensor, source_lengths: Tensor
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        embedded = self.dropout(self.embedding(source_ids))
        outputs, final_state = self.encoder(embedded, source_lengths)
        if not self.config.attention:
            # Whatever the weights of positions that are all the same, this is their mean.
            outputs = final_state.unsqueeze(1).expand_as(outputs)
        projected_keys = self.decoder.attention.key_projection(outputs)
        # Autocast makes bfloat16 keys; values that are not would be converted at every step.
        values = outputs.to(projected_keys.dtype)
        return (values, projected_keys), self.decoder.initial_hidden(final_state)

    def step(
        self,
        tokens: Tensor,
        positions: Tensor,
        source_lengths: Tensor,
        memory: tuple[Tensor, ...],
        state: tuple[Tensor, ...],
    ) -> StepOutput:
        embedded = self.embedding(tokens.flatten())
        projected = self.decoder.embedded_projection(embedded)
        hidden, context, weights = self.decoder.advance(projected, state, memory, source_lengths)
        features = self.decoder.deep_output(hidden[-1], context, embedded)
        return StepOutput(self.output_layer(features), weights.unsqueeze(1), hidden)


def _initialise(module: nn.Module) -> None:
    """Xavier for inputs, orthogonal for what multiplies a state at every step, zero biases."""
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, nn.GRU):
        for name, parameter in module.named_parameters():
            _initialise_gates(name, parameter)
    elif isinstance(module, RecurrentStep):
        _initialise_gates("weight_hh", module.hidden_projection.weight)


def _initialise_gates(name: str, parameter: Tensor) -> None:
    """One block of three, for reset, update and new, at a time."""
    for block in parameter.chunk(3):
        if name.startswith("weight_hh"):
            nn.init.orthogonal_(block)
        elif name.startswith("weight_ih"):
            nn.init.xavier_uniform_(block)
        else:
            nn.init.zeros_(block)
