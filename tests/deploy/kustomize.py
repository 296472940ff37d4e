"""What `kubectl kustomize` makes of deploy/, as Python objects."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
OVERLAYS = sorted(path.name for path in (DEPLOY / "overlays").iterdir())
COMPONENTS = sorted(path.name for path in (DEPLOY / "components").iterdir())
Resource: TypeAlias = dict[str, Any]

needs_kubectl = pytest.mark.skipif(
    shutil.which("kubectl") is None, reason="kubectl, which renders the manifests, isn't installed"
)


def render(folder: Path) -> list[Resource]:
    """The resources of a kustomization."""
    return list(yaml.safe_load_all(_rendered(folder)))


@cache
def _rendered(folder: Path) -> str:
    done = subprocess.run(
        ["kubectl", "kustomize", str(folder)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0 and not done.stderr, done.stderr  # where deprecations are
    return done.stdout


def render_with(folder: Path, overlay: str, components: Sequence[str]) -> list[Resource]:
    """An overlay and more components, put together in an empty `folder` as a user would."""
    kustomization = {
        "resources": [os.path.relpath(DEPLOY / "overlays" / overlay, folder)],
        "components": [
            os.path.relpath(DEPLOY / "components" / name, folder) for name in components
        ],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    return render(folder)


def one(resources: Sequence[Resource], kind: str) -> Resource:
    """The only resource of a kind."""
    [found] = [resource for resource in resources if resource["kind"] == kind]
    return found


def pod_of(resources: Sequence[Resource]) -> Resource:
    """The pod's spec."""
    spec: Resource = one(resources, "Deployment")["spec"]["template"]["spec"]
    return spec


def container_of(resources: Sequence[Resource]) -> Resource:
    """The only container."""
    [container] = pod_of(resources)["containers"]
    spec: Resource = container
    return spec


def environment_of(resources: Sequence[Resource]) -> dict[str, str]:
    """The variables that the manifests set for the server."""
    return {entry["name"]: entry["value"] for entry in container_of(resources)["env"]}
