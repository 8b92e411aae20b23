"""The command line on a terminal: colour, completion, and words that fit who calls."""

import io
import shutil
import subprocess
from pathlib import Path

import pytest

import tile2cu
import tile2cu_runtime
from tile2cu.cli import VERBS, main
from tile2cu.cli.colour import coloured

DIAGNOSTIC = """\
error[T2C-F006]: no size
  --> a.py:3:5
   |
3 | error[T2C-F006]: text of the file
   |   ^^^^
note: a note
  = help: a way out"""
OPEN = """\
import tilelang.language as T


def scale(N, block):
    @T.prim_func
    def body(A: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            for i in T.Parallel(block):
                A[bx * block + i] = 1.0

    return body
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def test_a_terminal_gets_colour() -> None:
    said = coloured(DIAGNOSTIC, Terminal())
    assert said.startswith("\x1b[1;31merror[T2C-F006]\x1b[0m\x1b[1m: no size\x1b[0m\n")
    assert "\n3 | error[T2C-F006]: text of the file\n" in said
    assert "|   \x1b[1;31m^^^^\x1b[0m\n\x1b[1;36mnote\x1b[0m: a note\n  = \x1b[1;36mhelp\x1b[0m: a way out" in said


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colour_is_turned_off(variable: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, value)
    assert coloured(DIAGNOSTIC, Terminal()) == DIAGNOSTIC


def test_a_file_gets_none() -> None:
    assert coloured(DIAGNOSTIC, io.StringIO()) == DIAGNOSTIC


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("tile2cu exp", "explain"),
        ("tile2cu emit --for", "--format"),
        ("tile2cu emit --format s", "sarif"),
        ("tile2cu k.py --target cuda:sm_9", "cuda:sm_90a"),
        ("tile2cu run --device p", "ptx"),
        ("tile2cu build --list", "--list-outputs"),
    ],
)
def test_bash_completes(words: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not shutil.which("bash"):
        pytest.skip("needs bash")
    assert main(["completion", "bash"]) == 0
    count = len(words.split()) - 1
    script = f"{capsys.readouterr().out}\nCOMP_WORDS=({words}); COMP_CWORD={count}; _tile2cu; echo ${{COMPREPLY[@]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.split() == [expected] and not done.stderr


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_know_every_verb(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    printed = capsys.readouterr().out
    assert all(verb in printed for verb in VERBS) and "reference" in printed


def test_one_class_catches_all_errors() -> None:
    assert issubclass(tile2cu.Tile2CuError, tile2cu.Error)
    assert issubclass(tile2cu_runtime.Tile2CuRuntimeError, tile2cu.Error)
    assert tile2cu_runtime.Error is tile2cu.Error


def test_options_are_for_the_command_line_and_arguments_for_calls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "scale.py"
    path.write_text(OPEN, encoding="utf-8")
    assert main([str(path)]) == 1
    assert "= help: bind it with `-D block=...`, a default, or a call in the file" in capsys.readouterr().err
    for function in (tile2cu.emit, tile2cu.load):
        with pytest.raises(tile2cu.Error) as raised:
            function(path)
        assert raised.value.help == "pass it as `block=...`, a default, or a call in the file"
    with pytest.raises(tile2cu.Error, match="blok: no parameter or size has this name"):
        tile2cu.emit(path, blok=3, block=128)


def test_several_kernels_are_picked_in_the_words_of_the_caller(tmp_path: Path) -> None:
    path = tmp_path / "two.py"
    path.write_text(OPEN.replace("block)", "block=128)", 1) + OPEN.replace("scale(N, block)", "other(N, block=128)"))
    with pytest.raises(tile2cu.Error) as raised:
        tile2cu.load(path)
    assert raised.value.help == 'pick one with kernel="NAME"'
