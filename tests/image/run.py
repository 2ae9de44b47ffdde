"""Builds the image of `Containerfile` with buildah, prints how large it is, and has it serve as a pod would run it.

    python -m tests.image.run [--base IMAGE] [--folder FOLDER] [--keep FILE]

Without --base the base is a Debian of debootstrap's, so that no registry of images is needed. Everything happens below
FOLDER, which is removed in the end; --keep writes the image there as an archive for `podman load` or `docker load`.

The image runs in its own root, which is mounted read-only and has no writable folder at all, as the user that it names,
with no capability and no other environment than its own: a mount namespace and chroot, which need root but no network
of their own and no container runtime.
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.gateway_process import GatewayProcess
from tests.peers import ModernUpstream
from tests.ports import free_port
from tests.raw_front import Front

ROOT = Path(__file__).parents[2]
MOST_BYTES = 100_000_000
IMAGE = "localhost/mcp-front-door"
CA = Path("/etc/ssl/certs/ca-certificates.crt")
DEBIAN = "bookworm"
# What Debian's own small images leave out as well.
NOT_NEEDED = (
    "var/cache/apt",
    "var/lib/apt/lists",
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "usr/share/info",
)
MOUNT = """
set -eu
root=$1 config=$2 user=$3; shift 3
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount --bind "$config" "$root/etc/mcp-front-door"
mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
exec chroot --userspec="$user" "$root" /usr/bin/env -i "$@"
"""


class Builder:
    """buildah with a store of its own below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._command = ["buildah", "--root", str(folder / "store"), "--runroot", str(folder / "run")]
        self._command += ["--storage-driver", "vfs"]
        self._env = os.environ | {"BUILDAH_ISOLATION": "chroot"}

    def __call__(self, *arguments: str | Path, shown: bool = False) -> str:
        command = [*self._command, *map(str, arguments)]
        out = None if shown else subprocess.PIPE
        done = subprocess.run(command, stdout=out, text=True, check=False, env=self._env)
        if done.returncode != 0:
            sys.exit(f"make image: buildah {arguments[0]} failed with exit code {done.returncode}")
        return (done.stdout or "").strip()

    def base(self) -> str:
        """An image of a small Debian with Python."""
        tree = self.folder / "base"
        include = "python3,python3-venv,ca-certificates"
        command = ["debootstrap", "--variant=minbase", f"--include={include}", DEBIAN, str(tree)]
        if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode != 0:
            sys.exit(f"make image: debootstrap failed; {tree}/debootstrap/debootstrap.log says why")
        for place in NOT_NEEDED:
            shutil.rmtree(tree / place, ignore_errors=True)
        container = self("from", "scratch")
        self("add", "--quiet", container, tree, "/")
        self("commit", "--quiet", "--rm", container, "localhost/base")
        shutil.rmtree(tree)
        return "localhost/base"

    def build(self, base: str) -> None:
        trusted = ("--secret", f"id=ca,src={CA}") if CA.exists() else ()
        options = ("--format", "docker", "--build-arg", f"BASE={base}", "--tag", IMAGE, *trusted)
        self("build", *options, "--file", ROOT / "Containerfile", ROOT, shown=True)

    def compressed_bytes(self) -> int:
        """What a registry would hold: all layers, those of the base among them, with gzip."""
        pushed = self.folder / "pushed"
        self("push", "--quiet", IMAGE, f"oci:{pushed}:latest")
        (manifest,) = json.loads((pushed / "index.json").read_text())["manifests"]
        layers = json.loads((pushed / "blobs" / manifest["digest"].replace(":", "/")).read_text())["layers"]
        return sum(layer["size"] for layer in layers)

    def described(self) -> dict[str, Any]:
        """What the image says of how it is run."""
        found: dict[str, Any] = json.loads(self("inspect", "--type", "image", IMAGE))["Docker"]["config"]
        return found


