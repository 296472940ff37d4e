"""What changes the tokens that may follow: one small class per option, for all rows at once.

    Change   lowers the log-probabilities of rows, or forbids tokens
    Alternatives, Sampling, HardPrefix   say which of what is left goes on

`Filters` knows which sentences ask for something; nothing here runs for the others, nor a filter
that no sentence asks for, and what no filter has changed is the model's own output.
"""

from service.decoding.filters.chain import Filters
from service.decoding.filters.plan import NOTHING, Plan

__all__ = ["NOTHING", "Filters", "Plan"]
