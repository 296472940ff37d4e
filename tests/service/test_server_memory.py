"""What a server's memory is made of: few heaps, not too many bound steps, kernels or none."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from service.bundle import Bundle
from service.session import Graphs, OnnxModel
from service.session.calls import _MAX_CALLS
from service.session.kernels import library
from service.session.loading import accepted
from service.session.reserve import reserve
from tests.corpus import ROOT
from tests.running_server import running_server

HEAPS = """
import ctypes, sys, tempfile, threading
from service.server.memory import share_heaps

share_heaps(int(sys.argv[1]))
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.fopen.restype = ctypes.c_void_p
together = threading.Barrier(12)

def take() -> None:
    libc.malloc(1 << 16)
    together.wait()

threads = [threading.Thread(target=take) for _ in range(12)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
with tempfile.NamedTemporaryFile() as file:
    stream = ctypes.c_void_p(libc.fopen(file.name.encode(), b"w"))
    libc.malloc_info(0, stream)
    libc.fclose(stream)
    print(file.read().decode().count("<heap nr="))
"""


def num_heaps(num_cores: int, **environment: str) -> int:
    command = [sys.executable, "-c", HEAPS, str(num_cores)]
    inherited = {name: os.environ[name] for name in os.environ if name != "MALLOC_ARENA_MAX"}
    done = subprocess.run(
        command, cwd=ROOT, env=inherited | environment, capture_output=True, text=True, check=True
    )
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator")
def test_threads_share_a_heap_for_four_cores_unless_the_operator_says_otherwise() -> None:
    assert [num_heaps(2), num_heaps(16)] == [1, 4]
    assert num_heaps(2, MALLOC_ARENA_MAX="3") == 3


def test_a_worker_keeps_a_bounded_number_of_bound_steps(bundle: Bundle) -> None:
    model = OnnxModel(Graphs.load(bundle, "fp32"), _MAX_CALLS + 40)
    log_probs = []
    for num_rows in [1, *range(2, _MAX_CALLS + 40), 1]:
        model.append([[5, 6, 2]] * num_rows, 1)
        tokens = np.full((num_rows, 1), model.start_id)
        step = model.step(tokens, np.zeros(num_rows, np.int32), 3, attention=False)
        log_probs.append(step.log_probs[0].copy())
        model.reorder(np.zeros(0, np.int64))
    assert len(model._calls._kept) == _MAX_CALLS
    np.testing.assert_array_equal(log_probs[0], log_probs[-1])  # bound anew


def test_reserved_memory_begins_at_a_cache_line_and_is_zero() -> None:
    for count in (1, 1000, 1 << 20):
        array = reserve(count, np.float32)
        assert array.ctypes.data % 64 == 0 and not array.any()
        array[-1] = 1
    assert reserve((0, 3), np.int64).shape == (0, 3)


@pytest.mark.skipif(accepted(library()) is None, reason="no kernels for this machine")
@pytest.mark.parametrize(("setting", "has_kernels"), [("auto", True), ("off", False)])
def test_kernels_are_in_a_server_that_is_to_have_them(
    bundle: Bundle, setting: str, has_kernels: bool
) -> None:
    with running_server(bundle.directory.parent, "--kernels", setting) as server:
        maps = Path(f"/proc/{server.process.pid}/maps").read_text()
    assert (library().name in maps) == has_kernels  # type: ignore[union-attr]
