"""What a model does before it counts as ready, so that the first callers don't pay for it."""

from service.bundle import Limits
from service.decoding import Batch, DecodingOptions, StepModel

_USUAL_LENGTH = 16  # source tokens of a sentence


def warm_up(model: StepModel, limits: Limits, max_rows: int) -> None:
    """Runs a full batch, the longest sentence, and a usual one alone: the largest first.

    A full batch of the longest is left out: hardly anybody sends one, and it would take memory for
    good that is else never touched.
    """
    longest = [model.eos_id] * limits.max_source_tokens
    usual = longest[:_USUAL_LENGTH]
    options = DecodingOptions(max_length=min(2, limits.max_target_tokens))
    for sources in ([usual] * max_rows, [longest], [usual]):
        batch = Batch[int](model, 1)
        batch.join(range(len(sources)), sources, [options] * len(sources))
        while len(batch):
            batch.step()
