"""One file an error: a kernel that is wrong, then the diagnostic that it gets, as comments at its foot.

`# tile2cu: -D name=value --kernel name --target name` in the first line gives the command line's options.
`pytest tests/errors --update-errors` writes the diagnostics of today into the files; read the difference.
"""

import shlex
from pathlib import Path

import pytest

from tile2cu.api import emit_text
from tile2cu.core.codes import CODES
from tile2cu.core.errors import Tile2CuError
from tile2cu.targets import find

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("[a-z][0-9][0-9][0-9]_*.py"))
MARK = "# ---- expected ----"


def diagnostic(path: Path) -> str:
    """What tile2cu prints for a file; the empty string if it accepts it without a warning."""
    text = path.read_text(encoding="utf-8")
    kernel, bindings, target = options(text.splitlines()[0])
    try:
        emitted = emit_text(Path(path.name), kernel=kernel, target=find(target), bindings=bindings, text=text)
    except Tile2CuError as error:
        return error.render()
    return "\n\n".join(warning.render() for one in emitted for warning in one.warnings)


def options(line: str) -> tuple[str | None, dict[str, object], str]:
    """The kernel, the bindings and the target that the first line of a file asks for."""
    kernel, bindings, target = None, {}, "cuda:sm_80"
    words = iter(shlex.split(line.removeprefix("# tile2cu:")) if line.startswith("# tile2cu:") else ())
    for word in words:
        if word == "--kernel":
            kernel = next(words)
        elif word == "--target":
            target = next(words)
        elif word == "-D":
            name, _, value = next(words).partition("=")
            bindings[name] = int(value) if value.isdigit() else value
    return kernel, bindings, target


def expected(path: Path) -> str:
    """The diagnostic at the foot of a file."""
    _, found, foot = path.read_text(encoding="utf-8").partition(MARK + "\n")
    assert found, f"{path.name} has no line {MARK!r}"
    return "\n".join(line[2:] if line.startswith("# ") else line[1:] for line in foot.splitlines())


def write_expected(path: Path, text: str) -> None:
    head = path.read_text(encoding="utf-8").partition(MARK + "\n")[0]
    foot = "".join(f"# {line}".rstrip() + "\n" for line in text.splitlines())
    path.write_text(f"{head}{MARK}\n{foot}", encoding="utf-8")


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_diagnostic(path: Path, request: pytest.FixtureRequest) -> None:
    found = diagnostic(path)
    if request.config.getoption("--update-errors", default=False):
        write_expected(path, found)
    assert found, f"{path.name} is accepted"
    assert [line.rstrip() for line in found.splitlines()] == [line.rstrip() for line in expected(path).splitlines()]


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_file_is_named_for_its_code(path: Path) -> None:
    severity = "warning" if path.stem[0] == "w" else "error"
    assert expected(path).startswith(f"{severity}[T2C-{path.stem[:4].upper()}]")


def test_every_code_of_front_end_and_rules_has_a_file() -> None:
    wanted = {code for code in CODES if code[4] in "FLPSW"}
    assert wanted == {f"T2C-{path.stem[:4].upper()}" for path in FILES if path.stem[0] in "flpsw"}
