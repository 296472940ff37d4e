"""Configuration: flag over variable over default, checked when built, all faults at once."""

import argparse
from dataclasses import fields
from typing import Any

import pytest

from service.config import ServerConfig, add_flags, given_flags
from service.errors import ConfigError


def faults_of(call: Any, *arguments: Any, **keywords: Any) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        call(*arguments, **keywords)
    return caught.value.faults


def parse(*arguments: str) -> dict[str, str]:
    parser = argparse.ArgumentParser()
    add_flags(parser)
    return given_flags(parser.parse_args(arguments))


def test_without_flags_and_variables_everything_has_its_default() -> None:
    assert ServerConfig.load(parse(), {"PATH": "/bin"}) == ServerConfig()


def test_a_flag_wins_over_a_variable_and_that_over_the_default() -> None:
    environment = {"NMT_MAX_ROWS": "8", "NMT_PORT": "1234"}
    config = ServerConfig.load(parse("--port", "4321"), environment)
    assert (config.port, config.max_rows) == (4321, 8)


@pytest.mark.parametrize("name", [field.name for field in fields(ServerConfig)])
def test_every_field_is_a_flag_and_a_variable_and_has_help(name: str) -> None:
    parser = argparse.ArgumentParser()
    add_flags(parser)
    [action] = [action for action in parser._actions if action.dest == name]
    assert action.option_strings == ["--" + name.replace("_", "-")]
    assert action.help and action.help.endswith(f"[NMT_{name.upper()}]")


@pytest.mark.parametrize("field", fields(ServerConfig), ids=lambda field: field.name)
def test_the_text_of_a_default_is_read_back_as_that_default(field: Any) -> None:
    text = "on" if field.default is True else str(field.default)
    config = ServerConfig.load({field.name: text}, {})
    assert getattr(config, field.name) == field.default


@pytest.mark.parametrize("text, value", [("on", True), ("FALSE", False), ("0", False), ("1", True)])
def test_a_switch_is_read_in_its_usual_spellings(text: str, value: bool) -> None:
    assert ServerConfig.load({}, {"NMT_REFLECTION": text}).reflection is value


def test_all_faults_are_reported_at_once_and_name_where_they_come_from() -> None:
    environment = {"NMT_MAX_ROWS": "many", "NMT_PROT": "1", "NMT_REFLECTION": "perhaps"}
    assert faults_of(ServerConfig.load, parse("--workers=-1", "--device=tpu"), environment) == (
        "NMT_PROT is not a setting; did you mean NMT_PORT?",
        "NMT_MAX_ROWS is 'many': expected a whole number",
        "NMT_REFLECTION is 'perhaps': expected on or off",
        "--device is 'tpu': expected auto, cpu, cuda",
        "--workers is -1: expected at least 0 and at most 256",
    )


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "0"])
def test_a_deadline_must_be_a_positive_number(value: str) -> None:
    [fault] = faults_of(ServerConfig.load, {"default_deadline_seconds": value}, {})
    assert fault.startswith("--default-deadline-seconds is")


def test_options_that_contradict_each_other_are_refused() -> None:
    assert len(faults_of(ServerConfig, device="cuda", precision="int8")) == 1
    assert len(faults_of(ServerConfig, device="cpu", precision="fp16")) == 1
    assert len(faults_of(ServerConfig, port=7000, metrics_port=7000)) == 1


def test_both_ports_may_be_left_to_the_system() -> None:
    assert ServerConfig(port=0, metrics_port=0).port == 0
