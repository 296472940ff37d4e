"""Measurements: what the service does under load, and side by side with its peers."""
