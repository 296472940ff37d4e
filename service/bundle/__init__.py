"""What a deployable model is: the contract between `export`, which writes bundles, and serving.

    transformer-en-fr/
    ├── bundle.json         the manifest: `Manifest`, in its strict JSON form
    ├── source.model        SentencePiece; of both languages unless there is a target.model
    ├── target.model        optional
    ├── shortlist.npz       optional: `Lexicon`, which target words each source piece may become
    └── int8/, fp32/, fp16/ one folder per precision that the manifest names
        ├── encoder.onnx
        └── step.onnx

The reader owns the format, the writer imports it. A bundle that could be read is whole: every file
has the size and the SHA-256 of the manifest. Refused, with all faults at once: unknown keys, wrong
types, values out of range, file names other than those above (so that none can leave the folder),
symbolic links, newer formats. Other files in the folder are never opened, and nothing is pickled.
"""

from service.bundle.files import Bundle, read_bundle, write_bundle
from service.bundle.lexicon import SHORTLIST_NAME, Lexicon
from service.bundle.manifest import (
    FORMAT_VERSION,
    PRECISIONS,
    Attention,
    FileRecord,
    Limits,
    Manifest,
    SearchDefaults,
    SpecialIds,
    TensorSpec,
)

__all__ = [
    "FORMAT_VERSION",
    "PRECISIONS",
    "SHORTLIST_NAME",
    "Attention",
    "Bundle",
    "FileRecord",
    "Lexicon",
    "Limits",
    "Manifest",
    "SearchDefaults",
    "SpecialIds",
    "TensorSpec",
    "read_bundle",
    "write_bundle",
]
