"""Which model answers: by name, by languages (BCP 47), or the server's default.

`en-US` is served by `en`, and `zh` by `zh-Hans`: see `text.languages`. The closest match wins. What
would be a choice between language pairs is the client's, not the server's. An open source language
can be detected first; `und`, the tag of an undetermined one, asks for that even where a default
model would answer.
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
    def languages(self) -> tuple[str, str]:
        """Source and target, as BCP 47 tags."""


Model = TypeVar("Model", bound=Served)
_Pair = tuple[LanguageTag | None, LanguageTag | None]


class Router(Generic[Model]):
    """The served models, by name, and the one that answers when nothing is asked for.

    Raises ConfigError if two models have one name, a language is no tag, or `default` isn't
    served; "" is no default.
    """

    def __init__(self, models: Sequence[Model], default: str = "") -> None:
        self.models = sorted(models, key=lambda model: model.name)
        self.default = default
        self._by_name = {model.name: model for model in models}
        if default and default not in self._by_name:
            fault = f"default model {default!r} is not served; served: {self._served()}"
            raise ConfigError("models", [fault])
        if len(self._by_name) < len(models):
            names = ", ".join(model.name for model in self.models)
            raise ConfigError("models", [f"two bundles have the same name: {names}"])
        self._pairs = {model.name: _served_pair(model) for model in models}

    def choose(self, name: str = "", source: str = "", target: str = "") -> Model:
        """The model to answer a request; empty strings are open.

        Raises UnknownModel, listing what is served, and InvalidArgument for what is no language
        tag, a contradiction, or a choice that the server must not make for the client.
        """
        if not (name or source or target):
            return self._default()
        wanted = self._wanted(source, target)
        return self._named(name, wanted) if name else self._speaking(wanted)

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
        models = [model for model in self.models if self._closeness(model, wanted) is not None]
        models.sort(key=lambda model: model.name != self.default)
        languages = list(dict.fromkeys(self._pairs[model.name][0].language for model in models))
        return languages if len(languages) > 1 else []

    def _default(self) -> Model:
        if not self.default:
            raise InvalidArgument(
                f"model and languages are empty and there is no default model; set one: "
                f"{self._served()}"
            )
        return self._by_name[self.default]

    def _named(self, name: str, wanted: _Pair) -> Model:
        model = self._by_name.get(name)
        if model is None:
            raise UnknownModel(f"model {_quoted(name)} is not served; served: {self._served()}")
        if self._closeness(model, wanted) is None:
            raise InvalidArgument(
                f"model {name!r} translates {_arrow(self._pairs[name])}, not "
                f"{_arrow(wanted)}; leave the languages empty or choose another model"
            )
        return model

    def _speaking(self, wanted: _Pair) -> Model:
        closeness = {
            model.name: close
            for model in self.models
            if (close := self._closeness(model, wanted)) is not None
        }
        if not closeness:
            raise UnknownModel(f"no model translates {_arrow(wanted)}; served: {self._served()}")
        best = max(closeness.values())
        closest = [name for name, close in closeness.items() if close == best]
        if len(pairs := {_arrow(self._pairs[name]) for name in closest}) > 1:
            raise InvalidArgument(
                f"{_arrow(wanted)} leaves a choice of {', '.join(sorted(pairs))}; set both "
                "source_language_code and target_language_code, or model"
            )
        return self._by_name[self.default if self.default in closest else closest[0]]

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

    def _closeness(self, model: Model, wanted: _Pair) -> int | None:
        """How many of the wanted subtags a model serves; None if one language isn't served."""
        total = 0
        for tag, served in zip(wanted, self._pairs[model.name], strict=True):
            close = tag.closeness(served) if tag else 0
            if close is None:
                return None
            total += close
        return total

    def _served(self) -> str:
        pairs = ((model.name, " to ".join(model.languages)) for model in self.models)
        return ", ".join(f"{name} ({pair})" for name, pair in pairs)


def _served_pair(model: Served) -> tuple[LanguageTag, LanguageTag]:
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
