"""The exception tree: what a client sees of each failure."""

import pytest

from service import errors
from service.errors import BundleError, ConfigError, QueueFull, TranslationError

STATUSES = {
    "InvalidArgument": "INVALID_ARGUMENT",
    "UnknownModel": "NOT_FOUND",
    "Unauthenticated": "UNAUTHENTICATED",
    "QueueFull": "RESOURCE_EXHAUSTED",
    "DeadlineExceeded": "DEADLINE_EXCEEDED",
    "Cancelled": "CANCELLED",
    "Unavailable": "UNAVAILABLE",
    "WorkerFailed": "INTERNAL",
    "StartupError": "FAILED_PRECONDITION",
    "BundleError": "FAILED_PRECONDITION",
    "ConfigError": "FAILED_PRECONDITION",
}


def test_every_error_has_the_status_of_its_kind() -> None:
    classes = [each for each in vars(errors).values() if isinstance(each, type)]
    kinds = [each for each in classes if issubclass(each, TranslationError)]
    found = {kind.__name__: kind.status for kind in kinds if kind is not TranslationError}
    assert found == STATUSES


def test_the_tree_in_the_docstring_names_every_error() -> None:
    assert errors.__doc__ is not None
    for name in STATUSES:
        assert f"── {name} " in errors.__doc__


@pytest.mark.parametrize("kind", [BundleError, ConfigError])
def test_a_startup_error_tells_all_faults_at_once(kind: type[BundleError | ConfigError]) -> None:
    error = kind("models/en-fr", iter(["a is missing", "b is 0, must be at least 1"]))
    assert error.faults == ("a is missing", "b is 0, must be at least 1")
    assert str(error) == "models/en-fr: a is missing; b is 0, must be at least 1"


def test_a_full_queue_says_when_to_come_back() -> None:
    error = QueueFull("the queue holds 512 sentences, its limit", retry_after_seconds=0.5)
    assert str(error) == "the queue holds 512 sentences, its limit"
    assert error.retry_after_seconds == 0.5
