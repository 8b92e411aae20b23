"""The command line: `tile2cu kernel.py --target cuda:sm_80 -D M=1024 -o out/`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tile2cu.core.errors import Tile2CuError
from tile2cu.version import VERSION

if TYPE_CHECKING:
    from tile2cu.emitter import Emitted

_DEFAULT_TARGET = "cuda:sm_80"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit status: 0 done, 1 a diagnostic, 2 a wrong call."""
    options = _parser().parse_args(arguments)
    try:
        if options.includes:
            print(_includes())
            return 0
        if options.file is None:
            _parser().error("a file is needed: tile2cu kernel.py -o out/")
        return _emit(options)
    except Tile2CuError as error:
        print(error.render(), file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tile2cu",
        description="Transpiles tile-language Python to CUDA C++ that a reviewer can read. The file is never executed.",
    )
    parser.add_argument("file", nargs="?", type=Path, help="the Python file")
    parser.add_argument("-o", "--output", default=".", metavar="DIR", help="folder for the files; - prints the text")
    parser.add_argument("--target", default=_DEFAULT_TARGET, help="the chip, as cuda:sm_80 (default) or cuda:sm_90a")
    parser.add_argument("--kernel", help="the kernel to transpile, by its outermost function; all if not given")
    parser.add_argument(
        "-D",
        dest="bindings",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a value for an argument of the kernel's factory; sizes that get none stay run-time arguments",
    )
    parser.add_argument("--includes", action="store_true", help="print the -I flag for headers/ and exit")
    parser.add_argument("--version", action="version", version=f"tile2cu {VERSION}")
    return parser


def _includes() -> str:
    from tile2cu_runtime.paths import headers_dir

    return f"-I{headers_dir()}"


def _emit(options: argparse.Namespace) -> int:
    from tile2cu.api import emit_text
    from tile2cu.targets import find

    target = find(options.target)
    bindings = dict(_binding(text) for text in options.bindings)
    emitted = emit_text(options.file, kernel=options.kernel, target=target, bindings=bindings)
    if options.output == "-":
        _print_one(emitted)
        return 0
    written = write_files({name: text for one in emitted for name, text in one.files.items()}, Path(options.output))
    print("\n".join(str(path) for path in written))
    return 0


def _print_one(emitted: Sequence["Emitted"]) -> None:
    if len(emitted) > 1:
        names = ", ".join(one.kernel for one in emitted)
        raise Tile2CuError("T2C-C004", f"the file has several kernels: {names}", help="pick one with --kernel NAME")
    sys.stdout.write(emitted[0].source)


def _binding(text: str) -> tuple[str, object]:
    """`NAME=VALUE`, the value as a Python int, float or bool where it reads as one, else as text."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise Tile2CuError(
            "T2C-C002", f"`-D {text}` is not of the form NAME=VALUE", help="write for instance -D M=1024"
        )
    named: dict[str, object] = {"True": True, "False": False, "None": None}
    if value in named:
        return name, named[value]
    for number in (int, float):
        try:
            return name, number(value)
        except ValueError:
            continue
    return name, value


def write_files(files: dict[str, str], folder: Path) -> list[Path]:
    """Writes all files or none: each beside its place first, then moved there.

    Raises T2C-C005 when the folder cannot be written to.
    """
    import os

    staged: list[tuple[Path, Path]] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            beside = folder / f".{name}.{os.getpid()}.tmp"
            staged.append((beside, folder / name))
            beside.write_bytes(text.encode("utf-8"))
        for beside, place in staged:
            os.replace(beside, place)
    except OSError as error:
        for beside, _ in staged:
            beside.unlink(missing_ok=True)
        raise Tile2CuError("T2C-C005", f"cannot write to `{folder}`: {error.strerror}") from error
    return [place for _, place in staged]


if __name__ == "__main__":
    sys.exit(main())
