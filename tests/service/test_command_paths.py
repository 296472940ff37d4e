"""Arguments that name files: an empty one is a variable that wasn't set, not where we are."""

import pytest

from service.__main__ import main

EMPTY = "is empty: expected a path"


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["check"], "arguments are required: MODELS_DIR"),
        (["check", ""], f"MODELS_DIR: {EMPTY}"),
        (["serve", "--config="], f"--config: {EMPTY}"),
        (["translate", "--models=", "Hello!"], f"--models: {EMPTY}"),
        (["translate", "--token-file=", "Hello!"], f"--token-file: {EMPTY}"),
        (["translate", "--ca=", "Hello!"], f"--ca: {EMPTY}"),
        (["admin", "--certificate=", "list"], f"--certificate: {EMPTY}"),
        (["health", "--key="], f"--key: {EMPTY}"),
    ],
)
def test_a_path_that_is_missing_or_empty_is_asked_for_by_its_name(
    arguments: list[str], fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert fault in capsys.readouterr().err
