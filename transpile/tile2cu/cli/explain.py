"""`tile2cu explain kernel.py`, `... kernel.py:22`, `... out/kernel.cu:66`, `... RULE`, `... T2C-L001`."""

import argparse
import re
import sys
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from tile2cu.cli.request import add_request_arguments, bindings
from tile2cu.core.errors import Tile2CuError

if TYPE_CHECKING:
    from tile2cu.explain import Explained

    _Part = tuple[str, str, list[Explained]]  # a kernel, its target, and the places

_EMITTED = (".json", ".cu", ".hip")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "subject",
        help="a Python file or a kernel that was emitted (its .json, .cu or .hip), of which a line may be named as"
        " FILE:LINE; the id of a rule (layout.gemm.widest-swizzle); or an error's code",
    )
    add_request_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print JSON: one object for each kernel")


def run(options: argparse.Namespace) -> int:
    """Prints the explanation. Errors: T2C-C006 when nothing has that name, and those of transpiling."""
    path, line = _place(options.subject)
    if path.suffix in _EMITTED:
        sys.stdout.write(_said(_of_emitted(path, line), options))
    elif path.suffix == ".py" or path.is_file():
        sys.stdout.write(_said(_of_python(path, line, options), options))
    else:
        sys.stdout.write(_page(options.subject))
    return 0


def _place(subject: str) -> tuple[Path, int | None]:
    """A file, and the line where one is named: FILE:LINE."""
    found = re.fullmatch(r"(.+\.(?:py|cu|hip|json)):([1-9]\d*)", subject)
    return (Path(subject), None) if found is None or Path(subject).is_file() else (Path(found[1]), int(found[2]))


def _of_python(path: Path, line: int | None, options: argparse.Namespace) -> "list[_Part]":
    from tile2cu.api import resolved_kernels
    from tile2cu.explain import explained
    from tile2cu.targets import find

    target = find(options.target)
    found = resolved_kernels(
        path, kernel=options.kernel, target=target, bindings=bindings(options), tiles=options.tiles
    )
    parts = [
        (launches[0].program.name, target.name, [place for one in launches for place in explained(one)])
        for launches in found
    ]
    return parts if line is None else _at(parts, line, path)


def _of_emitted(path: Path, line: int | None) -> "list[_Part]":
    """The explanation in the manifest of an emitted file; a line of the source is its Python line."""
    from tile2cu.cli.map import python_line
    from tile2cu.explain import of_manifest
    from tile2cu.project.on_disk import read_manifest

    manifest = read_manifest(path.with_suffix(".json"))
    if manifest is None:
        raise Tile2CuError("T2C-C006", f"no manifest of tile2cu is next to `{path}`", help="explain the Python file")
    parts = [(manifest["kernel"], manifest["target"], list(of_manifest(manifest)))]
    if line is None:
        return parts
    python = line if path.suffix == ".json" else python_line(manifest["lines"], line)
    if not python:
        raise Tile2CuError("T2C-C006", f"{path}:{line} comes from no line of `{manifest['source']['file']}`")
    return _at(parts, python, Path(manifest["source"]["file"]))


def _at(parts: "list[_Part]", line: int, path: Path) -> "list[_Part]":
    """The decisions about one line of the Python file, in the kernels that have some."""
    found = [(kernel, target, [place for place in places if place.line == line]) for kernel, target, places in parts]
    if not any(places for _, _, places in found):
        lines = sorted({place.line for _, _, places in parts for place in places})
        raise Tile2CuError(
            "T2C-C006",
            f"nothing was decided about {path}:{line}",
            help=f"there are decisions about the lines {', '.join(map(str, lines))}",
        )
    return [part for part in found if part[2]]


def _said(parts: "list[_Part]", options: argparse.Namespace) -> str:
    from tile2cu.explain import as_json, as_text, dumps

    if options.json:
        return dumps([as_json(*part) for part in parts])
    return "\n\n".join(as_text(*part) for part in parts)


def _page(name: str) -> str:
    from tile2cu.core.codes import CODES
    from tile2cu.explain import find_rule, rewrite_page, rule_ids, rule_page
    from tile2cu.renamed import RENAMED

    name = RENAMED.get(name, name)
    if (rule := find_rule(name)) is not None:
        return rule_page(rule)
    if (page := rewrite_page(name)) is not None:
        return page
    code = name.upper() if name.upper().startswith("T2C-") else f"T2C-{name.upper()}"
    if (explanation := CODES.get(code)) is not None:
        return f"{code}: {explanation.title}\n\n{explanation.text}\n"
    close = get_close_matches(name, [*rule_ids(), *CODES], n=3)
    raise Tile2CuError(
        "T2C-C006",
        f"there is no file, rule or error `{name}`",
        help="did you mean " + " or ".join(f"`{other}`" for other in close) + "?"
        if close
        else "rules are named in the text",
    )
