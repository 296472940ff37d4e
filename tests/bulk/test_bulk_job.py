"""The Job for Kubernetes: valid, locked down, and all of its pods together translate the file."""

import gzip
from pathlib import Path

import pytest

from service.client.local import LocalClient
from service.pb import translation_pb2 as pb
from tests.bulk.files import put, text_of
from tests.corpus import SENTENCES
from tests.deploy.kustomize import DEPLOY, Resource, needs_kubectl, one, render
from tests.deploy.test_manifests import assert_valid
from tests.running_server import run_service

pytestmark = needs_kubectl
INDEX = "$(JOB_COMPLETION_INDEX)"  # a variable that Kubernetes sets in each container


@pytest.fixture(scope="module")
def resources() -> list[Resource]:
    return render(DEPLOY / "bulk")


@pytest.fixture(scope="module")
def job(resources: list[Resource]) -> Resource:
    spec: Resource = one(resources, "Job")["spec"]
    return spec


@pytest.fixture(scope="module")
def container(job: Resource) -> Resource:
    [container] = job["template"]["spec"]["containers"]
    spec: Resource = container
    return spec


def test_the_job_is_valid_for_kubernetes(resources: list[Resource]) -> None:
    assert_valid(resources)


def test_all_pods_together_translate_the_file(
    job: Resource, container: Resource, models: Path, local: LocalClient, tmp_path: Path
) -> None:
    put(tmp_path / "corpus.txt.gz", "".join(f"{text}\n" for text in SENTENCES).encode())
    for index in range(job["completions"]):
        arguments = [argument.replace(INDEX, str(index)) for argument in container["args"]]
        arguments = [
            argument.replace("/models", str(models)).replace("/data", str(tmp_path))
            for argument in arguments
        ]
        done = run_service(*arguments)
        assert done.returncode == 0, done.stderr
    parts = sorted((tmp_path / "translated").glob("*.gz"))
    answer = local.translate(pb.TranslateRequest(contents=SENTENCES))
    expected = "".join(f"{found.translated_text}\n" for found in answer.translations)
    assert len(parts) == job["completions"] and all(text_of(part) for part in parts)
    assert gzip.decompress(b"".join(part.read_bytes() for part in parts)) == expected.encode()


def test_another_try_is_for_those_who_can_win(job: Resource, container: Resource) -> None:
    [rule] = [rule for rule in job["podFailurePolicy"]["rules"] if "onExitCodes" in rule]
    codes = rule["onExitCodes"]
    assert (rule["action"], codes["containerName"]) == ("FailIndex", container["name"])
    wrong = run_service(*(a.replace(INDEX, f"{job['completions']}") for a in container["args"]))
    assert codes["values"] == [wrong.returncode]


def test_the_pods_are_no_servers_and_locked_down(
    resources: list[Resource], job: Resource, container: Resource
) -> None:
    server = render(DEPLOY / "overlays" / "cpu")
    labels = job["template"]["metadata"]["labels"]
    assert not one(server, "Service")["spec"]["selector"].items() <= labels.items()
    policy = one(resources, "NetworkPolicy")["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= labels.items()
    pod, [theirs] = (
        job["template"]["spec"],
        one(server, "Deployment")["spec"]["template"]["spec"]["containers"],
    )
    assert pod["securityContext"]["runAsUser"] == 10001 and not pod["automountServiceAccountToken"]
    assert container["securityContext"] == theirs["securityContext"]
    assert container["image"] == theirs["image"]


def test_the_pods_share_the_volume_that_is_claimed(
    resources: list[Resource], job: Resource
) -> None:
    claim = one(resources, "PersistentVolumeClaim")
    [volume] = job["template"]["spec"]["volumes"]
    assert volume["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
