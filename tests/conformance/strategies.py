"""The kernels of a corpus for which each strategy of a pipelined loop fires, in one checkout of tile2cu and in another.

    python tests/conformance/strategies.py collect FOLDER... --out NOW.json
    python tests/conformance/strategies.py collect FOLDER... --out BEFORE.json --tree CHECKOUT
    python tests/conformance/strategies.py table BEFORE.json NOW.json [--list]

`collect` decides each kernel of the folders that has a pipelined loop, with the arguments of its driver (drivers.py),
by the transpiler of a checkout, and keeps which rules state facts. `table` counts kernels, not loops: those of the
first checkout, those of the second, and those that only the second reaches; `--list` names the last.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What states a strategy: a rule's id, of any release. A prefix ends with a star.
STRATEGIES: Mapping[str, tuple[str, ...]] = {
    "overlap of MMAs with other work": ("pipeline.loop.overlap",),
    "MMA in flight across iterations": ("pipeline.loop.mma-in-flight", "pipeline.loop.product-in-flight"),
    "persistence": ("schedule.grid.persistent",),
    "prefetch: tiles by a producer": ("pipeline.loop.tma",),
    "prefetch: tiles by cp.async": ("pipeline.loop.cp-async",),
    "prefetch: vectors, one iteration early": ("pipeline.loop.lines-ahead", "loaded one iteration earlier"),
    "ping-pong": ("pipeline.loop.ping-pong", "pipeline.loop.dealt-turns"),
}
TARGET = "cuda:sm_90a"
Kernels = dict[str, list[str]]  # by the kernel's name, the ids of rules in its manifest; empty if it is not emitted


def collect(folders: list[Path], tree: Path) -> Kernels:
    """The rules that fire for each kernel of the folders, by a checkout's transpiler."""
    sys.path[:0] = [str(tree / "transpile"), str(tree / "runtime"), str(ROOT)]
    from tests.conformance.drivers import arguments_of, files
    from tile2cu.core.errors import Tile2CuError
    from tile2cu.frontend import kernel_names

    found: Kernels = {}
    for folder in folders:
        for path in files(folder):
            text = path.read_text(encoding="utf-8")
            if "Pipelined" not in text:
                continue
            try:
                names = kernel_names(text, path)
            except Tile2CuError:
                continue
            for name in names:
                try:
                    fired = sorted(set(_rules(path, name, arguments_of(path, text, name))))
                except Exception:  # a checkout may refuse a kernel, or fail: no strategy fires
                    fired = []
                found[f"{folder.name}/{path.relative_to(folder).as_posix()}::{name}"] = fired
    return found


def _rules(path: Path, name: str, given: Mapping[str, object]) -> Iterator[str]:
    """The ids of the rules that state a kernel's facts; a prefetched vector has the words of its fact besides.

    Checkouts before 2026-11-24 have no decisions without a source: their manifests are read.
    """
    from tile2cu import api
    from tile2cu.targets import find

    facts: Iterator[tuple[str, str]]
    if hasattr(api, "resolved_kernels"):
        from tile2cu.core.facts import Rejected

        launches = api.resolved_kernels(path, kernel=name, target=find(TARGET), bindings=given)
        stated = (fact for of in launches for each in of for fact in each.facts if not isinstance(fact.value, Rejected))
        facts = ((fact.rule, str(fact.value)) for fact in stated)
    else:
        emitted = api.emit_text(path, kernel=name, target=find(TARGET), bindings=given)
        manifests = (content for one in emitted for file, content in one.files.items() if file.endswith("json"))
        facts = ((fact["rule"], fact["value"]) for text in manifests for fact in json.loads(text)["facts"])
    for rule, value in facts:
        yield rule
        yield from (words for names in STRATEGIES.values() for words in names if words in value)


def fires(kernels: Kernels, rules: tuple[str, ...]) -> frozenset[str]:
    """The kernels for which one of the rules fires."""
    return frozenset(kernel for kernel, fired in kernels.items() if set(rules) & set(fired))


def table(before: Kernels, now: Kernels, listed: bool) -> Iterator[str]:
    """Lines of the table in Markdown, and below it the kernels that only `now` has."""
    new: dict[str, list[str]] = {}
    yield "| strategy | kernels before | now | of them new | no longer |"
    yield "|---|---|---|---|---|"
    for strategy, rules in STRATEGIES.items():
        old, current = fires(before, rules) & now.keys(), fires(now, rules)
        new[strategy] = sorted(current - old)
        yield f"| {strategy} | {len(old)} | {len(current)} | {len(current - old)} | {len(old - current)} |"
    decided = (sum(bool(kernels.get(each)) for each in now) for kernels in (before, now))
    yield "| kernels with a pipelined loop that are emitted | {} | {} | | |".format(*decided)
    if listed:
        yield from (f"{strategy}: {kernel}" for strategy, kernels in new.items() for kernel in kernels)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    collecting = verbs.add_parser("collect")
    collecting.add_argument("folders", type=Path, nargs="+")
    collecting.add_argument("--out", type=Path, required=True)
    collecting.add_argument("--tree", type=Path, default=ROOT, help="the checkout whose transpiler emits")
    comparing = verbs.add_parser("table")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("now", type=Path)
    comparing.add_argument("--list", action="store_true", help="names the kernels that only the second has")
    options = parser.parse_args()
    if options.verb == "collect":
        kernels = collect([folder.resolve() for folder in options.folders], options.tree.resolve())
        options.out.write_text(json.dumps(kernels, indent=0) + "\n", encoding="utf-8")
    else:
        before, now = (json.loads(path.read_text(encoding="utf-8")) for path in (options.before, options.now))
        print("\n".join(table(before, now, options.list)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
