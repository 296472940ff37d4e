"""A bundle's graphs over onnxruntime: the only part of the service that imports it.

`Graphs` are the sessions of one bundle and precision; worker threads share them. `OnnxModel` is one
worker's rows on them. It knows no architecture, only the axes in the manifest, and neither search
nor queue. `prove` shows that the graphs are what the manifest says, and `device_fault` says why a
device can't be had here.
"""

import os

# onnxruntime would send usage data to its vendor, and keep an identifier of the machine on disk. It
# asks when it is imported; its own `disable_telemetry_events` comes after the first event.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

from service.session.devices import device_fault
from service.session.graphs import Graphs
from service.session.model import OnnxModel
from service.session.proof import prove
from service.session.shortlist import Shortlists

__all__ = ["Graphs", "OnnxModel", "Shortlists", "device_fault", "prove"]
