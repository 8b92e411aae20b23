"""`tile2cu kernel.py`: one file's kernels, written into a folder or printed."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tile2cu.cli import no_such_file
from tile2cu.cli.diagnostics import add_format, given, is_error, report
from tile2cu.cli.request import add_request_arguments, bindings, emit_options, targets
from tile2cu.core.errors import Tile2CuError, require_one_kernel
from tile2cu.core.origin import EmitOptions

if TYPE_CHECKING:
    from tile2cu.emitter import Emitted
    from tile2cu.targets import Target


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", type=Path, help="the Python file; without it, what pyproject.toml lists")
    parser.add_argument("-o", "--output", default=".", metavar="DIR", help="folder for the files; - prints the text")
    add_request_arguments(parser)
    parser.add_argument(
        "--any-size",
        action="store_true",
        help="write a kernel without TMA as well, and one launcher that hands it the sizes that TMA cannot take",
    )
    parser.add_argument("--list-outputs", action="store_true", help="print the files' names and write nothing")
    parser.add_argument("-MD", dest="depfile", action="store_true", help="write NAME.d too: what the files depend on")
    parser.add_argument("-MF", dest="depfile_name", type=Path, metavar="FILE", help="where -MD writes; implies it")
    add_format(parser)
    parser.add_argument("--list-targets", action="store_true", help="print the names that --target takes and exit")
    parser.add_argument("--includes", action="store_true", help="print the -I flag for headers/ and exit")
    parser.add_argument("--cmakedir", action="store_true", help="print the folder of tile2cuConfig.cmake and exit")


def run(options: argparse.Namespace) -> int:
    if options.list_targets:
        from tile2cu.targets import TARGETS

        print("\n".join(target.name for target in TARGETS))
        return 0
    if options.includes:
        print(_includes())
        return 0
    if options.cmakedir:
        print(Path(__file__).resolve().parents[1] / "cmake")
        return 0
    if options.file is None:
        from tile2cu.cli.build import build
        from tile2cu.project.config import read_project

        return build(
            read_project(Path(".")),
            force=False,
            list_outputs=options.list_outputs,
            werror=options.werror,
            form=options.format,
        )
    return _emit(options)


def _includes() -> str:
    from tile2cu_runtime.paths import headers_dir

    return f"-I{headers_dir()}"


def _emit(options: argparse.Namespace) -> int:
    from tile2cu.api import errors_of
    from tile2cu.files import write_files
    from tile2cu.targets import find

    if not options.file.exists():
        raise no_such_file(options.file)
    asked, values, wanted = [find(name) for name in targets(options)], bindings(options), emit_options(options)
    to_stderr = options.output == "-"  # the source has the standard output
    try:
        emitted = _emitted(options, asked, values, wanted)
    except Tile2CuError as error:
        found = [error] if options.kernel else errors_of(options.file, error, target=asked[0], bindings=values)
        report(found, options.format, to_stderr=to_stderr)
        return 1
    said = given(emitted, werror=options.werror)
    report(said, options.format, to_stderr=to_stderr)
    if any(map(is_error, said)):
        return 1
    if options.output == "-":
        _print_one(emitted)
        return 0
    folder = Path(options.output)
    files = {name: text for one in emitted for name, text in one.files.items()}
    if options.list_outputs:
        print("\n".join(str(folder / name) for name in files))
        return 0
    if options.depfile or options.depfile_name:
        from tile2cu.project.depfile import depfile

        name, text = depfile(options.file, folder, emitted, options.depfile_name)
        files[name.name if name.parent == folder else str(name.absolute())] = text
    written = write_files(files, folder)
    if options.format in ("text", "github"):  # the others are one document
        print("\n".join(str(path) for path in written))
    if len(asked) > 1 and options.format == "text":
        from tile2cu.cli.build import print_dispatches

        print_dispatches(folder, emitted)
    return 0


def _emitted(
    options: argparse.Namespace, asked: "list[Target]", values: dict[str, object], wanted: EmitOptions
) -> "tuple[Emitted, ...]":
    from tile2cu.api import emit_text

    path, kernel = options.file, options.kernel
    if len(asked) > 1:
        from tile2cu.project.dispatched import by_architecture

        return by_architecture(path, kernel, targets=asked, bindings=values, options=wanted)
    if options.any_size:
        from tile2cu.project.dispatched import any_size

        return any_size(path, kernel, target=asked[0], bindings=values, options=wanted)
    return emit_text(path, kernel=kernel, target=asked[0], bindings=values, options=wanted)


def _print_one(emitted: Sequence["Emitted"]) -> None:
    require_one_kernel([one.kernel for one in emitted])
    sys.stdout.write(emitted[0].source)
