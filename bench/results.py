"""Results as a file: what was measured, with which settings, on which machine."""

import json
import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.table import Row
from service.engine import usable_cores

_LIBRARIES = ("attention-nmt", "onnxruntime", "ctranslate2", "torch", "grpcio", "numpy")


def write_results(path: Path, rows: Sequence[Row], settings: Mapping[str, Any]) -> None:
    """Writes everything that is needed to read the rows as one JSON document."""
    document = {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": machine(),
        "settings": dict(settings),
        "rows": [asdict(replace(row, values=_strict(row.values))) for row in rows],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def machine() -> dict[str, Any]:
    """The processor, how much of it is ours, how busy it was before, and the versions."""
    return {
        "processor": _processor(),
        "usable_cores": usable_cores(),
        "load_average": os.getloadavg(),
        "system": platform.platform(),
        "python": platform.python_version(),
        **{library: version(library) for library in _LIBRARIES},
    }


def _strict(values: Mapping[str, float | str]) -> dict[str, float | str]:
    """Without what was not measured: JSON has no NaN."""
    return {name: value for name, value in values.items() if value == value}


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if not information.exists():
        return platform.processor()
    fields = dict(
        (key.strip(), value.strip())
        for key, _, value in (line.partition(":") for line in information.read_text().splitlines())
    )
    numbers = (fields.get(key, "?") for key in ("cpu family", "model", "stepping"))
    vnni = "VNNI" if "_vnni" in fields.get("flags", "") else "no VNNI"
    return f"{fields.get('model name', platform.machine())} ({'/'.join(numbers)}, {vnni})"
