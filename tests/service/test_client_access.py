"""TLS, certificates and tokens of the client's commands, on real servers."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from service.client import Access, Client
from service.errors import ConfigError, Unauthenticated, Unavailable
from tests.pems import Pems
from tests.running_server import RunningServer, run_service, running_server

TOKEN, WRONG = "the-web-shops-token-1", "not-one-of-them-4711"
TEXT = "Two young women are walking."
DEFAULT = "--default-model=tiny-transformer"


@pytest.fixture(scope="module")
def pems(tmp_path_factory: pytest.TempPathFactory) -> Pems:
    return Pems(tmp_path_factory.mktemp("pems"))


@pytest.fixture(scope="module")
def ca(pems: Pems) -> Path:
    """The authority of the server's certificate."""
    return written(pems.key.with_name("ca.crt"), pems.authority.cert_pem.bytes())


@pytest.fixture(scope="module")
def own(pems: Pems) -> tuple[str, str]:
    """The flags of a client's own certificate."""
    return certificate_flags(pems.client(), pems.key.with_name("own"))


@pytest.fixture(scope="module")
def token_file(pems: Pems) -> Path:
    return written(pems.key.with_name("token"), f"# the web shop's\n{TOKEN}\n".encode())


@pytest.fixture(scope="module")
def closed(models: Path, pems: Pems, token_file: Path) -> Iterator[RunningServer]:
    """A server that speaks TLS and wants a token, for admin rpcs too."""
    flags = (f"--tokens-file={token_file}", "--health-port=0", "--admin=on", "--admin-port=0")
    with running_server(models, *pems.flags, *flags, DEFAULT) as server:
        yield server


@pytest.fixture(scope="module")
def mutual(models: Path, pems: Pems) -> Iterator[RunningServer]:
    """A server that asks its clients for a certificate."""
    flags = (f"--tls-client-ca={pems.client_ca}", "--health-port=0", DEFAULT)
    with running_server(models, *pems.flags, *flags) as server:
        yield server


@pytest.fixture(scope="module")
def token_only(models: Path, token_file: Path) -> Iterator[RunningServer]:
    """A server that wants a token in plaintext."""
    with running_server(models, f"--tokens-file={token_file}", DEFAULT) as server:
        yield server


def written(file: Path, content: bytes) -> Path:
    file.write_bytes(content)
    return file


def certificate_flags(certificate: trustme.LeafCert, stem: Path) -> tuple[str, str]:
    chain = written(stem.with_suffix(".crt"), certificate.cert_chain_pems[0].bytes())
    key = written(stem.with_suffix(".key"), certificate.private_key_pem.bytes())
    return f"--certificate={chain}", f"--key={key}"


def address_in_the_network() -> str:
    """This machine's own, as others see it."""
    with socket.socket(type=socket.SOCK_DGRAM) as chooser:
        try:
            chooser.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            pytest.skip("there is no network")
        return str(chooser.getsockname()[0])


def refusal(*arguments: str, **environment: str) -> str:
    """What a command that fails says on stderr, in one line and nothing on stdout."""
    result = run_service(*arguments, **environment)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.count("\n") == 1
    return result.stderr


def test_translate_speaks_tls_and_shows_its_token(
    closed: RunningServer, ca: Path, token_file: Path, server: RunningServer
) -> None:
    usual = run_service("translate", f"--server={server.address}", TEXT)
    arguments = ("translate", f"--server={closed.address}", f"--ca={ca}", TEXT)
    from_file = run_service(*arguments, f"--token-file={token_file}")
    from_variable = run_service(*arguments, NMT_TOKEN=f"{TOKEN}\n")
    assert from_file.stdout == from_variable.stdout == usual.stdout != ""
    assert (from_file.returncode, from_file.stderr) == (0, "")


def test_the_file_of_a_token_wins_over_the_variable(
    closed: RunningServer, ca: Path, token_file: Path
) -> None:
    arguments = ("--server", closed.address, f"--ca={ca}", f"--token-file={token_file}", TEXT)
    assert run_service("translate", *arguments, NMT_TOKEN=WRONG).returncode == 0


def test_admin_speaks_tls_and_shows_its_token(
    closed: RunningServer, ca: Path, token_file: Path
) -> None:
    arguments = ("admin", f"--server=localhost:{closed.admin_port}", f"--ca={ca}")
    result = run_service(*arguments, f"--token-file={token_file}", "list")
    assert result.returncode == 0 and result.stdout.count("SERVING") == 2
    said = refusal(*arguments, "list")
    assert said.startswith(f"UNAUTHENTICATED: localhost:{closed.admin_port}: no token; ")
    assert said.endswith("; here: give --token-file FILE, or set NMT_TOKEN\n")


