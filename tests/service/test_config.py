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


def test_what_kubernetes_says_about_services_is_no_setting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    links = {
        "NMT_SERVICE_HOST": "10.0.0.1",
        "NMT_SERVICE_PORT": "50051",
        "NMT_SERVICE_PORT_GRPC": "50051",
        "NMT_PORT": "tcp://10.0.0.1:50051",
        "NMT_PORT_50051_TCP": "tcp://10.0.0.1:50051",
        "NMT_PORT_50051_TCP_ADDR": "10.0.0.1",
        "NMT_METRICS_PORT": "tcp://10.0.0.2:9464",
    }
    assert ServerConfig.load({}, {**links, "NMT_WORKERS": "3"}) == ServerConfig(workers=3)
    assert all(name in caplog.text for name in links)


@pytest.mark.parametrize("name", ["NMT_SERVICE", "NMT_PORT_GRPC", "NMT_SERVICES_HOST"])
def test_what_only_resembles_a_variable_of_kubernetes_is_a_fault(name: str) -> None:
    [fault] = faults_of(ServerConfig.load, {}, {name: "1"})
    assert fault.startswith(f"{name} is not a setting")


@pytest.mark.parametrize("value", ["inf", "1e30", "2147484"])
def test_an_age_that_grpc_cannot_count_is_refused(value: str) -> None:
    [fault] = faults_of(ServerConfig.load, {"max_connection_age_seconds": value}, {})
    assert fault.endswith("expected at least 0 and at most 2147483")


def test_an_empty_host_is_refused() -> None:
    [fault] = faults_of(ServerConfig.load, {}, {"NMT_HOST": ""})
    assert fault.startswith("--host is empty")
