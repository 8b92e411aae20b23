"""The one place that knows jinja and clang-format."""

import functools
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tile2cu.core.errors import Tile2CuError
from tile2cu.core.origin import Look
from tile2cu.emitter.comments import wrapped
from tile2cu.emitter.line_directives import with_line_directives
from tile2cu.emitter.view import DispatchView, KernelView, ShimView, TestView

_STYLES = Path(__file__).parent / "styles"
_MARKER = re.compile(r"^\s*//@(\d+)\s*$")

# The format of emitted text; the wheel that reads it is pinned, since its bytes depend on both.
FORMAT = (
    "{BasedOnStyle: Google, Standard: c++17, ColumnLimit: 120, AllowShortFunctionsOnASingleLine: All, "
    "AllowShortLambdasOnASingleLine: All, AllowShortLoopsOnASingleLine: true, "
    "AllowShortIfStatementsOnASingleLine: WithoutElse, DerivePointerAlignment: false, PointerAlignment: Left, "
    "AlwaysBreakTemplateDeclarations: MultiLine, ReflowComments: Never, SortIncludes: false, "
    "IncludeBlocks: Preserve, MaxEmptyLinesToKeep: 1, AlignTrailingComments: true}"
)


def render(view: KernelView, look: Look, source: str, suffix: str) -> tuple[str, str, list[tuple[int, int]]]:
    """(kernel text, header text, line map) of a view; the map is (text line, Python line), ascending.

    `source` is the name of the Python file, `suffix` the end of the text's.
    """
    kernel, header = _rendered(look, ["kernel.cu", "kernel.h"], k=view)
    text, lines = _take_markers(kernel)
    if look.line == "python":
        text, lines = with_line_directives(text, lines, python=source, own=f"{view.name}{suffix}")
    return text, header, lines


def render_test(view: TestView, look: Look) -> str:
    """The text of NAME_test.cpp."""
    return _rendered(look, ["test.cpp"], t=view)[0]


def render_shims(view: ShimView, look: Look) -> dict[str, str]:
    """The shims that the look asks for, by file name."""
    names = [f"{kind.replace('-', '_')}.cpp" for kind in look.shims]
    return dict(zip((f"{view.name}_{name}" for name in names), _rendered(look, names, s=view), strict=True))


def render_dispatch(view: DispatchView, look: Look) -> dict[str, str]:
    """The two files of a dispatch, by name."""
    table, header = _rendered(look, ["dispatch.cpp", "dispatch.h"], d=view)
    return {f"{view.name}_dispatch.cpp": table, f"{view.name}_dispatch.h": header}


def _rendered(look: Look, templates: list[str], **views: object) -> list[str]:
    """The templates printed and formatted, in their order."""
    environment = _environment(look.style)
    texts = [environment.get_template(f"{name}.jinja").render(**views) for name in templates]
    with _format_option(look.clang_format) as option:
        return _format(texts, option)


@functools.cache
def _environment(style: str):  # type: ignore[no-untyped-def]  # jinja2 is imported when first needed
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_STYLES / style),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters["comment"] = lambda text: "\n".join(f"// {line}" for line in wrapped(text))
    return environment


def styles() -> tuple[str, ...]:
    """The names of the folders of templates."""
    return tuple(sorted(path.name for path in _STYLES.iterdir() if path.is_dir()))


@contextmanager
def _format_option(clang_format: str) -> Iterator[str]:
    """clang-format's --style for tile2cu's own format, or for the content of a user's .clang-format."""
    if not clang_format:
        yield f"--style={FORMAT}"
        return
    with tempfile.NamedTemporaryFile("w", suffix=".clang-format") as file:
        file.write(_keeping_markers(clang_format))
        file.flush()
        yield f"--style=file:{file.name}"


def _keeping_markers(clang_format: str) -> str:
    """A .clang-format less what would join a `//@N` with the comment above it, or put the header elsewhere."""
    kept = re.sub(
        r"^(?:ReflowComments|SortIncludes|IncludeBlocks):.*\n(?:[ \t]+.*\n)*", "", clang_format + "\n", flags=re.M
    )
    rules = "ReflowComments: Never\nSortIncludes: Never\nIncludeBlocks: Preserve\n"
    return "---\n".join(part + rules if part.strip() else part for part in re.split(r"^---.*\n", kept, flags=re.M))


def _format(texts: list[str], option: str) -> list[str]:
    """The texts through the pinned clang-format, one process each, side by side."""
    command = [_clang_format(), option, "--assume-filename=kernel.cpp"]
    running = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in texts
    ]
    outputs = []
    for process, text in zip(running, texts, strict=True):
        out, err = process.communicate(text.encode("ascii"))
        if process.returncode:
            raise Tile2CuError("T2C-E010", f"clang-format failed: {err.decode(errors='replace').strip()}")
        outputs.append(out.decode("ascii"))
    return outputs


def _clang_format() -> str:
    """The wheel's own binary: its wrapper script costs another 26 ms."""
    try:
        import clang_format  # type: ignore[import-untyped]
    except ImportError as error:
        raise Tile2CuError(
            "T2C-E011",
            "the clang-format package is missing, and without it the text would have other bytes",
            help="pip install clang-format==23.1.3",
        ) from error
    return str(clang_format.get_executable("clang-format"))


def _take_markers(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Removes the lines `//@N` and remembers where each Python line's text begins."""
    kept: list[str] = []
    lines: list[tuple[int, int]] = []
    for line in text.splitlines():
        marker = _MARKER.match(line)
        if marker is None:
            kept.append(line)
        elif not lines or lines[-1][1] != int(marker[1]):
            if lines and lines[-1][0] == len(kept) + 1:
                lines.pop()
            lines.append((len(kept) + 1, int(marker[1])))
    return "\n".join(kept) + "\n", lines
