"""Compiled kernels for int8 graphs on the CPU: operators of onnxruntime's domain "nmt", in C.

This folder owns their sources, and the library that setuptools makes of them where there is a C
compiler at installation. onnxruntime loads it into a session whose graph `service.session.fusion`
has rewritten to use these operators; it is no module of Python, and is never imported. All of this
is optional: without the library every graph runs on onnxruntime's own operators.
"""

from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

MAX_PLACES = 8192
"""Of a source or a target, in attention: MAX_KEYS of attention.h."""
_NAME = "_kernels"


@cache
def library() -> Path | None:
    """The library that was built for this Python; None where none was."""
    files = (Path(__file__).with_name(_NAME + suffix) for suffix in EXTENSION_SUFFIXES)
    return next((file for file in files if file.is_file()), None)
