"""Makes the Python SDK's protobuf code from proto/, or checks that what is committed is current.

    python scripts/gen-python.py            writes sdks/python/src/holdfast_harness/_gen
    python scripts/gen-python.py --check    says what differs and exits 1; writes nothing

It needs the grpcio-tools of sdks/python/requirements-dev.txt: another version makes other code. The code is moved under the SDK's
own package, so that installing the SDK puts no `agentsessions` and no `holdfast` on an author's import path.
"""

from __future__ import annotations

import re
import sys
import tempfile
from importlib import resources
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROTO = ROOT / "proto"
GENERATED = ROOT / "sdks" / "python" / "src" / "holdfast_harness" / "_gen"
PACKAGE = "holdfast_harness._gen"

# What a harness has to do with. session.proto and the services on top of it are a client's.
SOURCES = (
    "agentsessions/v1/common.proto",
    "agentsessions/v1/harness.proto",
    "holdfast/v1/harness_wire.proto",
    "holdfast/v1/harness_host.proto",
)

IMPORT = re.compile(r"^from (agentsessions|holdfast)\.", re.MULTILINE)
MODULE_NAME = re.compile(r"(BuildTopDescriptorsAndMessages\(DESCRIPTOR, ')(agentsessions|holdfast)\.")


def generate(folder: Path) -> dict[str, str]:
    """The files, by their path below the generated package."""
    from grpc_tools import protoc

    well_known = resources.files("grpc_tools") / "_proto"
    arguments = ["protoc", f"-I{PROTO}", f"-I{well_known}", f"--python_out={folder}", f"--pyi_out={folder}", *SOURCES]
    if protoc.main(arguments) != 0:
        raise SystemExit("gen-python: protoc failed")
    files = {str(path.relative_to(folder)): _moved(path.read_text()) for path in sorted(folder.rglob("*_pb2.py*"))}
    packages = {str(parent) for name in files for parent in Path(name).parents}
    return files | {str(Path(package) / "__init__.py"): "" for package in packages}


def _moved(code: str) -> str:
    code = IMPORT.sub(rf"from {PACKAGE}.\1.", code)
    return MODULE_NAME.sub(rf"\g<1>{PACKAGE}.\2.", code)


def differences(fresh: dict[str, str]) -> list[str]:
    """How the committed files differ from `fresh`; nothing when they are current."""
    found = {str(path.relative_to(GENERATED)): path.read_text() for path in GENERATED.rglob("*.py*") if path.suffix in (".py", ".pyi")}
    missing = [f"{name}: missing" for name in fresh if name not in found]
    extra = [f"{name}: no proto file makes it" for name in found if name not in fresh]
    stale = [f"{name}: not current" for name in fresh if name in found and found[name] != fresh[name]]
    return sorted(missing + extra + stale)


def write(fresh: dict[str, str]) -> None:
    for path in GENERATED.rglob("*.py*"):
        if path.suffix in (".py", ".pyi"):
            path.unlink()
    for name, code in fresh.items():
        target = GENERATED / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(code)


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print("usage: gen-python.py [--check]", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="holdfast-gen-") as folder:
        fresh = generate(Path(folder))
    if not arguments:
        write(fresh)
        return 0
    found = differences(fresh)
    for line in found:
        print(f"{GENERATED.relative_to(ROOT)}/{line}", file=sys.stderr)
    if found:
        print("run scripts/gen-python.py and commit what it makes", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
