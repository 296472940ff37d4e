"""The import rules of the repository: what a package may pull in, and in which direction."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# A module may import modules of a lower level, and the modules of its own level named together.
LEVELS = {
    "errors": -1,
    "reading": -1,
    "logs": 0,
    "tracing": 0,
    "text": 0,
    "decoding": 0,
    "bundle": 1,
    "session": 2,
    "batching": 2,
    "metrics": 2,
    "engine": 3,
    "translator": 4,
    "config": 4,
    "pb": 4,
    "catalog": 5,
    "rpc": 6,
    "security": 6,
    "server": 7,
    "client": 7,
    "commands": 8,
    "__main__": 9,
}
FORBIDDEN = {
    "service": {"torch", "onnx", "training", "export", "bench"},
    "training": {"grpc", "onnx", "onnxruntime", "prometheus_client", "export", "bench"},
    "export": {"grpc", "prometheus_client", "bench"},
}
FROM_SERVICE = {
    "training": {"errors", "text", "decoding"},
    "export": {"errors", "text", "decoding", "bundle", "session"},
}
ONLY_IN = {
    "onnxruntime": ("service/session/",),
    "grpc": (
        "service/rpc/",
        "service/security/",
        "service/server",
        "service/client/",
        "service/pb/",
        "service/tracing/",
    ),
    "opentelemetry": ("service/tracing/",),
    "pyasn1_modules": ("service/security/",),
    "wcwidth": ("service/client/",),
    "matplotlib": ("service/client/", "training/plots.py"),
    "prometheus_client": ("service/metrics", "service/server"),
    # Training makes vocabularies; tokenising is the service's for everybody.
    "sentencepiece": ("service/text/", "training/vocabulary.py"),
    "sentencex": ("service/text/",),
    "py3langid": ("service/text/",),
}


def sources(package: str) -> list[Path]:
    return sorted(p for p in (ROOT / package).rglob("*.py") if "pb" not in p.parts)


def imports(path: Path) -> set[str]:
    """Dotted names of all that a file imports, relative imports resolved."""
    found: set[str] = set()
    package = ".".join(path.relative_to(ROOT).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parts, base] if base else parts)
            found.add(base)
            found |= {f"{base}.{alias.name}" for alias in node.names}
    return found


def part(path: Path) -> str:
    """The module of `service` that a file belongs to: itself, or the folder it is a part of."""
    return path.relative_to(ROOT / "service").parts[0].removesuffix(".py")


@pytest.mark.parametrize("package", sorted(FORBIDDEN))
def test_a_package_imports_nothing_that_is_forbidden_to_it(package: str) -> None:
    for path in sources(package):
        roots = {name.split(".")[0] for name in imports(path)}
        assert not roots & FORBIDDEN[package], path


@pytest.mark.parametrize("package", sorted(FROM_SERVICE))
def test_a_package_uses_only_the_shared_parts_of_the_service(package: str) -> None:
    for path in sources(package):
        used = {n.split(".")[1] for n in imports(path) if n.startswith("service.")}
        assert used <= FROM_SERVICE[package], path


def test_imports_inside_the_service_go_down() -> None:
    for path in sources("service"):
        if path.name == "__init__.py" and path.parent == ROOT / "service":
            continue
        here = part(path)
        assert here in LEVELS, f"{path} has no place in the import order"
        for name in imports(path):
            if name.startswith("service.") and (there := name.split(".")[1]) in LEVELS:
                lower = LEVELS[there] < LEVELS[here]
                assert lower or there == here, f"{path} imports {name}"


@pytest.mark.parametrize("library", sorted(ONLY_IN))
def test_a_library_is_imported_in_its_own_place_only(library: str) -> None:
    for path in sources("service") + sources("training") + sources("docs"):
        if library in {name.split(".")[0] for name in imports(path)}:
            assert path.relative_to(ROOT).as_posix().startswith(ONLY_IN[library]), path


@pytest.mark.parametrize("module", ["service.server", "service.client", "service.rpc"])
def test_serving_loads_no_training_library(module: str) -> None:
    heavy = {"torch", "onnx", "training", "export"}
    code = f"import sys, {module}; print({heavy!r} & set(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "set()"
