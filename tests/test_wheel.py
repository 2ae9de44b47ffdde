"""The wheel as its users get it: built from this folder, installed into an environment with nothing else, serving."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.gateway_process import GatewayProcess
from tests.peers import LegacyUpstream, ModernUpstream

ROOT = Path(__file__).parent.parent
PIP = ("-m", "pip", "--quiet", "--disable-pip-version-check")


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, *PIP, "wheel", "--no-deps", "--wheel-dir", folder, ROOT, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Path:
    """The folder of the commands of a new environment with the wheel and what it depends on, and nothing else."""
    home = wheel.parent / "env"
    run(sys.executable, "-m", "venv", home, cwd=wheel.parent)
    scripts = home / ("Scripts" if sys.platform == "win32" else "bin")
    pinned = ROOT / "requirements" / "main.txt"
    run(scripts / "python", *PIP, "install", "--constraint", pinned, wheel, cwd=wheel.parent)
    run(scripts / "python", *PIP, "check", cwd=wheel.parent)
    return scripts


@pytest.mark.slow
def test_the_wheel_holds_the_two_packages_all_of_them_and_nothing_else(wheel: Path) -> None:
    inside = {Path(name) for name in zipfile.ZipFile(wheel).namelist()}
    code = {
        path.relative_to(ROOT)
        for package in ("gateway", "policies")
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {path for path in inside if not path.parts[0].endswith(".dist-info")} == code
    assert Path("gateway/py.typed") in code
    assert Path("policies/py.typed") in code


@pytest.mark.slow
async def test_installed_in_a_clean_environment_it_serves_both_eras_without_the_repository(
    installed: Path, tmp_path: Path
) -> None:
    command = installed / "mcp-front-door"
    where = run(installed / "python", "-I", "-c", "import gateway; print(gateway.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(installed.parent)
    assert run(command, "--version", cwd=tmp_path).startswith("mcp-front-door ")
    demo = subprocess.run([command, "demo"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (demo.returncode, demo.stderr) == (2, 'demo needs the extra: pip install "mcp-front-door[demo]"\n')
    for upstream in (LegacyUpstream(), ModernUpstream()):
        async with upstream:
            arguments = ["serve", "--upstream", upstream.url, "--listen", "127.0.0.1:0"]
            gateway = await GatewayProcess.start(arguments, tmp_path, {"PYTHONPATH": ""}, command=[str(command)])
            try:
                assert (await gateway.front().modern("tools/list")).result["tools"][0]["name"] == "echo"
                session = await gateway.front().initialize()
                assert '"name": "echo"' in (await session.request("tools/call", {"name": "echo"})).said
            finally:
                await gateway.stop()
