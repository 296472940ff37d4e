"""What stops every thread of the process at once, and how it is kept short."""

import gc


def shorten_pauses() -> None:
    """For a process that has loaded what it serves, and goes on for days.

    A full collection looks at every object that there is: with the libraries and the models it is a
    tenth of a second in which nobody is answered or refused. What is there now stays anyway.
    """
    gc.collect()
    gc.freeze()
