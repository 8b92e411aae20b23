"""`tile2cu explain kernel.py`, `tile2cu explain RULE`, `tile2cu explain T2C-L001`."""

import argparse
import sys
from difflib import get_close_matches
from pathlib import Path

from tile2cu.cli.request import add_request_arguments, bindings
from tile2cu.core.errors import Tile2CuError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "subject", help="a Python file, the id of a rule (layout.gemm.widest-swizzle), or an error's code"
    )
    add_request_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print JSON: one object for each kernel")


def run(options: argparse.Namespace) -> int:
    """Prints the explanation. Errors: T2C-C006 when nothing has that name, and those of transpiling."""
    if Path(options.subject).suffix == ".py" or Path(options.subject).is_file():
        sys.stdout.write(_kernels(options))
    else:
        sys.stdout.write(_page(options.subject))
    return 0


def _kernels(options: argparse.Namespace) -> str:
    from tile2cu.api import settled_kernels
    from tile2cu.explain import as_json, as_text, dumps, explained
    from tile2cu.targets import find

    target = find(options.target)
    found = settled_kernels(Path(options.subject), kernel=options.kernel, target=target, bindings=bindings(options))
    parts = [
        (launches[0].program.name, target.name, [place for one in launches for place in explained(one)])
        for launches in found
    ]
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
