"""Checks and tests the Python SDK in a virtual environment of its own, which it makes where it is missing or out of date.

    python3 tools/check.py [--report FILE]    everything; FILE gets {"passed": n, "failed": n, "skipped": n}
    python3 tools/check.py --prepare          the environment alone; prints the path of its Python

It needs Python 3.10 or later with venv, and nothing else: this file imports the standard library only.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import subprocess
import sys
import tempfile
import venv
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SDK = Path(__file__).resolve().parent.parent
ROOT = SDK.parent.parent
ENVIRONMENT = SDK / ".venv"
PYTHON = ENVIRONMENT / "bin" / "python"
STAMP = ENVIRONMENT / "holdfast-stamp"
REQUIREMENTS = SDK / "requirements-dev.txt"

# grpcio-tools, pinned for what it generates, has no wheels for later ones.
GENERATES = sys.version_info < (3, 14)

Counts = dict[str, int]


def prepare() -> None:
    """Makes the environment, unless there is one for these requirements and this Python."""
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes() + sys.version.encode()).hexdigest()
    with locked():
        if STAMP.exists() and STAMP.read_text() == wanted:
            return
        venv.create(ENVIRONMENT, clear=True, with_pip=True)
        pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
        subprocess.run([*pip, "--only-binary", ":all:", "-r", str(REQUIREMENTS)], check=True, stdout=sys.stderr)
        STAMP.write_text(wanted)


@contextmanager
def locked() -> Iterator[None]:
    """One process at a time makes the environment."""
    with (SDK / ".venv.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def checks() -> Iterator[tuple[str, list[str]]]:
    examples = [str(path) for path in sorted((ROOT / "examples" / "python").glob("*.py"))]
    support = [str(path) for path in sorted((ROOT / "e2e" / "support").glob("*.py"))]
    generator = str(ROOT / "scripts" / "gen-python.py")
    code = ["src", "tests", "tools", generator, *examples, *support]
    if GENERATES:
        yield "generated code", [generator, "--check"]
    yield "lint", ["-m", "ruff", "check", "--config", "pyproject.toml", "--output-format", "concise", *code]
    yield "format", ["-m", "ruff", "format", "--config", "pyproject.toml", "--check", *code]
    yield "types", ["-m", "mypy", "src/holdfast_harness", "tests", "tools/check.py", generator, *examples, *support]


def run_checks() -> Counts:
    counts = {"passed": 0, "failed": 0, "skipped": 0 if GENERATES else 1}
    for name, arguments in checks():
        done = subprocess.run([str(PYTHON), *arguments], cwd=SDK, capture_output=True, text=True)
        counts["passed" if done.returncode == 0 else "failed"] += 1
        print(f"{'ok  ' if done.returncode == 0 else 'FAIL'} {name}")
        if done.returncode != 0:
            print(done.stdout + done.stderr)
    return counts


def run_tests() -> Counts:
    with tempfile.TemporaryDirectory(prefix="holdfast-python-") as folder:
        report = Path(folder) / "junit.xml"
        done = subprocess.run([str(PYTHON), "-m", "pytest", f"--junitxml={report}"], cwd=SDK)
        return counts_of(report.read_text() if report.exists() else "", done.returncode)


def counts_of(report: str, exit_code: int) -> Counts:
    """What pytest's report says; a run that ended badly or found no test has a failure, whatever the report says."""
    failed = skipped = total = 0
    for suite in ET.fromstring(report).iter("testsuite") if report else ():
        total += int(suite.get("tests", "0"))
        failed += int(suite.get("failures", "0")) + int(suite.get("errors", "0"))
        skipped += int(suite.get("skipped", "0"))
    passed = max(total - failed - skipped, 0)
    is_bad = exit_code != 0 or passed + failed == 0
    return {"passed": passed, "failed": max(failed, 1) if is_bad else failed, "skipped": skipped}


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks and tests the Python SDK.")
    parser.add_argument("--report", type=Path)
    parser.add_argument("--prepare", action="store_true")
    options = parser.parse_args()
    prepare()
    if options.prepare:
        print(PYTHON)
        return 0
    parts = [run_checks(), run_tests()]
    total = {name: sum(part[name] for part in parts) for name in ("passed", "failed", "skipped")}
    if options.report is not None:
        options.report.write_text(json.dumps(total))
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    return 0 if total["failed"] == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
