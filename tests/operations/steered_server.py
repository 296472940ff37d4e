"""A real server whose steps a test decides, and calls of it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from service.pb import translation_pb2 as pb
from service.pb.translation_pb2_grpc import TranslationServiceStub
from tests.operations import steering
from tests.running_server import RunningServer, eventually, running_server

STEERED, OTHER = steering.STEERED, "tiny-bahdanau"
TEXT = "Two young women are walking."
TOKEN = "the-web-shops-token-1"
MAX_ROWS = 4
MAX_QUEUE = 512
# Every sentence takes that many steps, neither more nor less.
NUM_STEPS = 2
SERVING, NOT_SERVING = HealthCheckResponse.SERVING, HealthCheckResponse.NOT_SERVING


@dataclass(frozen=True)
class SteeredServer:
    """One worker of few rows; `channel` is a connection to it, `metadata` what it asks for."""

    server: RunningServer
    channel: grpc.Channel
    metadata: Sequence[tuple[str, str]] = ()

    def order(self, command: str) -> None:
        """Has a command of `tests.operations.steering` carried out."""
        stdin, stdout = self.server.process.stdin, self.server.process.stdout
        assert stdin and stdout
        stdin.write(f"{command}\n")
        stdin.flush()
        assert stdout.readline() == "done\n"

    def let_steps(self, count: int) -> None:
        """Returns once so many steps have been made."""
        goal = self.num_steps + count
        self.order(f"step {count}")
        eventually(lambda: self.num_steps >= goal)

    def call(
        self, num_sentences: int = 1, timeout: float | None = None, model: str = STEERED
    ) -> Any:
        """A call on its way, of which each sentence takes `NUM_STEPS` steps."""
        request = pb.TranslateRequest(
            contents=[TEXT] * num_sentences,
            model=model,
            options=pb.DecodingOptions(max_length=NUM_STEPS),
        )
        return self.send(request, timeout)

    def send(self, request: pb.TranslateRequest, timeout: float | None = None) -> Any:
        stub = TranslationServiceStub(self.channel)
        return stub.Translate.future(request, timeout=timeout, metadata=self.metadata)

    def hold(self, num_sentences: int = MAX_ROWS) -> Any:
        """Stops the steps; returns a call whose sentences are in a batch and wait for one."""
        self.order("hold")
        call = self.call(num_sentences)
        eventually(lambda: self.num_rows == min(num_sentences, MAX_ROWS))
        return call

    def queue(self, num_sentences: int, timeout: float | None = None) -> Any:
        """A call whose sentences wait behind those that are held."""
        goal = self.num_waiting + num_sentences
        call = self.call(num_sentences, timeout)
        eventually(lambda: self.num_waiting == goal)
        return call

    def health(self, name: str = "") -> int:
        answer = HealthStub(self.channel).Check(HealthCheckRequest(service=name))
        status: int = answer.status
        return status

    def sample(self, name: str, **labels: str) -> float:
        """A metric of the steered model."""
        return self.server.sample(name, model=STEERED, **labels)

    def lost(self, *reasons: str) -> float:
        """Sentences that were accepted and not translated."""
        return sum(self.sample("nmt_lost_sentences_total", reason=each) for each in reasons)

    @property
    def num_steps(self) -> float:
        return self.sample("nmt_step_seconds_count")

    @property
    def num_rows(self) -> float:
        return self.sample("nmt_rows_in_flight")

    @property
    def num_waiting(self) -> float:
        return self.sample("nmt_waiting_sentences")

    @property
    def num_refused(self) -> float:
        return self.sample("nmt_refused_sentences_total")

    @property
    def num_finished(self) -> float:
        return self.sample("nmt_finished_sentences_total")

    def is_idle(self) -> bool:
        return self.num_rows == 0 == self.num_waiting

    def set_free(self) -> None:
        """Undoes every order, and returns once the server works and has nothing to do."""
        for command in ("go", "mend"):
            self.order(command)
        eventually(lambda: self.health(STEERED) == SERVING)
        assert self.call().code() is grpc.StatusCode.OK
        eventually(self.is_idle)


@contextmanager
def steered_server(
    models: Path, *flags: str, log_file: Path, token: str = ""
) -> Iterator[SteeredServer]:
    """Serves until the end of the block; calls have the token if there is one."""
    metadata = [("authorization", f"Bearer {token}")] if token else []
    limits = ("--workers=1", f"--max-rows={MAX_ROWS}", f"--max-queue-sentences={MAX_QUEUE}")
    module = "tests.operations.steering"
    with running_server(models, *limits, *flags, log_file=log_file, module=module) as server:
        with grpc.insecure_channel(server.address) as channel:
            yield SteeredServer(server, channel, metadata)


def retry_seconds(call: Any) -> float:
    """When the status of a refused call says to come back."""
    details = dict(call.trailing_metadata())["grpc-status-details-bin"]
    [detail] = Status.FromString(details).details
    info = RetryInfo.FromString(detail.value)
    return float(info.retry_delay.ToNanoseconds() / 1e9)
