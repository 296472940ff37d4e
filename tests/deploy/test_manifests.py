"""The Kubernetes manifests: valid for Kubernetes, and they agree with the server."""

import json
import tomllib
from collections.abc import Mapping
from functools import cache
from itertools import chain
from pathlib import Path

import kubernetes_validate  # type: ignore[import-untyped]
import pytest

from service.config import ServerConfig
from service.rpc.health import LIVENESS
from tests.deploy.kustomize import (
    COMPONENTS,
    DEPLOY,
    OVERLAYS,
    Resource,
    container_of,
    environment_of,
    needs_kubectl,
    one,
    pod_of,
    render,
    render_with,
)

pytestmark = needs_kubectl
# The oldest Kubernetes that has all that the manifests use, and the newest that is known.
VERSIONS = ("1.31", kubernetes_validate.latest_version())
CUSTOM_KINDS = {"ServiceMonitor"}  # of operators: Kubernetes has no schema for them
# Time for the process to start exiting, and for what the drain cuts off to be answered.
SPARE_SECONDS = 5


@pytest.fixture(params=OVERLAYS)
def overlay(request: pytest.FixtureRequest) -> list[Resource]:
    return render(DEPLOY / "overlays" / request.param)


@pytest.fixture
def secured(tmp_path: Path) -> list[Resource]:
    """The overlay cpu with TLS, tokens and the models on a volume."""
    return render_with(tmp_path, "cpu", ["tls", "tokens", "model-volume"])


def assert_valid(resources: list[Resource]) -> None:
    for resource in resources:
        if resource["kind"] not in CUSTOM_KINDS:
            validate(json.dumps(resource, sort_keys=True))


@cache  # most resources are the same in every overlay, and the schemas are large
def validate(resource: str) -> None:
    for version in VERSIONS:
        kubernetes_validate.validate(json.loads(resource), version, strict=True)


def config_of(resources: list[Resource]) -> ServerConfig:
    """The server's configuration in the image with these manifests. Raises ConfigError."""
    return ServerConfig.load({}, environment_of(resources))


def selects(selector: Mapping[str, str], resources: list[Resource]) -> bool:
    labels = one(resources, "Deployment")["spec"]["template"]["metadata"]["labels"]
    return bool(selector) and selector.items() <= labels.items()


def test_an_overlay_is_valid_for_kubernetes(overlay: list[Resource]) -> None:
    assert_valid(overlay)


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_component_is_valid_on_its_own(component: str, tmp_path: Path) -> None:
    overlay = "gpu" if component.startswith("autoscale") else "cpu"
    assert_valid(render_with(tmp_path, overlay, [component]))


def test_components_are_valid_together(secured: list[Resource]) -> None:
    assert_valid(secured)


def test_a_misspelt_field_is_found(overlay: list[Resource]) -> None:
    container_of(overlay)["readynessProbe"] = {"grpc": {"port": 50051}}
    with pytest.raises(kubernetes_validate.ValidationError, match="readynessProbe"):
        assert_valid(overlay)


def test_what_the_manifests_set_is_a_configuration_of_the_server(overlay: list[Resource]) -> None:
    config = config_of(overlay)
    ports = {port["name"]: port["containerPort"] for port in container_of(overlay)["ports"]}
    assert ports == {"grpc": config.port, "metrics": config.metrics_port}


def test_a_secured_server_opens_the_ports_that_the_manifests_name(secured: list[Resource]) -> None:
    config = config_of(secured)
    ports = {port["name"]: port["containerPort"] for port in container_of(secured)["ports"]}
    assert ports["health"] == config.health_port and ports["grpc"] == config.port


def test_probes_ask_for_what_each_is_about(overlay: list[Resource]) -> None:
    assert_probes(container_of(overlay), config_of(overlay).port)


def test_probes_of_a_server_with_tls_ask_its_plaintext_port(secured: list[Resource]) -> None:
    assert_probes(container_of(secured), config_of(secured).health_port)


def assert_probes(container: Resource, port: int) -> None:
    asked = {
        kind: container[f"{kind}Probe"]["grpc"] for kind in ("startup", "readiness", "liveness")
    }
    whole = {"port": port}
    assert asked == {
        "startup": whole,
        "readiness": whole,
        "liveness": {"port": port, "service": LIVENESS},
    }


