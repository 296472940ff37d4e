"""One sentence, written for this page, and what the served Transformer makes of it."""

from dataclasses import dataclass

import torch
from torch import Tensor

from docs.chapter.figure import Served
from training.evaluate import translate
from training.vocabulary import BOS_ID, EOS_ID

SENTENCE = "My sister never drinks cold coffee."


@dataclass(frozen=True, eq=False)
class Example:
    """A source and a target as ids (1, length), and the pieces that they are."""

    source_ids: Tensor
    target_ids: Tensor
    """What the decoder is given: the start token, and the translation without its end."""
    source_pieces: tuple[str, ...]
    target_pieces: tuple[str, ...]

    @property
    def source_lengths(self) -> Tensor:
        return torch.tensor([self.source_ids.size(1)])


def example(served: Served) -> Example:
    """The sentence, and its translation by the network itself."""
    translation = translate(served.network, served.tokenizer, [SENTENCE])[0]
    source, target = (served.tokenizer.encode_tokens(text) for text in (SENTENCE, translation))
    return Example(
        source_ids=torch.tensor([[*(token.id for token in source), EOS_ID]]),
        target_ids=torch.tensor([[BOS_ID, *(token.id for token in target)]]),
        source_pieces=(*(token.piece for token in source), "</s>"),
        target_pieces=("<s>", *(token.piece for token in target)),
    )
