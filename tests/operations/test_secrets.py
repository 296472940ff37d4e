"""A server that tells all that it can, of successes and of faults, shows no token anywhere."""

from tests.operations.steered_server import TEXT, TOKEN, SteeredServer
from tests.otlp_receiver import Receiver
from tests.running_server import eventually

WRONG = "not-one-of-them-4711"
METHOD = "nmt.v1.TranslationService/Translate"


def test_no_token_is_in_logs_metrics_traces_or_messages_whatever_happens(
    steered: SteeredServer, receiver: Receiver
) -> None:
    stranger = SteeredServer(steered.server, steered.channel, [("x-api-key", WRONG)])
    calls = [steered.call(), stranger.call(), steered.call(model="unknown")]
    codes = [call.code().name for call in calls]
    calls.append(steered.hold())
    steered.order("die")
    codes.append(calls[-1].code().name)
    assert codes == ["OK", "UNAUTHENTICATED", "NOT_FOUND", "INTERNAL"]
    eventually(lambda: METHOD in receiver.spans)
    told = [steered.server.log(), steered.server.metrics(), steered.server.banner]
    told += [str(call.details()) + str(call.trailing_metadata()) for call in calls]
    told += map(str, receiver.spans.values())
    assert TEXT in told[0], "it was asked to log texts"
    assert "SystemExit: injected" in told[0], "and a fault"
    for token in (TOKEN, WRONG):
        assert token not in "\n".join(told)
