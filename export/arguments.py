"""What the commands of export have in common on a command line."""

import argparse


def positive(text: str) -> int:
    """For argparse: a number that is at least 1."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{number} is not at least 1")
    return number
