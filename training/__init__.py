"""PyTorch models, data and training loops: everything here ends in a checkpoint."""
