"""Load on a server from a process of its own.

    plan     what is asked and when, fixed before the first call
    drive    the calls, open loop (at their times, come what may) or closed loop (when one is done)
    report   what came of them
    ramp     one rate after the other, to the knee

Open loop is how the world calls: a slow answer doesn't delay the next question. Latency counts from
the time at which a call was due, not from when it was sent, so that a stall is seen by everyone who
would have met it ("coordinated omission" hides it).
"""

from bench.load.drive import closed_loop, open_loop
from bench.load.plan import Call, Traffic, poisson_arrivals
from bench.load.report import Outcome, Report

__all__ = [
    "Call",
    "Outcome",
    "Report",
    "Traffic",
    "closed_loop",
    "open_loop",
    "poisson_arrivals",
]
