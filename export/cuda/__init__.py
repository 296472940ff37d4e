"""Whether a graph would run on CUDA as it should, told without a GPU.

onnxruntime runs on the CPU what CUDA has no kernel for, of the exact version of the operator and of
the types at hand, and copies tensors there and back: silently, and slower than no GPU at all. Here
a graph is held against the kernels that there are (`kernels`), and its nodes are placed by the
rules that onnxruntime places them by (`placement`), so that a test can say what stands in the way.
"""

from export.cuda.kernels import Kernel, has_kernel, known_kernels, known_version
from export.cuda.placement import Placement, faults, place

__all__ = [
    "Kernel",
    "Placement",
    "faults",
    "has_kernel",
    "known_kernels",
    "known_version",
    "place",
]
