"""What callers say of a translation in words, as the ids that the search takes."""

from collections.abc import Sequence
from dataclasses import dataclass

from service.bundle import Limits
from service.decoding import MAX_SEQUENCE_LENGTH, MAX_SUPPRESSED_SEQUENCES
from service.errors import InvalidArgument
from service.text import Tokenizer

# A piece has a few characters: what is longer by far has too many tokens, and need not be read.
MAX_CHARACTERS_A_TOKEN = 16


@dataclass(frozen=True, slots=True, eq=False)
class Wording:
    """Texts of the target language as one model spells them. Thread-safe."""

    tokenizer: Tokenizer
    limits: Limits

    def prefix(self, text: str) -> tuple[int, ...]:
        """What `DecodingOptions.prefix` is for a translation that begins with a text.

        Empty is none. Raises InvalidArgument for one that is blank, or longer than any translation.
        """
        return self._ids("prefix", text, self.limits.max_target_tokens) if text else ()

    def sequences(self, texts: Sequence[str]) -> tuple[tuple[int, ...], ...]:
        """What `DecodingOptions.suppress_sequences` is for these texts.

        Raises InvalidArgument for too many, and names one that is blank or too long.
        """
        if len(texts) > MAX_SUPPRESSED_SEQUENCES:
            raise InvalidArgument(
                f"suppress_sequences has {len(texts)} entries, the limit is "
                f"{MAX_SUPPRESSED_SEQUENCES}; send fewer"
            )
        return tuple(
            self._ids(f"suppress_sequences[{index}]", text, MAX_SEQUENCE_LENGTH)
            for index, text in enumerate(texts)
        )

    @property
    def unknown_ids(self) -> tuple[int, ...]:
        """What `DecodingOptions.suppress_tokens` is where every character has to be known."""
        return tuple(sorted(id for id in self.tokenizer.unknown_ids if id >= 0))

    def _ids(self, name: str, text: str, limit: int) -> tuple[int, ...]:
        if len(text) <= limit * MAX_CHARACTERS_A_TOKEN:
            ids = self.tokenizer.encode(text)
            if not ids:
                raise InvalidArgument(f"{name} is blank; leave it out")
            if len(ids) <= limit:
                return tuple(ids)
        raise InvalidArgument(f"{name} has more than {limit} tokens, the limit; shorten it")
