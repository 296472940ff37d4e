"""Which model answers: by name and version, by languages (BCP 47), or the server's default.

A name may have several versions: the newest answers whoever doesn't pin another one. `en-US` is
served by `en`, and `zh` by `zh-Hans`: see `text.languages`. The closest match wins. What would be a
choice between language pairs is the client's, not the server's. An open source language can be
detected first; `und`, the tag of an undetermined one, asks for that even where a default model
would answer.
"""

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from service.errors import ConfigError, InvalidArgument, UnknownModel
from service.text.languages import LanguageTag

_UNDETERMINED = "und"
_MAX_QUOTED = 64  # a served name is no longer


class Served(Protocol):
    """What routing needs to know of a model."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def languages(self) -> tuple[str, str]:
        """Source and target, as BCP 47 tags."""


Model = TypeVar("Model", bound=Served)
_ServedPair = tuple[LanguageTag, LanguageTag]
_Pair = tuple[LanguageTag | None, LanguageTag | None]


class Router(Generic[Model]):
    """The served models, and the one that answers when nothing is asked for; never changes.

    models: a name's versions from the oldest to the newest. Raises ConfigError if two models have
    one name and version, a language is no tag, or `default` isn't served; "" is no default.
    """

    def __init__(self, models: Sequence[Model], default: str = "") -> None:
        self.models = sorted(reversed(models), key=lambda model: model.name)
        """By name, the newest version of each first."""
        self.default = default
        self._versions: dict[str, dict[str, tuple[Model, _ServedPair]]] = {}
        for model in self.models:
            versions = self._versions.setdefault(model.name, {})
            if model.version in versions:
                fault = f"two bundles are version {model.version} of {model.name}; keep one of them"
                raise ConfigError("models", [fault])
            versions[model.version] = model, _served_pair(model)
        self._newest = {name: next(iter(of.values())) for name, of in self._versions.items()}
        if default and default not in self._newest:
            fault = f"default model {default!r} is not served; served: {self._served()}"
            raise ConfigError("models", [fault])

    @property
    def names(self) -> list[str]:
        """Of the models, each once."""
        return list(self._newest)

    def choose(
        self, name: str = "", source: str = "", target: str = "", version: str = ""
    ) -> Model:
        """The model to answer a request; empty strings are open, an open version is the newest.

        Raises UnknownModel, listing what is served, and InvalidArgument for what is no language
        tag, a contradiction, a version without a name, or a choice that the server must not make
        for the client.
        """
        if version and not name:
            raise InvalidArgument(
                f"model_version is {_quoted(version)}, but model is empty; set both or neither"
            )
        if not (name or source or target):
            return self._default()
        wanted = self._wanted(source, target)
        return self._named(name, version, wanted) if name else self._speaking(wanted)

    def undecided(self, name: str = "", source: str = "", target: str = "") -> list[str]:
        """The source languages to detect a text's among, before `choose`; empty if it can choose.

        They are primary subtags (`pt`), the default model's first. There are none unless the
        source language is open and matters. Raises InvalidArgument for what is no language tag.
        """
        if name or (self.default and not source and not target):
            return []
        wanted = self._wanted(source, target)
        if wanted[0]:
            return []
        served = [each for each in self._newest.values() if _closeness(each[1], wanted) is not None]
        served.sort(key=lambda each: each[0].name != self.default)
        languages = list(dict.fromkeys(source.language for _, (source, _) in served))
        return languages if len(languages) > 1 else []

    def _default(self) -> Model:
        if not self.default:
            raise InvalidArgument(
                f"model and languages are empty and there is no default model; set one: "
                f"{self._served()}"
            )
        return self._newest[self.default][0]

    def _named(self, name: str, version: str, wanted: _Pair) -> Model:
        versions = self._versions.get(name)
        if versions is None:
            raise UnknownModel(f"model {_quoted(name)} is not served; served: {self._served()}")
        if version and version not in versions:
            raise UnknownModel(
                f"version {_quoted(version)} of model {name!r} is not served; served: "
                f"{', '.join(versions)}"
            )
        model, pair = versions[version] if version else self._newest[name]
        if _closeness(pair, wanted) is None:
            raise InvalidArgument(
                f"model {name!r} translates {_arrow(pair)}, not {_arrow(wanted)}; leave the "
                "languages empty or choose another model"
            )
        return model

    def _speaking(self, wanted: _Pair) -> Model:
        served = [
            (close, model, pair)
            for model, pair in self._newest.values()
            if (close := _closeness(pair, wanted)) is not None
        ]
        if not served:
            raise UnknownModel(f"no model translates {_arrow(wanted)}; served: {self._served()}")
        best = max(close for close, _, _ in served)
        closest = {model.name: (model, pair) for close, model, pair in served if close == best}
        if len(pairs := {_arrow(pair) for _, pair in closest.values()}) > 1:
            raise InvalidArgument(
                f"{_arrow(wanted)} leaves a choice of {', '.join(sorted(pairs))}; set both "
                "source_language_code and target_language_code, or model"
            )
        first = next(iter(closest))
        return closest[self.default if self.default in closest else first][0]

    def _wanted(self, source: str, target: str) -> _Pair:
        return (
            self._parse("source_language_code", source),
            self._parse("target_language_code", target),
        )

    def _parse(self, field: str, text: str) -> LanguageTag | None:
        if not text:
            return None
        try:
            tag = LanguageTag.parse(text)
        except ValueError as error:
            raise InvalidArgument(f"{field}: {error}; served: {self._served()}") from error
        return None if tag.language == _UNDETERMINED else tag

    def _served(self) -> str:
        newest = (model for model, _ in self._newest.values())
        return ", ".join(f"{model.name} ({' to '.join(model.languages)})" for model in newest)


def _closeness(served: _ServedPair, wanted: _Pair) -> int | None:
    """How many of the wanted subtags are served; None if one language isn't."""
    total = 0
    for tag, language in zip(wanted, served, strict=True):
        close = tag.closeness(language) if tag else 0
        if close is None:
            return None
        total += close
    return total


def _served_pair(model: Served) -> _ServedPair:
    source, target = model.languages
    try:
        return LanguageTag.parse(source), LanguageTag.parse(target)
    except ValueError as error:
        raise ConfigError(f"model {model.name}", [str(error)]) from error


def _quoted(name: str) -> str:
    return repr(name[:_MAX_QUOTED]) + "…" * (len(name) > _MAX_QUOTED)


def _arrow(languages: _Pair) -> str:
    source, target = languages
    return f"{source or 'any'} to {target or 'any'}"
