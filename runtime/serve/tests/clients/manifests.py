"""Checks the manifests for Kubernetes, offline: `manifests.py --url URL --program mlxcel-serve`.

Each is compared with the schemas of its CRD, and what it names with a server: options, probes and metrics.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import yaml

HERE = Path(__file__).parent
DEPLOY = HERE.parent.parent / "deploy"
APPLICATION = HERE.parent.parent.parent / "python/mlxcel/ray/serving.py"

SCHEMAS = yaml.safe_load((HERE / "manifests.yaml").read_text())

# Kinds of Kubernetes itself that are too simple to need a schema.
PLAIN = {"ConfigMap", "Role", "RoleBinding", "Service", "ServiceAccount"}


def documents() -> list[tuple[str, dict]]:
    """Returns every document with the name of its file."""
    files = sorted(DEPLOY.glob("*.yaml"))
    return [(file.name, document) for file in files for document in yaml.safe_load_all(file.read_text())]


def every(value: Any, key: str) -> Iterator[Any]:
    """Yields what a document has under a key, at any depth."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == key:
                yield inner
            yield from every(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from every(inner, key)


def check_schemas(found: list[tuple[str, dict]]) -> None:
    for file, document in found:
        kind = document["kind"]
        if kind not in PLAIN:
            jsonschema.validate(document, SCHEMAS[kind]["schema"])
            print(f"{file}: {kind} as {SCHEMAS[kind]['source']} has it")
    assert {document["kind"] for _, document in found} - PLAIN == set(SCHEMAS)


def servers(found: list[tuple[str, dict]]) -> list[tuple[dict, dict]]:
    """Returns the containers of mlxcel-serve, each with the document that has it."""
    return [
        (document, container)
        for _, document in found
        for containers in every(document, "containers")
        for container in containers
        if container.get("command") == ["/mlxcel-serve"]
    ]


def check_servers(found: list[tuple[str, dict]], url: str, program: str) -> None:
    help_text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    options = set(re.findall(r"--[a-z-]+", help_text))
    containers = servers(found)
    assert len(containers) == 2
    for _, container in containers:
        given = {argument for argument in container["args"] if argument.startswith("--")}
        assert given <= options, given - options
        paths = {probe["path"] for probe in every(container, "httpGet")}
        assert paths == {"/health/live", "/health/ready"}
        for path in paths:
            assert urllib.request.urlopen(url + path).status == 200, path
    # Answers have the time that --drain gives them.
    drain = {int(one["args"][one["args"].index("--drain") + 1]) for _, one in containers}
    pauses = {pause["seconds"] for _, one in containers for pause in every(one, "sleep")}
    graces = {grace for _, document in found for grace in every(document, "terminationGracePeriodSeconds")}
    assert min(graces) > max(drain) + max(pauses), (graces, drain, pauses)


def check_pool(found: list[tuple[str, dict]], url: str) -> None:
    """Checks that the pool, its picker and the servers fit each other."""
    by_name = {(document["kind"], document["metadata"]["name"]): document for _, document in found}
    pool = by_name["InferencePool", "demo"]["spec"]
    server = by_name["Deployment", "demo"]["spec"]
    labels = server["template"]["metadata"]["labels"]
    assert pool["selector"]["matchLabels"].items() <= labels.items()
    assert server["selector"]["matchLabels"].items() <= labels.items()
    ports = {port["containerPort"] for ports in every(server, "ports") for port in ports}
    assert {port["number"] for port in pool["targetPorts"]} == ports
    picker = pool["endpointPickerRef"]
    service = by_name["Service", picker["name"]]["spec"]
    assert picker["port"]["number"] in {port["port"] for port in service["ports"]}
    config = yaml.safe_load(by_name["ConfigMap", "demo-picker"]["data"]["picker.yaml"])
    plugins = {plugin["type"]: plugin.get("parameters", {}) for plugin in config["plugins"]}
    used = {plugin["pluginRef"] for profile in config["schedulingProfiles"] for plugin in profile["plugins"]}
    assert used <= set(plugins)
    (engine,) = plugins["core-metrics-extractor"]["engineConfigs"]
    assert engine["name"] == labels["llm-d.ai/engine-type"]
    metrics = urllib.request.urlopen(url + plugins["metrics-data-source"]["path"]).read().decode()
    for name, metric in engine.items():
        assert name == "name" or f"# TYPE {metric} gauge" in metrics, metric
    backends = {backend["name"] for backends in every(by_name["HTTPRoute", "demo"], "backendRefs") for backend in backends}
    assert backends == {"demo"}


def check_ray(found: list[tuple[str, dict]]) -> None:
    """Checks that the application's arguments are those of `mlxcel.ray.app`."""
    (service,) = [document for _, document in found if document["kind"] == "RayService"]
    (application,) = yaml.safe_load(service["spec"]["serveConfigV2"])["applications"]
    functions = {
        node.name: {one.arg for one in node.args.args + node.args.kwonlyargs}
        for node in ast.parse(APPLICATION.read_text()).body
        if isinstance(node, ast.FunctionDef)
    }
    assert application["import_path"] == "mlxcel.ray:build" and "build" in functions
    assert set(application["args"]) <= functions["app"]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--program", required=True)
    arguments = parser.parse_args()
    found = documents()
    check_schemas(found)
    check_servers(found, arguments.url, arguments.program)
    check_pool(found, arguments.url)
    check_ray(found)
    print(f"{len(found)} documents are right")


sys.exit(main())
