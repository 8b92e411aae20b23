"""NAME.json: the contract between the transpiler and whatever builds, loads or vendors the text."""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from tile2cu.core.expr import Expr, static_value
from tile2cu.core.facts import Facts, name_of
from tile2cu.core.origin import Look, Tool
from tile2cu.core.program import Buffer, Launch, Scope
from tile2cu.emitter.contract import access_of
from tile2cu.emitter.expressions import Printer
from tile2cu.emitter.numerics import numerics
from tile2cu.emitter.settled import Settled
from tile2cu.emitter.tma import is_producer

FORMAT = 1


def manifest(
    settled: Settled,
    printer: Printer,
    *,
    tool: Tool,
    look: Look,
    files: dict[str, str],
    lines: list[tuple[int, int]],
) -> str:
    """The manifest as JSON text with a final newline. `files` maps a file's name to its sha256."""
    program, launch = settled.program, settled.launch
    ledger = settled.facts[launch, "ledger"]
    content: dict[str, Any] = {
        "format": FORMAT,
        "tile2cu": tool.version,
        "tool": {"sha256": tool.sha256},
        "kernel": program.name,
        "function": program.function,
        "target": settled.target.name,
        "source": {
            "file": program.source.name,
            "sha256": program.source.sha256,
            "imports": dict(program.source.imports),
        },
        "look": _look(look),
        "bindings": {c.name: c.value for c in program.constants if c.origin} | dict(program.bindings),
        "entry": program.name,
        "files": files,
        "arguments": _arguments(settled, printer),
        "outputs": list(program.outputs),
        "workspace": [_workspace(tensor, printer) for tensor in program.workspaces],
        "launch": {
            "grid": [printer.text(extent) for extent in launch.grid],
            "threads": launch.threads + _producer_threads(settled),
            "shared_bytes": ledger.total,
            "shared_limit": ledger.limit,
        },
        "resources": {
            "shared": dict(ledger.tiles),
            "fragments": _fragments(settled),
            "stages": _stages(settled),
        },
        "numerics": _numerics(settled),
        "licences": _licences(files),
        "facts": _facts(settled.facts),
        "lines": lines,
    }
    return _compact(content)


def _producer_threads(settled: Settled) -> int:
    """headers/tl/common/sm90/tma_pipeline.h: a warp."""
    return 32 if is_producer(settled) else 0


def _arguments(settled: Settled, printer: Printer) -> list[dict[str, Any]]:
    arguments: list[dict[str, Any]] = []
    for param in settled.program.params:
        if isinstance(param, Buffer):
            shape = [_extent(extent, printer) for extent in param.shape]
            tensor = {"kind": "tensor", "name": param.name, "dtype": param.dtype.name, "shape": shape}
            if param.strides is not None:
                tensor["strides"] = [_extent(stride, printer) for stride in param.strides]
            arguments.append({**tensor, "access": access_of(param, settled)})
        else:
            arguments.append({"kind": "scalar", "name": param.name, "dtype": param.dtype.name})
    arguments += [{"kind": "size", "name": size.name, "dtype": size.dtype.name} for size in settled.program.sizes]
    return arguments


def _workspace(tensor: Buffer, printer: Printer) -> dict[str, Any]:
    """A tensor that the launches share in the caller's workspace, one after the other in this order."""
    shape = [_extent(extent, printer) for extent in tensor.shape]
    return {"name": tensor.name, "dtype": tensor.dtype.name, "shape": shape}


def _extent(extent: Expr, printer: Printer) -> int | str:
    value = static_value(extent)
    return int(value) if value is not None else printer.index(extent).replace("tl::", "")


def _fragments(settled: Settled) -> dict[str, int]:
    """Registers (of 4 bytes) that a thread spends on each register tile."""
    return {
        tile.name: -(-settled.facts[tile, "layout"].registers * tile.dtype.bytes // 4)
        for tile in settled.launch.tiles
        if tile.scope is Scope.FRAGMENT and settled.facts.get(tile, "layout") is not None
    }


def _stages(settled: Settled) -> dict[str, int]:
    """The slots of each pipelined shared tile."""
    tiles = ((tile.name, settled.facts.get(tile, "slots")) for tile in settled.launch.tiles)
    return {name: slots for name, slots in tiles if slots}


def _look(look: Look) -> dict[str, str]:
    """The options of the text; of a user's .clang-format its hash."""
    style = hashlib.sha256(look.clang_format.encode()).hexdigest() if look.clang_format else "tile2cu"
    return {"style": look.style, "clang_format": style, "line": look.line}


def _numerics(settled: Settled) -> dict[str, Any]:
    found = numerics(settled)
    return {
        "accumulate": {"products": list(found.products), "reductions": list(found.reductions)},
        "rounded": [f"{name} to {dtype}, line {line}" for name, dtype, line in found.rounded],
        "approximated": list(found.approximated),
        "order": "atomic additions in any order" if found.atomic_sums else "the same in every run",
    }


def _licences(text_files: Iterable[str]) -> dict[str, str]:
    """Who owns what: the emitted text belongs to the owner of its source, the headers it includes are tile2cu's."""
    return dict.fromkeys(text_files, "as its source") | {"tl/": "MIT"}


def _facts(facts: Facts) -> list[dict[str, Any]]:
    return [
        {
            "about": "launch" if isinstance(fact.about, Launch) else name_of(fact.about).strip("`"),
            "what": fact.what,
            "value": str(fact.value),
            "rule": fact.rule,
            "line": fact.span.line,
        }
        for fact in facts
        if fact.what not in ("ledger", "workspaces", "owners", "staging")
    ]


def _compact(content: dict[str, Any]) -> str:
    """JSON with one entry a line and short lists on one line, so that a diff shows what changed."""
    rows = []
    for key, value in content.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            inner = ",\n".join("    " + json.dumps(item) for item in value)
            rows.append(f"  {json.dumps(key)}: [\n{inner}\n  ]")
        else:
            rows.append(f"  {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(rows) + "\n}\n"
