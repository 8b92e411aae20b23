"""Tests find the tools that come with Python packages themselves: a newcomer's PATH does not have them."""

import re
from importlib.metadata import distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_CALLED = re.compile(r"""(?:run|Popen|check_output|check_call|call)\(\s*\[\s*["']([\w.+-]+)["']""")
_OF_THE_SYSTEM = frozenset(("python3",))


def installed_commands() -> frozenset[str]:
    """The commands that Python packages of this environment install."""
    scripts = (entry for package in distributions() for entry in package.entry_points)
    return frozenset(entry.name for entry in scripts if entry.group == "console_scripts") | {"nvcc", "nvdisasm"}


def test_no_test_calls_a_package_s_command_by_its_bare_name() -> None:
    files = sorted((ROOT / "tests").rglob("*.py"))
    called = {
        (path.relative_to(ROOT), name) for path in files for name in _CALLED.findall(path.read_text(encoding="utf-8"))
    }
    assert {name for _, name in called} & {"cmake", "git"}, "the search finds calls"
    wrong = sorted((str(path), name) for path, name in called if name in installed_commands() - _OF_THE_SYSTEM)
    assert not wrong, "ask the package for its command, or use the one beside sys.executable"
