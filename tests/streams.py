"""A stream of segments in the hands of a test: it sends, reads and ends when the test says so."""

from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

import grpc

from service.pb import translation_pb2 as pb
from service.pb.translation_pb2_grpc import TranslationServiceStub

TEXT = "Two young women are walking."


def segment(id: object, content: str = TEXT, **fields: Any) -> pb.TranslateStreamRequest:
    return pb.TranslateStreamRequest(segment=pb.Segment(id=str(id), content=content, **fields))


def settings(**fields: Any) -> pb.TranslateStreamRequest:
    return pb.TranslateStreamRequest(settings=pb.TranslateStreamSettings(**fields))


class Talk:
    """One rpc that is open. num_sent: messages that gRPC has taken from us."""

    def __init__(self, channel: grpc.Channel, timeout: float | None = None) -> None:
        self._outgoing: SimpleQueue[pb.TranslateStreamRequest | None] = SimpleQueue()
        self.num_sent = 0
        stub: Any = TranslationServiceStub(channel)
        self.call = stub.TranslateStream(self._sent(), timeout=timeout)

    def send(self, *messages: pb.TranslateStreamRequest) -> None:
        for message in messages:
            self._outgoing.put(message)

    def half_close(self) -> None:
        self._outgoing.put(None)

    def read(self) -> pb.TranslateStreamResponse:
        """The next answer; fails if there is none."""
        response: pb.TranslateStreamResponse = next(self.call)
        return response

    def rest(self) -> list[pb.TranslateStreamResponse]:
        """All other answers, whatever the stream ends with."""
        responses = []
        try:
            for response in self.call:
                responses.append(response)
        except grpc.RpcError:
            pass
        return responses

    def code(self) -> grpc.StatusCode:
        """What the stream ended with, once it has."""
        code: grpc.StatusCode = self.call.code()
        return code

    def _sent(self) -> Iterator[pb.TranslateStreamRequest]:
        for message in iter(self._outgoing.get, None):
            self.num_sent += 1
            yield message


@contextmanager
def talk(address: str, timeout: float | None = None) -> Iterator[Talk]:
    """An open stream to a server."""
    with grpc.insecure_channel(address) as channel:
        talking = Talk(channel, timeout)
        try:
            yield talking
        finally:
            talking.call.cancel()
            talking.half_close()


def said(
    address: str, *messages: pb.TranslateStreamRequest
) -> tuple[list[pb.TranslateStreamResponse], grpc.StatusCode, str]:
    """What a server answers to these messages: its own, the code and the reason of the end."""
    with talk(address) as talking:
        talking.send(*messages)
        talking.half_close()
        return talking.rest(), talking.code(), talking.call.details()