async def serve(root: Path, told: dict[str, Any], folder: Path) -> None:
    """Runs the image before a server of 2026-07-28, and asks it things in both eras."""
    ports = {name: free_port() for name in ("listen", "admin")}
    config = folder / "config"
    config.mkdir()
    (root / "etc" / "mcp-front-door").mkdir()  # a container runtime makes the places of its mounts
    async with ModernUpstream() as upstream:
        settings = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
        routes = [{"path": "/mcp", "upstream": "here"}]
        whole = settings | {"upstreams": {"here": {"url": upstream.url}}, "routes": routes}
        (config / "gateway.yaml").write_text(yaml.safe_dump(whole))
        command = ["unshare", "--mount", "sh", "-c", MOUNT, "mount", str(root), str(config), told["User"]]
        environment = [*told["Env"], f"HEALTH_URL=http://127.0.0.1:{ports['admin']}/healthz"]
        gateway = await GatewayProcess.start([*environment, *told["Entrypoint"], *told["Cmd"]], folder, command=command)
        try:
            status = Path(f"/proc/{gateway.process.pid}/status").read_text().splitlines()
            seen = dict(line.split(":\t", 1) for line in status if ":\t" in line)
            check(set(seen["Uid"].split()) == {told["User"].partition(":")[0]}, "it runs as the user that it names")
            check(int(seen["CapEff"], 16) == 0, "it has no capability")
            listed = await gateway.front().modern("tools/list")
            check(listed.result["tools"][0]["name"] == "echo", "it answers a client of 2026-07-28")
            session = await gateway.front().initialize()
            called = await session.request("tools/call", {"name": "echo"})
            check('"name": "echo"' in called.said, "it answers a client with sessions")
            ready = await Front(gateway.admin_url + "/readyz").send("GET", {})
            check(ready.status == 200, "it is ready")
            writing = ["python", "-c", "import tempfile; tempfile.mkstemp()"]
            check(await status_of(*command, *environment, *writing) != 0, "it can write nothing, not even below /tmp")
            health = [*command, *environment, *told["Healthcheck"]["Test"][1:]]
            check(await status_of(*health) == 0, "its health check finds it well")
        finally:
            await gateway.stop()
    check(await status_of(*health) != 0, "its health check finds one that has ended ill")


async def status_of(*command: str) -> int:
    """The exit code of a command, whose complaints are not of interest."""
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.DEVNULL)
    return await process.wait()


passed = 0


def check(holds: bool, sentence: str) -> None:
    global passed  # noqa: PLW0603
    if not holds:
        sys.exit(f"make image: this does not hold: {sentence}")
    passed += 1
    print(f"  {sentence}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="make image", description="builds the image and has it answer")
    parser.add_argument("--base", default="", help="the image to build on; without, a Debian of debootstrap's")
    parser.add_argument("--folder", type=Path, default=ROOT / "out" / "image", help="where to work; it is removed")
    parser.add_argument("--keep", type=Path, help="write the image to this archive")
    given = parser.parse_args()
    for tool in ("buildah", "unshare", *(() if given.base else ("debootstrap",))):
        if shutil.which(tool) is None:
            sys.exit(f"make image: {tool} is missing; on Debian: apt-get install buildah debootstrap util-linux")
    if os.geteuid() != 0:
        sys.exit("make image: needs root, to make a base and to run the image in a root of its own")
    folder = given.folder.resolve()
    if folder.exists():
        sys.exit(f"make image: {folder} exists, and would be removed in the end; remove it, or name another: --folder")
    folder.mkdir(parents=True)
    builder = Builder(folder)
    try:
        builder.build(given.base or builder.base())
        size = builder.compressed_bytes()
        print(f"compressed: {size / 1e6:.1f} MB of {MOST_BYTES / 1e6:.0f}")
        check(size <= MOST_BYTES, "it is small enough")
        told = builder.described()
        check(told["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0", "its labels say what it is")
        container = builder("from", IMAGE)
        asyncio.run(serve(Path(builder("mount", container)), told, folder))
        if given.keep is not None:
            builder("push", "--quiet", IMAGE, f"docker-archive:{given.keep.resolve()}:mcp-front-door:latest")
        builder("rm", "--all")
    finally:
        shutil.rmtree(folder)
    print(f"{passed} passed, 0 failed")


if __name__ == "__main__":
    main()
