"""Between messages and domain objects, field by field; no decisions but absent = default.

`asked` reads what requests say, `answered` writes what they get.
"""

from service.rpc.convert.answered import (
    Answer,
    fault_bytes,
    model_to_message,
    options_to_message,
    response_bytes,
    scores_bytes,
    segment_bytes,
)
from service.rpc.convert.asked import (
    extras_from_message,
    options_from_message,
    pairs_from_message,
    ranking_from_message,
    text_options_from_message,
)
from service.rpc.convert.naming import in_callers_words

__all__ = [
    "Answer",
    "extras_from_message",
    "fault_bytes",
    "in_callers_words",
    "model_to_message",
    "options_from_message",
    "options_to_message",
    "pairs_from_message",
    "ranking_from_message",
    "response_bytes",
    "scores_bytes",
    "segment_bytes",
    "text_options_from_message",
]
