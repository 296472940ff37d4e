"""Which of the loaded bundles serve side by side, in which order, and which one by default."""

from collections.abc import Mapping, Sequence

from service.catalog.folders import natural
from service.catalog.routing import Router
from service.catalog.served import ServedModel

_USUAL_DEFAULT = "transformer-en-fr"


def make_router(models: Sequence[ServedModel], default: str) -> Router[ServedModel]:
    """Routes to `default`, or without one to the usual default or the only model, if any.

    models: a name's versions from the oldest to the newest. What served before doesn't matter: all
    servers of the same bundles answer alike. Raises ConfigError.
    """
    names = {model.name for model in models}
    if not default:
        only = names.pop() if len(names) == 1 else ""
        default = _USUAL_DEFAULT if _USUAL_DEFAULT in names else only
    return Router(models, default)


def by_age(models: Mapping[str, ServedModel]) -> list[ServedModel]:
    """The models by the natural order of their folders: the newest version of a name is last."""
    return [models[folder] for folder in sorted(models, key=natural)]


def twins(served: Mapping[str, ServedModel], added: Mapping[str, ServedModel]) -> dict[str, str]:
    """The folders of `added` that can't serve, and which folder has the same version already.

    served: what is served now, by folder; `added` replaces it. A folder that can't serve goes on
    with what it serves now, which may be in the way of the next one.
    """
    found = dict[str, str]()
    while True:
        kept = {folder: model for folder, model in added.items() if folder not in found}
        pair = _twin(served, kept)
        if pair is None:
            return found
        found.setdefault(*pair)


def _twin(
    served: Mapping[str, ServedModel], added: Mapping[str, ServedModel]
) -> tuple[str, str] | None:
    """A newcomer and the folder that goes before it: one that serves, or the first in order."""
    after = {**served, **added}
    first = dict[tuple[str, str], str]()
    for folder in sorted(after, key=lambda folder: (folder in added, natural(folder))):
        model = after[folder]
        other = first.setdefault((model.name, model.version), folder)
        if other != folder:
            return folder, other
    return None
