"""How many cores a process may use: what a container's quota leaves of them."""

from pathlib import Path

import pytest

from service.engine import usable_cores


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu.max": "250000 100000\n"}, 2),
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1),
        ({}, None),
    ],
)
def test_a_containers_quota_limits_the_cores(
    tmp_path: Path, files: dict[str, str], limit: int | None
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    unlimited = usable_cores(tmp_path / "nowhere")
    assert usable_cores(tmp_path) == min(unlimited, limit or unlimited)
