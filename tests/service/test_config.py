"""Configuration: flag over variable over file over default, checked when built, with all faults."""

import argparse
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from service.config import ServerConfig, add_flags, given_flags, service_links
from service.config.sources import TOKEN_VARIABLE
from service.errors import ConfigError


def faults_of(call: Any, *arguments: Any, **keywords: Any) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        call(*arguments, **keywords)
    return caught.value.faults


def parse(*arguments: str) -> dict[str, str]:
    parser = argparse.ArgumentParser()
    add_flags(parser)
    return given_flags(parser.parse_args(arguments))


def write(folder: Path, text: str) -> Path:
    file = folder / "server.toml"
    file.write_text(text, "utf-8")
    return file


def toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, (int, float)) else f"'{value}'"


def test_without_flags_and_variables_everything_has_its_default() -> None:
    assert ServerConfig.load(parse(), {"PATH": "/bin"}) == ServerConfig()


def test_a_flag_wins_over_a_variable_and_that_over_the_default() -> None:
    environment = {"NMT_MAX_ROWS": "8", "NMT_PORT": "1234"}
    config = ServerConfig.load(parse("--port", "4321"), environment)
    assert (config.port, config.max_rows) == (4321, 8)


@pytest.mark.parametrize("field", fields(ServerConfig), ids=lambda field: field.name)
def test_every_field_is_a_flag_a_variable_a_key_and_a_line_of_help(
    field: Any, tmp_path: Path
) -> None:
    parser = argparse.ArgumentParser()
    add_flags(parser)
    [action] = [action for action in parser._actions if action.dest == field.name]
    assert action.option_strings == ["--" + field.name.replace("_", "-")]
    assert action.help and action.help.endswith(f"[NMT_{field.name.upper()}]")
    assert f"{action.option_strings[0]} {action.metavar}" in parser.format_help()
    text = "on" if field.default is True else str(field.default)
    by_flag = ServerConfig.load({field.name: text}, {})
    by_variable = ServerConfig.load({}, {f"NMT_{field.name.upper()}": text})
    by_key = ServerConfig.load({}, {}, write(tmp_path, f"{field.name} = {toml(field.default)}"))
    assert by_flag == by_variable == by_key == ServerConfig()


@pytest.mark.parametrize("text, value", [("on", True), ("FALSE", False), ("0", False), ("1", True)])
def test_a_switch_is_read_in_its_usual_spellings(text: str, value: bool) -> None:
    assert ServerConfig.load({}, {"NMT_REFLECTION": text}).reflection is value


def test_all_faults_are_reported_at_once_and_name_where_they_come_from() -> None:
    environment = {"NMT_MAX_ROWS": "many", "NMT_PROT": "1", "NMT_REFLECTION": "perhaps"}
    assert faults_of(ServerConfig.load, parse("--workers=-1", "--device=tpu"), environment) == (
        "NMT_PROT is not a setting; did you mean NMT_PORT?",
        "NMT_REFLECTION is 'perhaps': expected on or off",
        "NMT_MAX_ROWS is 'many': expected a whole number",
        "--device is 'tpu': expected auto, cpu, cuda",
        "--workers is -1: expected at least 0 and at most 256",
    )


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "0"])
def test_a_deadline_must_be_a_positive_number(value: str) -> None:
    [fault] = faults_of(ServerConfig.load, {"default_deadline_seconds": value}, {})
    assert fault.startswith("--default-deadline-seconds is")


def test_options_that_contradict_each_other_are_refused() -> None:
    for precision in ("int8", "fp32"):
        [fault] = faults_of(ServerConfig, device="cuda", precision=precision)
        assert fault == f"--precision {precision} is for the cpu, but --device is cuda"
    assert len(faults_of(ServerConfig, device="cpu", precision="fp16")) == 1
    assert len(faults_of(ServerConfig, port=7000, metrics_port=7000)) == 1


def test_a_file_gives_what_neither_a_flag_nor_a_variable_does(tmp_path: Path) -> None:
    file = write(tmp_path, "port = 1\nmax_rows = 2\nworkers = 3\nhost = 'h'\nwatch_seconds = 4")
    config = ServerConfig.load({"port": "5"}, {"NMT_PORT": "6", "NMT_MAX_ROWS": "7"}, file)
    given = (config.port, config.max_rows, config.workers, config.host, config.watch_seconds)
    assert given == (5, 7, 3, "h", 4.0)


def test_a_variable_may_name_the_file_and_a_flag_wins_over_it(tmp_path: Path) -> None:
    named, other = write(tmp_path, "workers = 3"), tmp_path / "other.toml"
    other.write_text("workers = 4")
    environment = {"NMT_CONFIG": str(named)}
    assert ServerConfig.load({}, environment).workers == 3
    assert ServerConfig.load({}, environment, other).workers == 4


def test_the_flag_that_names_the_file_is_no_setting() -> None:
    parser = argparse.ArgumentParser()
    add_flags(parser)
    arguments = parser.parse_args(["--config", "a.toml", "--port", "1"])
    assert arguments.config == Path("a.toml")
    assert given_flags(arguments) == {"port": "1"}


def test_all_faults_of_a_file_are_reported_with_those_of_other_origins(tmp_path: Path) -> None:
    text = """
        max_row = 1
        workers = "many"
        reflection = 1
        host = true
        drain_seconds = "1"
        port = 1.5
        [models]
        default = "x"
    """
    file = write(tmp_path, text)
    assert faults_of(ServerConfig.load, {"device": "tpu"}, {"NMT_PROT": "1"}, file) == (
        "NMT_PROT is not a setting; did you mean NMT_PORT?",
        f"{file}: max_row is not a setting; did you mean max_rows?",
        f"{file}: workers is 'many': expected a whole number",
        f"{file}: reflection is 1: expected true or false",
        f"{file}: host is True: expected a string",
        f"{file}: drain_seconds is '1': expected a number",
        f"{file}: port is 1.5: expected a whole number",
        f"{file}: models is {{'default': 'x'}}: expected a string",
        "--device is 'tpu': expected auto, cpu, cuda",
    )


