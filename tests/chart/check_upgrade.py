"""An upgrade keeps the secrets that the installation made: a new sealing key would end every session of a client.

The chart asks the cluster for them. No cluster runs here; an HTTP server gives the few answers of the Kubernetes API
that helm wants: what kinds there are, and the Secrets.
"""

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from tests.chart.rendering import CHART, NAMESPACE, RELEASE, VALUES, Json, helm, rendered

SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets/"
OWNED = {"meta.helm.sh/release-name": RELEASE, "meta.helm.sh/release-namespace": NAMESPACE}
"""What helm writes into what it installs."""


def about(objects: tuple[Json, ...]) -> Json:
    """What the API says of itself: that it has the kinds of these objects."""
    kinds: dict[str, set[str]] = {}
    for one in objects:
        kinds.setdefault(one["apiVersion"], set()).add(one["kind"])
    groups = [version.partition("/") for version in kinds if "/" in version]
    pages: Json = {
        "/version": {"major": "1", "minor": "33", "gitVersion": "v1.33.0"},
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/apis": {
            "kind": "APIGroupList",
            "groups": [
                {"name": group, "versions": [{"groupVersion": f"{group}/{version}", "version": version}]}
                for group, _, version in groups
            ],
        },
    }
    for version, names in kinds.items():
        resources = [
            {
                "name": f"{name.lower()}s",
                "singularName": name.lower(),
                "namespaced": True,
                "kind": name,
                "verbs": ["get"],
            }
            for name in sorted(names)
        ]
        page = f"/apis/{version}" if "/" in version else f"/api/{version}"
        pages[page] = {"kind": "APIResourceList", "groupVersion": version, "resources": resources}
    return pages


@contextmanager
def cluster(objects: tuple[Json, ...]) -> Iterator[str]:
    """The URL of an API that has these Secrets and no other."""
    has = about(rendered("bundled"))
    for one in objects:
        if one["kind"] == "Secret":
            metadata = {**one["metadata"], "namespace": NAMESPACE, "annotations": OWNED}
            has[SECRETS + metadata["name"]] = {**one, "metadata": metadata}

    class Api(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = has.get(self.path.partition("?")[0])
            missing = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
            body = json.dumps(found or missing).encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Api) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def secrets(objects: tuple[Json, ...] | list[Json]) -> dict[str, Json]:
    return {one["metadata"]["name"]: one["data"] for one in objects if one["kind"] == "Secret"}


def rendered_at(url: str, folder: Path) -> dict[str, Json]:
    """The Secrets of the matrix's `bundled`, rendered by a helm that asks the cluster at `url`."""
    file = folder / "kubeconfig"
    clusters = [{"name": "here", "cluster": {"server": url}}]
    contexts = [{"name": "here", "context": {"cluster": "here", "user": "me"}}]
    users = [{"name": "me", "user": {}}]
    file.write_text(
        yaml.safe_dump({"clusters": clusters, "contexts": contexts, "users": users, "current-context": "here"})
    )
    env = os.environ | {"KUBECONFIG": str(file), "HOME": str(folder), "NO_PROXY": "127.0.0.1"}
    options = (
        "--namespace",
        NAMESPACE,
        "--values",
        VALUES["bundled"],
        "--dry-run=server",
        "--disable-openapi-validation",
    )
    done = helm("template", RELEASE, CHART, *options, env=env)
    assert done.returncode == 0, done.stderr
    return secrets([one for one in yaml.safe_load_all(done.stdout) if one])


def test_secrets_of_the_installation_are_kept(tmp_path: Path) -> None:
    installed = rendered("bundled")
    with cluster(installed) as url:
        kept = rendered_at(url, tmp_path)
    assert len(kept) == 3
    assert kept == secrets(installed)


@pytest.mark.parametrize(
    "gone", ["door-mcp-front-door-keys", "door-mcp-front-door-admin", "door-mcp-front-door-valkey"]
)
def test_one_that_is_gone_is_made_anew_and_the_others_are_kept(gone: str, tmp_path: Path) -> None:
    installed = rendered("bundled")
    with cluster(tuple(one for one in installed if one["metadata"]["name"] != gone)) as url:
        made = rendered_at(url, tmp_path)
    before = secrets(installed)
    assert {name for name in before if made[name] != before[name]} == {gone}
