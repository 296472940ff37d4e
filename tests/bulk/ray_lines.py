"""Translates a file with two workers of a Ray of its own: `ray_lines.py INPUT MODELS OUTPUT`.

A program by itself: Ray's warnings and processes are not the tests'.
"""

import sys
from pathlib import Path

import ray
import ray.data

from service.client.bulk import BatchTranslator
from service.pb import translation_pb2 as pb


def main(source: str, models: str, output: str) -> None:
    """Writes the translations of the lines of a file to another one, and those that failed."""
    # One is for reading: workers keep theirs.
    ray.init(num_cpus=3, include_dashboard=False, object_store_memory=1 << 27, log_to_driver=False)
    ray.data.DataContext.get_current().execution_options.preserve_order = True
    request = pb.TranslateRequest(
        options=pb.DecodingOptions(beam_size=1),
        text_options=pb.TextOptions(long_sentences=pb.LONG_SENTENCES_REFUSE),
    )
    lines = ray.data.read_text(source, drop_empty_lines=False).repartition(6)
    rows = lines.map_batches(
        BatchTranslator,
        fn_constructor_kwargs={"models": models, "request": request},
        batch_size=20,
        num_cpus=1,
        compute=ray.data.ActorPoolStrategy(size=2),
    ).take_all()
    Path(output).write_text("".join(f"{row['translation'] or ''}\n" for row in rows))
    print(*(number for number, row in enumerate(rows, start=1) if row["error"]))
    ray.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
