"""A bundle's graphs over onnxruntime: the only part of the service that imports it.

`Graphs` are the sessions of one bundle and precision; worker threads share them. `OnnxModel` is one
worker's rows on them. It knows no architecture, only the axes in the manifest, and neither search
nor queue. `prove` shows that the graphs are what the manifest says.
"""

from service.session.graphs import Graphs
from service.session.model import OnnxModel
from service.session.proof import prove
from service.session.shortlist import Shortlists

__all__ = ["Graphs", "OnnxModel", "Shortlists", "prove"]
