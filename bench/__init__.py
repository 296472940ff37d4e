"""Measurements: what the service does under load, and side by side with its peers.

    python -m bench              one table: corpus, single sentences, server, growth, resources
    python -m bench soak         memory over half an hour of mixed load, as CSV
    python -m bench.load         an open-loop load generator for any server of the contract
    python -m bench.profile      where the time of a decode step goes

May import everything, like the tests; nothing imports it. docs/benchmarks.md has the method.
"""