def test_kubernetes_waits_as_long_as_the_server_takes_to_stop(overlay: list[Resource]) -> None:
    config = config_of(overlay)
    before = container_of(overlay)["lifecycle"]["preStop"]["sleep"]["seconds"]
    takes = before + config.shutdown_delay_seconds + config.drain_seconds
    assert takes + SPARE_SECONDS <= pod_of(overlay)["terminationGracePeriodSeconds"]


def test_a_pod_that_stops_leaves_the_endpoints_before_it_refuses(overlay: list[Resource]) -> None:
    container, config = container_of(overlay), config_of(overlay)
    assert container["lifecycle"]["preStop"]["sleep"]["seconds"] > 0
    assert config.shutdown_delay_seconds > 0


def test_the_container_is_locked_down(secured: list[Resource]) -> None:
    pod, container = pod_of(secured), container_of(secured)
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not pod["automountServiceAccountToken"] and not pod["enableServiceLinks"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert all(mount["readOnly"] for mount in container["volumeMounts"])


def test_the_user_of_the_pod_is_that_of_the_image(overlay: list[Resource]) -> None:
    context = pod_of(overlay)["securityContext"]
    user = f"USER {context['runAsUser']}:{context['runAsGroup']}"
    assert user in (DEPLOY.parent / "Dockerfile").read_text().splitlines()


def test_every_file_that_the_server_is_told_to_read_is_mounted(secured: list[Resource]) -> None:
    config = config_of(secured)
    mounts = [Path(mount["mountPath"]) for mount in container_of(secured)["volumeMounts"]]
    files = [config.tls_certificate, config.tls_key, config.tokens_file]
    assert all(any(mount in Path(file).parents for mount in mounts) for file in files)
    assert Path("/models") in mounts  # where the image has NMT_MODELS


def test_every_selector_selects_the_pods(tmp_path: Path) -> None:
    resources = render_with(tmp_path, "autoscale-on-queue-wait", [])
    labels = {"matchLabels": one(resources, "Service")["spec"]["selector"]}
    for kind, field in (
        ("Deployment", "selector"),
        ("PodDisruptionBudget", "selector"),
        ("NetworkPolicy", "podSelector"),
        ("ServiceMonitor", "selector"),
    ):
        assert one(resources, kind)["spec"][field] == labels
    assert selects(labels["matchLabels"], resources)
    assert labels["matchLabels"].items() <= one(resources, "Service")["metadata"]["labels"].items()


def test_a_client_needs_one_label_to_be_let_in(overlay: list[Resource]) -> None:
    clients, prometheus = one(overlay, "NetworkPolicy")["spec"]["ingress"]
    config = config_of(overlay)
    assert clients["ports"] == [{"port": config.port}]
    assert clients["from"] == [{"podSelector": {"matchLabels": {"attention-nmt/client": "true"}}}]
    assert prometheus["ports"] == [{"port": config.metrics_port}]


def test_the_service_gives_clients_every_pod(overlay: list[Resource]) -> None:
    service = one(overlay, "Service")["spec"]
    names = {port["name"] for port in container_of(overlay)["ports"]}
    assert service["clusterIP"] == "None"
    assert {port["targetPort"] for port in service["ports"]} == names


def test_pods_have_the_cores_that_they_size_themselves_by(overlay: list[Resource]) -> None:
    resources = container_of(overlay)["resources"]
    assert resources["limits"]["cpu"] == resources["requests"]["cpu"]
    assert resources["limits"]["memory"] == resources["requests"]["memory"]


def test_the_images_are_of_this_version(overlay: list[Resource]) -> None:
    version = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())["project"]["version"]
    image = container_of(overlay)["image"]
    assert image in (f"attention-nmt:{version}-cpu", f"attention-nmt:{version}-cuda")


def test_either_an_autoscaler_or_the_deployment_counts_the_pods(overlay: list[Resource]) -> None:
    scaled = [resource for resource in overlay if resource["kind"] == "HorizontalPodAutoscaler"]
    deployment = one(overlay, "Deployment")
    assert ("replicas" in deployment["spec"]) == (not scaled)
    for autoscaler in scaled:
        target = autoscaler["spec"]["scaleTargetRef"]
        assert (target["kind"], target["name"]) == ("Deployment", deployment["metadata"]["name"])
        assert autoscaler["spec"]["minReplicas"] > 1


def test_every_folder_says_what_it_is_for() -> None:
    folders = chain((DEPLOY / "overlays").iterdir(), (DEPLOY / "components").iterdir())
    texts = [(folder / "kustomization.yaml").read_text() for folder in (*folders, DEPLOY / "base")]
    assert all(text.startswith("# ") for text in texts)
