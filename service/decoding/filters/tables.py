"""What filters keep of each sentence."""

from typing import Any

from service.decoding.slots import PerSlot


class Tables:
    """Base of the filters: tables with a row for every slot, which asks for nothing at first."""

    def __init__(self, *tables: PerSlot[Any]) -> None:
        self._tables = tables

    def reserve(self, num_slots: int) -> None:
        for table in self._tables:
            table.reserve(num_slots - 1, table.rows.shape[1:])
