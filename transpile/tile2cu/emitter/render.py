"""The one place that knows jinja."""

import contextlib
import functools
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tile2cu.core.origin import EmitOptions
from tile2cu.emitter.formatting import formatted
from tile2cu.emitter.line_directives import with_line_directives
from tile2cu.emitter.restyle import LineMap, Rendered, restyled
from tile2cu.emitter.view import DispatchView, KernelView, ShimView, TestView
from tile2cu.styles.base.comments import wrapped

if TYPE_CHECKING:
    import jinja2

_TEMPLATES = Path(__file__).parent / "templates"
_MARKER = re.compile(r"^\s*//@(\d+)\s*$")


def render(view: KernelView, options: EmitOptions, source: str, suffix: str) -> tuple[str, str, LineMap]:
    """(kernel text, header text, line map) of a view.

    `source` is the name of the Python file, `suffix` the end of the text's.
    """
    names = {"kernel.cu": f"{view.name}{suffix}", "kernel.h": f"{view.name}.h"}
    (text, lines), (header, _) = _rendered(options, names, k=view).values()
    if options.line == "python":
        text, lines = with_line_directives(text, lines, python=source, own=names["kernel.cu"])
    return text, header, lines


def render_test(view: TestView, options: EmitOptions) -> str:
    """The text of NAME_test.cpp."""
    [(text, _)] = _rendered(options, {"test.cpp": f"{view.name}_test.cpp"}, t=view).values()
    return text


def render_shims(view: ShimView, options: EmitOptions) -> dict[str, str]:
    """The shims that the options ask for, by file name."""
    templates = [f"{kind.replace('-', '_')}.cpp" for kind in options.shims]
    rendered = _rendered(options, {template: f"{view.name}_{template}" for template in templates}, s=view)
    return {name: text for name, (text, _) in rendered.items()}


def render_dispatch(view: DispatchView, options: EmitOptions) -> dict[str, str]:
    """The two files of a dispatch, by name."""
    names = {f"dispatch{suffix}": f"{view.name}_dispatch{suffix}" for suffix in (".cpp", ".h")}
    return {name: text for name, (text, _) in _rendered(options, names, d=view).items()}


def _rendered(options: EmitOptions, names: dict[str, str], **views: object) -> dict[str, Rendered]:
    """Templates printed and formatted, in their order, each under its file's name in `names`, with its line map."""
    environment = _environment()
    printed = {name: environment.get_template(f"{template}.jinja").render(**views) for template, name in names.items()}
    rendered = {name: _take_markers(text) for name, text in formatted(printed).items()}
    return restyled(rendered, options.clang_format) if options.clang_format else rendered


@functools.cache
def _environment() -> "jinja2.Environment":  # jinja2 is imported when first needed
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
        bytecode_cache=None if sys.dont_write_bytecode else _beside_templates(),
    )
    environment.filters["comment"] = lambda text: "\n".join(f"// {line}" for line in wrapped(text))
    return environment


def _take_markers(text: str) -> tuple[str, LineMap]:
    """Removes the lines `//@N` and remembers where each Python line's text begins."""
    kept: list[str] = []
    lines: LineMap = []
    for line in text.removesuffix("\n").split("\n"):
        marker = _MARKER.match(line)
        if marker is None:
            kept.append(line)
        elif not lines or lines[-1][1] != int(marker[1]):
            if lines and lines[-1][0] == len(kept) + 1:
                lines.pop()
            lines.append((len(kept) + 1, int(marker[1])))
    return "\n".join(kept) + "\n", lines


def _beside_templates() -> "jinja2.BytecodeCache":
    """Compiled templates in __pycache__, as Python keeps modules: compiling them takes a sixth of a transpilation."""
    import jinja2

    class Cache(jinja2.FileSystemBytecodeCache):
        def dump_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
            with contextlib.suppress(OSError):  # a folder that cannot be written
                super().dump_bytecode(bucket)

    folder = _TEMPLATES / "__pycache__"
    with contextlib.suppress(OSError):
        folder.mkdir(exist_ok=True)
    return Cache(str(folder))
