"""What stops every thread of the process at once, and how it is kept short."""

import gc

# Of young objects, and of collections of them before older ones are looked at. Python's own 700 is
# reached every other request, and a request leaves no cycles to speak of: 7 % of the event loop.
_YOUNG, _YOUNG_COLLECTIONS, _OLDER_COLLECTIONS = 20_000, 20, 50


def shorten_pauses() -> None:
    """For a process that has loaded what it serves, and goes on for days.

    A full collection looks at every object that there is: with the libraries and the models it is a
    tenth of a second in which nobody is answered or refused. What is there now stays anyway.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, _YOUNG_COLLECTIONS, _OLDER_COLLECTIONS)
