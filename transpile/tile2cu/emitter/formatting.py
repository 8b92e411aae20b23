"""The one place that runs clang-format."""

import subprocess
from typing import Any

from tile2cu.core.errors import Tile2CuError

# The format of emitted text; the wheel that reads it is pinned, since its bytes depend on both.
FORMAT = (
    "{BasedOnStyle: Google, Standard: c++17, ColumnLimit: 120, AllowShortFunctionsOnASingleLine: All, "
    "AllowShortLambdasOnASingleLine: All, AllowShortLoopsOnASingleLine: true, "
    "AllowShortIfStatementsOnASingleLine: WithoutElse, DerivePointerAlignment: false, PointerAlignment: Left, "
    "AlwaysBreakTemplateDeclarations: MultiLine, ReflowComments: Never, SortIncludes: false, "
    "IncludeBlocks: Preserve, MaxEmptyLinesToKeep: 1, AlignTrailingComments: true}"
)


def formatted(texts: dict[str, str], style: str = FORMAT) -> dict[str, str]:
    """Texts by file name through the pinned clang-format, one process each, side by side.

    `style` is what its option --style takes. Errors: T2C-E010, T2C-E011.
    """
    command = [clang_format_path(), f"--style={style}"]
    pipes: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    running = {name: subprocess.Popen([*command, f"--assume-filename={name}"], **pipes) for name in texts}
    outputs = {}
    for name, process in running.items():
        out, err = process.communicate(texts[name].encode("ascii", "backslashreplace"))
        if process.returncode:
            raise _failure(err)
        outputs[name] = out.decode("ascii")
    return outputs


def settings(style: str) -> str:
    """Every setting of a style, a line each, as clang-format understands it. Errors: T2C-E010, T2C-E011."""
    done = subprocess.run(
        [clang_format_path(), f"--style={style}", "--assume-filename=kernel.cpp", "--dump-config"],
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise _failure(done.stderr)
    return done.stdout.decode()


def _failure(stderr: bytes) -> Tile2CuError:
    return Tile2CuError("T2C-E010", f"clang-format failed: {stderr.decode(errors='replace').strip()}")


def clang_format_path() -> str:
    """The wheel's own binary: its wrapper script costs another 26 ms."""
    try:
        import clang_format  # type: ignore[import-untyped]
    except ImportError as error:
        raise Tile2CuError(
            "T2C-E011",
            "the clang-format package is missing, and without it the emitted source would differ",
            help="pip install clang-format==23.1.3",
        ) from error
    return str(clang_format.get_executable("clang-format"))
