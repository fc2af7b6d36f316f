"""Fixtures: a server of the program, and a copy of the example as a git repository.

The tests use the installed wheel. If there is none, they use the sources of the package, and the program that
TESTWRIGHT_PROGRAM names.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"

if importlib.util.find_spec("testwright") is None:
    # The tests start other processes, too.
    os.environ["PYTHONPATH"] = str(ROOT / "python")
    sys.path.insert(0, str(ROOT / "python"))
if named := os.environ.get("TESTWRIGHT_PROGRAM"):
    os.environ["PATH"] = f"{Path(named).resolve().parent}{os.pathsep}{os.environ['PATH']}"

import testwright  # noqa: E402

PROGRAM = Path(testwright.find_program())
os.environ["PATH"] = f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"


@pytest.fixture(scope="session")
def issue() -> Path:
    return EXAMPLES / "issue.md"


@pytest.fixture(scope="session")
def repository(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("code").resolve() / "slugs"
    shutil.copytree(EXAMPLES / "slugs", folder)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message=slugs"]):
        subprocess.run([*git, *words], cwd=folder, check=True)
    return folder


@pytest.fixture(scope="session")
def candidates(repository, tmp_path_factory) -> dict:
    """Paths of two code patches: a right one and a wrong one."""
    slug = repository / "src/slugs/slug.py"
    code = slug.read_text()
    folder = tmp_path_factory.mktemp("patches")
    paths = {}
    for name, end in (("right", '.rstrip("-")'), ("wrong", ".lower()")):
        assert code.count("return slug[:max_length]") == 1
        slug.write_text(code.replace("return slug[:max_length]", f"return slug[:max_length]{end}"))
        diff = subprocess.run(["git", "diff"], cwd=repository, check=True, capture_output=True, text=True).stdout
        paths[name] = folder / f"{name}.patch"
        paths[name].write_text(diff)
    slug.write_text(code)
    return paths


@pytest.fixture(scope="session")
def server(repository, tmp_path_factory):
    """Address of `testwright serve` with the approach that needs no model."""
    command = [PROGRAM, "serve", "--listen", "127.0.0.1:0", "--data", tmp_path_factory.mktemp("data")]
    command += ["--allow-repository", repository]
    environment = {**os.environ, "TESTWRIGHT_APPROACH": "snippet"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as child:
        lines = []
        for line in child.stderr:
            lines.append(line)
            if found := re.search(r"listening on (http://\S+)", line):
                break
        else:
            raise RuntimeError(f"the server exited: {''.join(lines)}")
        # The server must not block on a full pipe.
        threading.Thread(target=lambda: [None for _ in child.stderr], daemon=True).start()
        yield found.group(1)
        child.terminate()
        child.wait(timeout=30)
