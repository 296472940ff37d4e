"""How many processor cores this process may really use."""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_CGROUPS = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")


def usable_cores(cgroups: Path = _CGROUPS, membership: Path = _MEMBERSHIP) -> int:
    """Cores by affinity and, in a container, by its quota of processor time; at least 1.

    A fraction of a core is left over: a worker too many is throttled in the middle of its steps.

    cgroups: where the hierarchies are mounted. membership: the process's groups, as in cgroups(7).
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    quotas = [quota for group in _groups(cgroups, membership) if (quota := _quota(group))]
    return max(1, min([cores or 1, *map(int, quotas)]))


def _groups(cgroups: Path, membership: Path) -> Iterator[Path]:
    """The folders of the process's group and of all groups around it: each may have a quota."""
    yield from (cgroups, cgroups / "cpu", cgroups / "cpu,cpuacct")
    try:
        lines = membership.read_text().splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        # "0::/path" of version 2, or "4:cpu,cpuacct:/path" of version 1.
        _, controllers, path = line.split(":", 2)
        if not controllers or "cpu" in controllers.split(","):
            # Seen from a container without a namespace of its own the path may not be there.
            group = cgroups / controllers / path.lstrip("/")
            depth = len(PurePosixPath(path).parts) - 1
            yield from [group, *group.parents][: max(depth, 0)]


def _quota(group: Path) -> float | None:
    """Seconds of processor time per second; None without a limit (cgroup version 2, then 1)."""
    try:
        if (limits := group / "cpu.max").exists():
            quota, period = limits.read_text().split()
        else:
            quota, period = (
                (group / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period")
            )
        return int(quota) / int(period) if int(quota) > 0 else None
    except (OSError, ValueError):  # ValueError: "max" instead of a number
        return None
