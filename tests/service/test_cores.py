"""How many cores a process may use: what the quotas of its containers leave of them."""

import os
from pathlib import Path

import pytest

from service.engine import usable_cores

AFFINITY = len(os.sched_getaffinity(0))
NO_LIMIT = {"cpu.max": "max 100000\n"}
V1 = "4:cpu,cpuacct:/kubepods/pod1/container1\n3:memory:/elsewhere\n"
V2 = "0::/kubepods/pod1/container1\n"


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def quota_of_v1(folder: str, quota: int) -> dict[str, str]:
    return {f"{folder}/cpu.cfs_quota_us": f"{quota}\n", f"{folder}/cpu.cfs_period_us": "100000\n"}


@pytest.mark.parametrize(
    ("files", "membership", "limit"),
    [
        ({}, "", None),
        (NO_LIMIT, "0::/\n", None),
        ({"cpu.max": "250000 100000\n"}, "0::/\n", 2),
        ({"cpu.max": "50000 100000\n"}, "0::/\n", 1),
        (quota_of_v1("cpu", -1), "4:cpu:/\n", None),
        (quota_of_v1("cpu", 100000), "4:cpu:/\n", 1),
        (quota_of_v1("cpu,cpuacct", 100000), "", 1),
        ({"kubepods/pod1/container1/cpu.max": "100000 100000\n"}, V2, 1),
        ({"kubepods/pod1/cpu.max": "100000 100000\n", **NO_LIMIT}, V2, 1),
        ({"kubepods/pod2/cpu.max": "100000 100000\n", **NO_LIMIT}, V2, None),
        (quota_of_v1("cpu,cpuacct/kubepods/pod1/container1", 100000), V1, 1),
        (quota_of_v1("cpu,cpuacct/kubepods", 100000), V1, 1),
        (quota_of_v1("memory/elsewhere", 100000), V1, None),
    ],
)
def test_the_smallest_quota_around_a_process_limits_its_cores(
    tmp_path: Path, files: dict[str, str], membership: str, limit: int | None
) -> None:
    write(tmp_path, {**files, "membership": membership})
    assert usable_cores(tmp_path, tmp_path / "membership") == min(AFFINITY, limit or AFFINITY)


def test_where_there_are_no_cgroups_the_affinity_counts(tmp_path: Path) -> None:
    assert usable_cores(tmp_path / "nowhere", tmp_path / "nothing") == AFFINITY
