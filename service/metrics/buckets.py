"""The bounds of every histogram, in seconds: at most 15 buckets each, the last one infinite."""

# From below a greedy sentence to as long as any deadline.
LATENCY_BUCKETS = (0.0005, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 15, 60)
# One step or one encoding: a tenth of a millisecond alone, seconds for a full batch of long texts.
STEP_BUCKETS = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 2, 10)
