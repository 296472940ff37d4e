"""Which model answers: by name, by languages (BCP 47), or the server's default.

A wanted tag and a served tag match if one is the other or begins with it at a hyphen, whatever
their case: `en-US` is served by `en`, and `zh` by `zh-Hans`. The closest match wins.
"""

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from service.errors import ConfigError, InvalidArgument, UnknownModel


class Served(Protocol):
    """What routing needs to know of a model."""

    @property
    def name(self) -> str: ...

    @property
    def languages(self) -> tuple[str, str]: ...


Model = TypeVar("Model", bound=Served)


class Router(Generic[Model]):
    """The served models, by name, and the one that answers when nothing is asked for.

    Raises ConfigError if two models have one name or `default` isn't served; "" is no default.
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

    def choose(self, name: str = "", source: str = "", target: str = "") -> Model:
        """The model to answer a request; empty strings are open.

        Raises UnknownModel, listing what is served, and InvalidArgument for a contradiction or a
        choice that the server must not make for the client.
        """
        if name:
            return self._named(name, source, target)
        if source or target:
            return self._speaking(source, target)
        if not self.default:
            raise InvalidArgument(
                f"model and languages are empty and there is no default model; set one: "
                f"{self._served()}"
            )
        return self._by_name[self.default]

    def _named(self, name: str, source: str, target: str) -> Model:
        model = self._by_name.get(name)
        if model is None:
            raise UnknownModel(f"model {name!r} is not served; served: {self._served()}")
        if _closeness(model, source, target) is None:
            raise InvalidArgument(
                f"model {name!r} translates {_pair(model.languages)}, not "
                f"{_pair((source, target))}; leave the languages empty or choose another model"
            )
        return model

    def _speaking(self, source: str, target: str) -> Model:
        closeness = {
            model.name: close
            for model in self.models
            if (close := _closeness(model, source, target)) is not None
        }
        if not closeness:
            wanted = _pair((source, target))
            raise UnknownModel(f"no model translates {wanted}; served: {self._served()}")
        best = max(closeness.values())
        closest = [self._by_name[name] for name, close in closeness.items() if close == best]
        if len({model.languages for model in closest}) > 1:
            choices = ", ".join(sorted({_pair(model.languages) for model in closest}))
            raise InvalidArgument(
                f"{_pair((source, target))} leaves a choice of {choices}; set both "
                "source_language_code and target_language_code, or model"
            )
        defaults = (model for model in closest if model.name == self.default)
        return next(defaults, closest[0])

    def _served(self) -> str:
        return ", ".join(f"{model.name} ({_pair(model.languages)})" for model in self.models)


def _closeness(model: Served, source: str, target: str) -> int | None:
    """How many of the wanted tags are served exactly; None if one isn't served at all."""
    wanted = [(w, s) for w, s in zip((source, target), model.languages, strict=True) if w]
    if not all(_matches(tag, served) for tag, served in wanted):
        return None
    return sum(tag.lower() == served.lower() for tag, served in wanted)


def _matches(wanted: str, served: str) -> bool:
    short, long = sorted((wanted.lower(), served.lower()), key=len)
    return long == short or long.startswith(short + "-")


def _pair(languages: tuple[str, str]) -> str:
    source, target = languages
    return f"{source or 'any'} to {target or 'any'}"
