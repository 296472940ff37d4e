"""A model card from a manifest (Mitchell et al. 2019, "Model cards for model reporting")."""

from collections.abc import Iterator, Mapping
from typing import Any

from export.tables import markdown_table
from service.bundle import Manifest

_UNKNOWN = "not recorded"


def card(manifest: Manifest) -> str:
    """Markdown: what a model is, of which data, how good, and what it is not for."""
    sections = (
        f"# {manifest.name}",
        _introduction(manifest),
        _section("Data and licence", _data(manifest.provenance)),
        _section("Scores", _scores(manifest.provenance)),
        _section("Verification", _verification(manifest.provenance)),
        _section("Limits", _limits(manifest)),
        _section("Intended use", _use(manifest)),
    )
    return "\n\n".join(sections) + "\n"


def _introduction(manifest: Manifest) -> str:
    source, target = manifest.languages
    megabytes = sum(record.size for record in manifest.files.values()) / 1e6
    return (
        f"Version {manifest.version}: a {manifest.architecture} that translates `{source}` to "
        f"`{target}`, with {manifest.vocabulary_size:,} subword pieces, as "
        f"{', '.join(manifest.precisions)} ({megabytes:.1f} MB)."
    )


def _section(title: str, body: str) -> str:
    return f"## {title}\n\n{body}"


def _data(provenance: Mapping[str, Any]) -> str:
    rows = [
        ("licence", provenance.get("licence") or _UNKNOWN),
        ("attribution", provenance.get("attribution") or _UNKNOWN),
        ("training steps", str(provenance.get("steps", _UNKNOWN))),
        ("int8 calibrated on", f"{provenance.get('calibration_pairs', 0)} sentence pairs"),
        ("made with", _listed(provenance.get("made_with", {}))),
    ]
    return markdown_table(("", "what is known"), rows)


def _scores(provenance: Mapping[str, Any]) -> str:
    found = [
        (precision, beam.removeprefix("beam_"), f"{score['bleu']:.2f}", _cell(score["signature"]))
        for precision, by_beam in provenance.get("scores", {}).items()
        for beam, score in by_beam.items()
    ]
    if not found:
        return "Not scored."
    return markdown_table(("precision", "beam", "BLEU of the test set", "sacreBLEU"), found)


def _verification(provenance: Mapping[str, Any]) -> str:
    report = provenance.get("verification")
    if not report:
        return "Not verified."
    rows = [row for name, found in report.items() for row in _verified(name, found)]
    table = markdown_table(("precision", "held against torch", "found"), rows)
    return f"On {report['sentences']} validation sentences.\n\n{table}"


def _verified(precision: str, report: Any) -> Iterator[tuple[str, str, str]]:
    if not isinstance(report, Mapping) or precision == "tolerances":
        return
    if "max_value_error" in report:
        yield precision, "largest difference of a value", f"{report['max_value_error']:.2g}"
    for beam in (key for key in report if key.startswith("beam_")):
        found, name = report[beam], beam.replace("_", " ")
        if "bleu" in found:
            yield (
                precision,
                f"{name}, BLEU",
                f"{found['bleu']:.2f}, torch {found['torch_bleu']:.2f}",
            )
        else:
            yield precision, f"{name}, sentences that differ", str(len(found["differing"]))
    for key in (key for key in report if key.startswith("same_in_")):
        rows = int(key.removeprefix("same_in_").removesuffix("_rows"))
        company = "alone" if rows == 1 else f"with {rows} rows in flight"
        yield precision, f"the same {company}", f"{report[key]:.2%}"


def _limits(manifest: Manifest) -> str:
    limits = manifest.limits
    lines = [
        f"* Sources have at most {limits.max_source_tokens} tokens, translations "
        f"{limits.max_target_tokens}, both with the end of the sentence.",
        "* It translates sentence by sentence and knows nothing of the ones before.",
        "* It can leave out, repeat or invent; names and numbers are the likeliest to suffer.",
    ]
    if limits.preferred_source_tokens:
        longest = limits.preferred_source_tokens
        lines.append(
            f"* Training had few sentences of more than {longest} tokens: a server splits those."
        )
    return "\n".join(lines)


def _use(manifest: Manifest) -> str:
    source, target = manifest.languages
    return (
        f"Drafts and gist of text in `{source}` for readers of `{target}`, of the kind that it was "
        "trained on. Not for text whose mistakes harm somebody (medicine, law, safety) unless a "
        "person who reads both languages checks it."
    )


def _cell(code: str) -> str:
    """Code in a cell of a table, which a bar would end."""
    return "`" + code.replace("|", r"\|") + "`"


def _listed(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items()) or _UNKNOWN
