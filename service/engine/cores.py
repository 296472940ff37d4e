"""How many processor cores this process may really use."""

import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def usable_cores(cgroup: Path = _CGROUP) -> int:
    """Cores by affinity and, in a container, by its quota of processor time; at least 1.

    A fraction of a core is left over: a worker too many is throttled in the middle of its steps.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    quota = _quota(cgroup)
    return max(1, min(cores or 1, int(quota)) if quota else cores or 1)


def _quota(cgroup: Path) -> float | None:
    """Seconds of processor time per second; None without a limit (cgroup version 2, then 1)."""
    try:
        if (limits := cgroup / "cpu.max").exists():
            quota, period = limits.read_text().split()
        else:
            quota, period = (
                (cgroup / "cpu" / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period")
            )
        return int(quota) / int(period) if int(quota) > 0 else None
    except (OSError, ValueError):  # ValueError: "max" instead of a number
        return None
