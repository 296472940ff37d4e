"""onnxruntime sends nothing to its vendor, and leaves no trace of the machine on disk."""

import os
import subprocess
import sys
from pathlib import Path

VARIABLE = "ORT_DISABLE_TELEMETRY"
CODE = f"import os, service.session; print(os.environ['{VARIABLE}'])"


def run(home: Path, **environment: str) -> str:
    """What a process prints that loads the sessions, with an empty home.

    Of the variables few: in CI, onnxruntime is silent by itself.
    """
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return subprocess.run(
        [sys.executable, "-c", CODE],
        env={**kept, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout.strip()


def test_loading_the_sessions_keeps_no_identifier_of_the_machine(tmp_path: Path) -> None:
    assert run(tmp_path) == "1"
    assert list(tmp_path.rglob("*")) == []


def test_what_somebody_has_set_stands(tmp_path: Path) -> None:
    # The second keeps onnxruntime from sending anything because of this test.
    assert run(tmp_path, **{VARIABLE: "0", "ORT_RUNNING_UNIT_TESTS": "1"}) == "0"