def test_a_token_that_is_not_known_is_said_to_be_wrong_and_not_shown(
    closed: RunningServer, ca: Path
) -> None:
    said = refusal("translate", f"--server={closed.address}", f"--ca={ca}", TEXT, NMT_TOKEN=WRONG)
    assert said.startswith(f"UNAUTHENTICATED: {closed.address}: no such token; ")
    assert said.endswith("; what was sent is that of --token-file or NMT_TOKEN\n")
    assert WRONG not in said


def test_health_speaks_tls(closed: RunningServer, mutual: RunningServer, ca: Path) -> None:
    result = run_service("health", f"--server={closed.address}", f"--ca={ca}", "--name=liveness")
    assert (result.returncode, result.stdout, result.stderr) == (0, "SERVING\n", "")
    result = run_service("health", f"--server={mutual.address}", f"--ca={ca}")
    assert (result.returncode, result.stdout) == (1, "UNAVAILABLE\n")
    assert result.stderr.endswith("give --certificate and --key\n")


def test_health_asks_the_port_that_speaks_what_it_was_told_to_speak(
    closed: RunningServer, pems: Pems, ca: Path
) -> None:
    settings = {
        "NMT_TLS_CERTIFICATE": str(pems.certificate),
        "NMT_TLS_KEY": str(pems.key),
        "NMT_PORT": str(closed.port),
        "NMT_HEALTH_PORT": str(closed.health_port),
        "NMT_TOKEN": TOKEN,
    }
    for flags in ((), (f"--ca={ca}",)):
        assert run_service("health", *flags, **settings).stdout == "SERVING\n"


def test_the_system_s_authorities_are_trusted_where_that_is_asked_for(
    mutual: RunningServer, own: tuple[str, str], ca: Path, tmp_path: Path
) -> None:
    arguments = ("health", f"--server={mutual.address}", *own, "--tls")
    written(tmp_path / "4711abcd.0", ca.read_bytes())
    in_file = {"SSL_CERT_FILE": str(ca), "SSL_CERT_DIR": ""}
    in_folder = {"SSL_CERT_FILE": "", "SSL_CERT_DIR": str(tmp_path)}
    for system in (in_file, in_folder):
        assert run_service(*arguments, **system).stdout == "SERVING\n"
    stranger = written(tmp_path / "stranger.crt", trustme.CA().cert_pem.bytes())
    result = run_service(*arguments, SSL_CERT_FILE=str(stranger))
    assert result.stdout == "UNAVAILABLE\n"
    assert result.stderr.endswith(
        "nobody trusted signed the server's certificate: give --ca FILE\n"
    )


def test_a_client_shows_its_certificate_where_one_is_asked_for(
    mutual: RunningServer, ca: Path, own: tuple[str, str]
) -> None:
    arguments = ("translate", f"--server={mutual.address}", f"--ca={ca}", TEXT)
    assert run_service(*arguments, *own).returncode == 0
    said = refusal(*arguments)
    assert said.endswith("wants a certificate of its clients, give --certificate and --key\n")


def test_a_certificate_that_the_server_does_not_trust_is_named(
    mutual: RunningServer, ca: Path, tmp_path: Path
) -> None:
    strange = certificate_flags(trustme.CA().issue_cert("client.example"), tmp_path / "strange")
    said = refusal("translate", f"--server={mutual.address}", f"--ca={ca}", *strange, TEXT)
    assert said.endswith(f"may not trust the authority of {tmp_path / 'strange.crt'}\n")


def test_a_server_in_the_other_mode_is_recognised(
    closed: RunningServer, server: RunningServer, ca: Path
) -> None:
    said = refusal("translate", f"--server={closed.address}", TEXT)
    assert said.endswith("if the server speaks TLS, give --tls or --ca FILE\n")
    said = refusal("translate", f"--server={server.address}", f"--ca={ca}", TEXT)
    assert said.endswith("the server speaks no TLS here: leave --tls and --ca away\n")


def test_a_certificate_of_another_name_is_taken_where_that_name_is_given(
    closed: RunningServer, ca: Path
) -> None:
    arguments = ("health", f"--server=127.0.0.1:{closed.port}", f"--ca={ca}")
    result = run_service(*arguments)
    assert result.stdout == "UNAVAILABLE\n"
    assert result.stderr.endswith("use that, or give it as --tls-server-name\n")
    assert run_service(*arguments, "--tls-server-name=localhost").stdout == "SERVING\n"


