"""Writes the examples of docs/text.md anew: `python docs/make_examples.py [MODELS_DIR]`.

A row of an example has three cells: the text, a JSON string; further fields of the request, as
JSON without its braces; and what the served default model makes of it, a JSON string, which is
what this fills in.
"""

import json
import re
import sys
from pathlib import Path

from google.protobuf.json_format import ParseDict

from service.client.local import LocalClient
from service.pb import translation_pb2 as pb

PAGE = Path(__file__).parent / "text.md"
MODELS = Path(__file__).parent.parent / "models"
_ROW = re.compile(r"^\| `(?P<text>\".*?\")` \| (?:`(?P<fields>[^`]*)`)? ?\| .*\|$", re.MULTILINE)


def with_examples(page: str, client: LocalClient) -> str:
    """The page with the translations that the client gives."""

    def row(match: re.Match[str]) -> str:
        text, fields = match["text"], match["fields"] or ""
        request = json.loads(f'{{"contents": [{text}]{", " * bool(fields)}{fields}}}')
        response = client.translate(ParseDict(request, pb.TranslateRequest()))
        result = _shown(response.translations[0].translated_text)
        options = f"`{fields}`" if fields else ""
        return f"| `{text}` | {options} | `{result}` |"

    return _ROW.sub(row, page)


def _shown(text: str) -> str:
    """The text as JSON in which everything can be seen."""
    literal = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in literal)


if __name__ == "__main__":
    with LocalClient(Path(sys.argv[1]) if len(sys.argv) > 1 else MODELS) as local:
        PAGE.write_text(with_examples(PAGE.read_text(), local))