def test_a_file_that_is_missing_or_no_toml_is_a_fault(tmp_path: Path) -> None:
    [missing] = faults_of(ServerConfig.load, {}, {}, tmp_path / "none.toml")
    assert missing == f"{tmp_path / 'none.toml'} can't be read: No such file or directory"
    [twice] = faults_of(ServerConfig.load, {}, {}, write(tmp_path, "port = 1\nport = 2"))
    assert "is no TOML" in twice


@pytest.mark.parametrize(
    "options",
    [
        {"tls_key": "key.pem"},
        {"tls_certificate": "chain.pem"},
        {"tls_client_ca": "ca.pem"},
        {"log_texts": True, "request_log": "off"},
        {"exemplars": True},
        {"otlp_endpoint": "localhost:4317"},
        {"otlp_endpoint": "http://localhost"},
        {"otlp_endpoint": "http://localhost:many"},
        {"max_deadline_seconds": 1.0},
        {"admin": True, "admin_port": 50051},
        {"admin": True, "admin_host": ""},
        {"health_port": 50051, "tls_certificate": "chain.pem", "tls_key": "key.pem"},
    ],
    ids=str,
)
def test_what_makes_no_sense_together_is_one_fault(options: dict[str, Any]) -> None:
    [fault] = faults_of(ServerConfig, **options)
    assert fault.startswith("--")


@pytest.mark.parametrize(
    "options",
    [
        {"admin_port": 50051},
        {"health_port": 50051},
        {"tls_certificate": "chain.pem", "tls_key": "key.pem", "tls_client_ca": "ca.pem"},
        {"otlp_endpoint": "https://[::1]:4317", "exemplars": True},
        {"max_deadline_seconds": 60.0},
        {"log_texts": True, "request_log": "all", "request_log_rate": 0.0},
    ],
    ids=str,
)
def test_what_does_make_sense_is_taken(options: dict[str, Any]) -> None:
    assert all(getattr(ServerConfig(**options), name) == value for name, value in options.items())


def test_both_ports_may_be_left_to_the_system() -> None:
    assert ServerConfig(port=0, metrics_port=0).port == 0


def test_what_kubernetes_says_about_services_is_no_setting() -> None:
    links = {
        "NMT_SERVICE_HOST": "10.0.0.1",
        "NMT_SERVICE_PORT": "50051",
        "NMT_SERVICE_PORT_GRPC": "50051",
        "NMT_PORT": "tcp://10.0.0.1:50051",
        "NMT_PORT_50051_TCP": "tcp://10.0.0.1:50051",
        "NMT_PORT_50051_TCP_ADDR": "10.0.0.1",
        "NMT_METRICS_PORT": "tcp://10.0.0.2:9464",
    }
    environment = {**links, "NMT_WORKERS": "3"}
    assert ServerConfig.load({}, environment) == ServerConfig(workers=3)
    assert service_links(environment) == sorted(links)


def test_the_clients_variable_is_no_fault_of_a_server() -> None:
    assert ServerConfig.load({}, {TOKEN_VARIABLE: "a token"}) == ServerConfig()
    [fault] = faults_of(ServerConfig.load, {}, {TOKEN_VARIABLE + "S": "a token"})
    assert fault.startswith("NMT_TOKENS is not a setting") and "a token" not in fault


def test_how_to_log_is_known_whatever_else_is_wrong(tmp_path: Path) -> None:
    file = write(tmp_path, "log_texts = true\nrows = 1\nlog_level = 'loud'\nport = 'x'")
    environment = {"NMT_PORT": "many", "NMT_LOG_FORMAT": "json", "NMT_REQUEST_LOG": "off"}
    expected = ServerConfig(log_format="json", log_texts=True)
    assert ServerConfig.of_log({"max_rows": "none"}, environment, file) == expected
    assert ServerConfig.of_log({}, {}, tmp_path / "none.toml") == ServerConfig()


@pytest.mark.parametrize("name", ["NMT_SERVICE", "NMT_PORT_GRPC", "NMT_SERVICES_HOST"])
def test_what_only_resembles_a_variable_of_kubernetes_is_a_fault(name: str) -> None:
    [fault] = faults_of(ServerConfig.load, {}, {name: "1"})
    assert fault.startswith(f"{name} is not a setting")


@pytest.mark.parametrize("value", ["inf", "1e30", "2147484"])
def test_an_age_that_grpc_cannot_count_is_refused(value: str) -> None:
    [fault] = faults_of(ServerConfig.load, {"max_connection_age_seconds": value}, {})
    assert fault.endswith("expected at least 0 and at most 2147483")


def test_an_empty_path_is_refused_and_not_the_working_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path, "models = ''")
    assert faults_of(ServerConfig.load, {"models": ""}, {"NMT_MODELS": ""}, file) == (
        f"{file}: models is empty: expected a path; . is the working directory",
        "NMT_MODELS is empty: expected a path; . is the working directory",
        "--models is empty: expected a path; . is the working directory",
    )
    with pytest.raises(SystemExit):
        parse("--config", "")
    assert "--config: is empty" in capsys.readouterr().err


def test_an_empty_host_is_refused() -> None:
    [fault] = faults_of(ServerConfig.load, {}, {"NMT_HOST": ""})
    assert fault.startswith("--host is empty")