def test_a_server_that_is_not_there_gets_no_advice_about_tls(ca: Path) -> None:
    said = refusal("translate", "--server=localhost:1", f"--ca={ca}", TEXT)
    assert said.endswith("no server listens there: start one, or give another --server\n")


def test_a_token_is_sent_in_plaintext_on_this_machine(
    token_only: RunningServer, token_file: Path
) -> None:
    arguments = (f"--token-file={token_file}", TEXT)
    here = run_service("translate", f"--server={token_only.address}", *arguments)
    assert here.returncode == 0
    with Client(token_only.address) as client, pytest.raises(Unauthenticated):
        client.list_models()


def test_a_token_in_plaintext_is_not_sent_to_an_address_that_others_could_have() -> None:
    with socket.create_server((address_in_the_network(), 0)) as other:
        address = "{}:{}".format(*other.getsockname())
        with Client(address, access=Access(token=TOKEN)) as client:
            with pytest.raises(Unavailable, match="over TLS only: give --tls or --ca$"):
                client.list_models()


@pytest.mark.parametrize(
    ("flags", "faults"),
    [
        (["--certificate=a"], ["TLS: --certificate is given without --key"]),
        (["--key=a"], ["TLS: --key is given without --certificate"]),
        (["--tls-server-name=a"], ["TLS: --tls-server-name is given without --tls or --ca"]),
        (["--ca=/nowhere"], ["TLS: --ca /nowhere: No such file or directory"]),
        (
            ["--certificate=/a", "--key=/b"],
            ["TLS: --certificate /a: No such", "TLS: --key /b: No such"],
        ),
        (["--token-file=/nowhere"], ["--token-file: /nowhere: No such file or directory"]),
        (["--tls", "--models=models"], ["--models: needs no server"]),
    ],
)
def test_what_can_not_be_used_is_named(flags: list[str], faults: list[str]) -> None:
    result = run_service("translate", *flags, TEXT)
    assert (result.returncode, result.stdout) == (2, "")
    for line, fault in zip(result.stderr.splitlines(), faults, strict=True):
        assert line.startswith(fault)


@pytest.mark.parametrize("content", [b"", b"?", b"\xff"])
def test_a_file_of_authorities_that_has_none_is_refused(content: bytes, tmp_path: Path) -> None:
    file = written(tmp_path / "ca.crt", content)
    with pytest.raises(ConfigError, match=f"--ca {file}: no certificate in PEM"):
        Client("localhost:1", access=Access(ca=file))


def test_a_key_must_be_that_of_the_certificate(pems: Pems, tmp_path: Path) -> None:
    certificate_flags(pems.client(), tmp_path / "one")
    certificate_flags(pems.client(), tmp_path / "two")
    access = Access(certificate=tmp_path / "one.crt", key=tmp_path / "two.key")
    with pytest.raises(ConfigError, match=f"--key {tmp_path}/two.key: not the key of the cert"):
        Client("localhost:1", access=access)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (f"{TOKEN}\n{WRONG}\n", "holds 2 tokens; a caller has one"),
        ("# none\n", "holds no token"),
        (f"{TOKEN} {WRONG}", "line 1: a token has printable ASCII characters only"),
    ],
)
def test_a_file_without_the_one_token_is_refused_and_not_quoted(
    content: str, fault: str, tmp_path: Path
) -> None:
    file = written(tmp_path / "token", content.encode())
    result = run_service("translate", f"--token-file={file}", TEXT)
    assert (result.returncode, result.stdout) == (2, "")
    assert f"--token-file: {file}" in result.stderr and fault in result.stderr
    assert TOKEN not in result.stderr and WRONG not in result.stderr


def test_a_bad_token_in_the_variable_is_refused_and_not_quoted() -> None:
    result = run_service("translate", TEXT, NMT_TOKEN=f"{TOKEN} {WRONG}")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("token: a token has printable ASCII characters only")
    assert TOKEN not in result.stderr and WRONG not in result.stderr


def test_a_token_is_not_shown_where_its_access_is() -> None:
    assert TOKEN not in repr(Access(token=TOKEN))


@pytest.mark.parametrize("command", ["translate", "admin", "health"])
def test_no_command_takes_a_token_where_all_processes_see_it(command: str) -> None:
    said = run_service(command, "--help").stdout
    assert "--token-file FILE" in said and "NMT_TOKEN" in said
    assert "--token " not in said and "--token=" not in said
