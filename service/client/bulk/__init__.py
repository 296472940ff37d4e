"""Files of any size, translated line by line: `python -m service translate FILE… --output PATH`.

    codecs      a file's bytes, whatever compresses them
    lines       the lines of a file, or of a share of it, each with the place after it
      -> formats    the text in a line, and the line with its translation
      -> calls      texts through a client: retried, and the ones that can't be told from the others
      -> windows    some requests at a time, their answers in order
      -> output     whole lines, in members that a kill can't tear
    journal     how far that is safe, and of what run
    run         one file from its beginning, or where it was left, to its end

One line comes out for each that goes in, at the same place. Memory holds what `windows` lets in,
however long the file is. Any `TranslationClient` will do: a server's, or that of this process.
`BatchTranslator` is the same for the batches of Ray Data.
"""

from service.client.bulk.calls import Caller, Retries, TranslationClient
from service.client.bulk.ray_data import BatchTranslator

__all__ = ["BatchTranslator", "Caller", "Retries", "TranslationClient"]
