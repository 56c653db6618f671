"""The package as it is installed, and the tally of its checks."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

SDK = Path(__file__).parents[1]


def check_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check", SDK / "tools" / "check.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=SDK, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


class TestTheWheel:
    def test_holds_the_typed_package_and_nothing_else(self, wheel: Path) -> None:
        names = zipfile.ZipFile(wheel).namelist()
        assert {name.split("/")[0] for name in names} == {"holdfast_harness", "holdfast_harness-0.1.0.dist-info"}
        assert "holdfast_harness/py.typed" in names
        assert "holdfast_harness/_gen/holdfast/v1/harness_wire_pb2.pyi" in names

    def test_works_where_nothing_of_the_repository_is(self, wheel: Path, tmp_path: Path) -> None:
        zipfile.ZipFile(wheel).extractall(tmp_path)
        code = "import sys; sys.path.insert(0, sys.argv[1]); import holdfast_harness as h; print(h.__file__, len(h.__all__))"
        done = subprocess.run([sys.executable, "-I", "-c", code, str(tmp_path)], check=True, capture_output=True, text=True)
        assert done.stdout.startswith(str(tmp_path))

    def test_takes_no_name_but_its_own_on_the_import_path(self, wheel: Path, tmp_path: Path) -> None:
        zipfile.ZipFile(wheel).extractall(tmp_path)
        code = (
            "import sys; sys.path.insert(0, sys.argv[1]); import holdfast_harness; print({'holdfast', 'agentsessions'} & set(sys.modules))"
        )
        done = subprocess.run([sys.executable, "-I", "-c", code, str(tmp_path)], check=True, capture_output=True, text=True)
        assert done.stdout.strip() == "set()"


class TestTheTallyOfTheChecks:
    SUITE = '<testsuites><testsuite tests="7" failures="1" errors="1" skipped="2"/></testsuites>'

    @pytest.mark.parametrize(
        ("report", "exit_code", "counts"),
        [
            (SUITE, 1, (3, 2, 2)),
            ('<testsuites><testsuite tests="3" failures="0" errors="0" skipped="0"/></testsuites>', 0, (3, 0, 0)),
            ('<testsuites><testsuite tests="3" failures="0" errors="0" skipped="0"/></testsuites>', 3, (3, 1, 0)),
            ('<testsuites><testsuite tests="0" failures="0" errors="0" skipped="0"/></testsuites>', 0, (0, 1, 0)),
            ("", 0, (0, 1, 0)),
        ],
    )
    def test_a_run_that_is_bad_or_empty_has_a_failure(self, report: str, exit_code: int, counts: tuple[int, int, int]) -> None:
        found = check_tool().counts_of(report, exit_code)
        assert (found["passed"], found["failed"], found["skipped"]) == counts


class TestTheGeneratedCode:
    def test_is_found_stale_where_a_file_differs_is_missing_or_too_much(self) -> None:
        path = SDK.parents[1] / "scripts" / "gen-python.py"
        spec = importlib.util.spec_from_file_location("gen_python", path)
        assert spec is not None and spec.loader is not None
        generator = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(generator)
        root = generator.GENERATED
        fresh = {str(file.relative_to(root)): file.read_text() for file in root.rglob("*.py*") if file.suffix in (".py", ".pyi")}
        assert generator.differences(fresh) == []
        changed = {**fresh, "__init__.py": "x", "new.py": ""}
        del changed["holdfast/__init__.py"]
        assert generator.differences(changed) == [
            "__init__.py: not current",
            "holdfast/__init__.py: no proto file makes it",
            "new.py: missing",
        ]
