"""What changes the tokens that may follow: one small class per option, for all rows at once.

    ban     which tokens may not follow which rows, by what was said
    change  rewrites the log-probabilities of rows

`Filters` knows which sentences ask for something; nothing here runs for the others.
"""

from service.decoding.filters.chain import NOTHING, Filters, Plan

__all__ = ["NOTHING", "Filters", "Plan"]
