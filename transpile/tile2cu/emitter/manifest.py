"""NAME.json: the contract between the transpiler and all that build, load or vendor the source."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tile2cu.core.decisions import ALIASING, LAYOUT, SHARED_BUDGET, STAGES
from tile2cu.core.dtype import FLOAT32, TFLOAT32, DType
from tile2cu.core.expr import Binary, Call, Expr, Var, static_value
from tile2cu.core.facts import Rejected, name_of
from tile2cu.core.origin import EmitOptions, Tool
from tile2cu.core.program import Buffer, Launch, Scope
from tile2cu.emitter.fact_values import value_of
from tile2cu.emitter.host import draws, noted_grids
from tile2cu.emitter.numerics import numerics
from tile2cu.emitter.tma import persistent_in
from tile2cu.plan.launch_bounds import producer_threads
from tile2cu.plan.registers import tile_registers
from tile2cu.plan.resolved import Resolved
from tile2cu.plan.tensors import POINTER_BYTES, access_of, pointer_alignment
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.vocabulary import PERSISTENT_GRID

FORMAT = 1
# The libraries whose headers a style includes besides tl's.
NEEDS = {"tl": (), "cute": ("cutlass",), "ck": ("composable_kernel",)}
# The styles whose kernels declare their shared memory: a launch asks for none.
STATIC_SHARED = ("ck",)
_TILES_A_WORD = 31  # tl::tiles_per_word of headers/tl/common/sm90/tile_scheduler.h


def manifest(
    launches: tuple[Resolved, ...],
    printer: Printer,
    own_layouts: tuple[Mapping[str, str], ...],
    *,
    tool: Tool,
    options: EmitOptions,
    files: dict[str, str],
    lines: list[tuple[int, int]],
) -> str:
    """The manifest as JSON text with a final newline. `files` maps a file's name to its sha256.

    `own_layouts` are, of each launch, the shared tiles that the style stores in its own way.
    """
    program, alone = launches[0].program, len(launches) == 1
    described = [_launch(each, printer, options.style) for each in launches]
    content: dict[str, Any] = {
        "format": FORMAT,
        "tile2cu": tool.version,
        "tool": {"sha256": tool.sha256},
        "kernel": program.name,
        "function": program.function,
        "target": launches[0].target.name,
        "source": {
            "file": program.source.name,
            "sha256": program.source.sha256,
            "imports": dict(program.source.imports),
        },
        "look": _emit_options(options),
        "bindings": {c.name: c.value for c in program.constants if c.origin} | dict(program.bindings),
        "entry": program.name,
        "files": files,
        **({"needs": list(needs)} if (needs := NEEDS[options.style]) else {}),
        "arguments": _arguments(launches),
        "outputs": list(program.outputs),
        "workspace": [*(_workspace(tensor) for tensor in program.workspaces), *_counters(launches)],
        **({"launch": described[0]} if alone else {"launches": described}),
        "resources": {
            "shared": _by_name(launches, _shared),
            "fragments": _by_name(launches, _fragments),
            "stages": _by_name(launches, _stages),
        },
        "numerics": _numerics(launches),
        "licences": _licences(files, program.source.licence),
        "facts": [fact for each in zip(launches, own_layouts, strict=True) for fact in _facts(*each)],
        "lines": lines,
    }
    return _compact(content)


def _launch(resolved: Resolved, printer: Printer, style: str) -> dict[str, Any]:
    ledger = resolved.facts[resolved.launch, SHARED_BUDGET]
    extents = [printer.text(extent) for extent in resolved.launch.grid]
    persistent = persistent_in(resolved) is not None
    return {
        **({"kernel": resolved.namespace} if resolved.namespace else {}),
        **({"grid": [f"{PERSISTENT_GRID}(tiles)"], "tiles": extents} if persistent else {"grid": extents}),
        **({"cluster": list(resolved.launch.cluster)} if resolved.launch.cluster else {}),
        "threads": resolved.launch.threads + producer_threads(resolved),
        "shared_bytes": ledger.total,
        **({"shared_static": True} if style in STATIC_SHARED else {}),
        "shared_limit": ledger.limit,
        **_aliased(resolved),
        "tile_registers": tile_registers(resolved),
    }


def _aliased(resolved: Resolved) -> dict[str, Any]:
    """Aliased shared memory: its first and last offset, and the Python lines of each lifetime."""
    aliasing = resolved.facts.get(resolved.launch, ALIASING)
    if aliasing is None or not aliasing.parts:
        return {}
    lines = [[part.first_line, part.last_line] for part in aliasing.parts]
    return {"aliased": {"bytes": list(resolved.facts[resolved.launch, SHARED_BUDGET].aliased), "lines": lines}}


def _key(resolved: Resolved, name: str) -> str:
    """A name of a kernel, after the kernel's own where the text has several."""
    return f"{resolved.namespace}::{name}" if resolved.namespace else name


def _by_name(launches: tuple[Resolved, ...], of: Callable[[Resolved], dict[str, int]]) -> dict[str, int]:
    return {_key(each, name): number for each in launches for name, number in of(each).items()}


def _shared(resolved: Resolved) -> dict[str, int]:
    """Bytes of each shared tile, with all its stages."""
    return dict(resolved.facts[resolved.launch, SHARED_BUDGET].tiles)


def _arguments(launches: tuple[Resolved, ...]) -> list[dict[str, Any]]:
    arguments: list[dict[str, Any]] = []
    for param in launches[0].program.params:
        if isinstance(param, Buffer):
            shape = [_extent(extent) for extent in param.shape]
            tensor: dict[str, Any] = {
                "kind": "tensor",
                "name": param.name,
                "dtype": _callers(param.dtype),
                "shape": shape,
            }
            if param.strides is not None:
                tensor["strides"] = [_extent(stride) for stride in param.strides]
            if (alignment := pointer_alignment(param, launches)) != POINTER_BYTES:
                tensor["alignment"] = alignment
            arguments.append({**tensor, "access": access_of(param, launches)})
        else:
            arguments.append({"kind": "scalar", "name": param.name, "dtype": param.dtype.name})
    arguments += [{"kind": "size", "name": size.name, "dtype": size.dtype.name} for size in launches[0].program.sizes]
    return arguments


def _workspace(tensor: Buffer) -> dict[str, Any]:
    """A tensor that the launches share in the caller's workspace, one after the other in this order."""
    shape = [_extent(extent) for extent in tensor.shape]
    return {"name": tensor.name, "dtype": _callers(tensor.dtype), "shape": shape}


def _counters(launches: tuple[Resolved, ...]) -> list[dict[str, Any]]:
    """What counts the tiles that blocks have fetched, and notes which have work, behind the tensors."""
    grids = (" * ".join(f"({_extent(extent)})" for extent in grid) for grid in noted_grids(launches))
    ints = " + ".join(f"1 + ceildiv({tiles}, {_TILES_A_WORD})" for tiles in grids) or 1
    return [{"name": "next_tile", "dtype": "int32", "shape": [ints]}] if draws(launches) else []


def _callers(dtype: DType) -> str:
    """The type that a caller's array has: a tfloat32 is a float32 whose last digits GEMMs ignore."""
    return FLOAT32.name if dtype == TFLOAT32 else dtype.name


def _extent(extent: Expr) -> int | str:
    """An extent as Python writes it: a number, or an expression of sizes."""
    value = static_value(extent)
    if value is not None:
        return int(value)
    match extent:
        case Binary():
            sides = (
                f"({_extent(side)})" if isinstance(side, Binary) else _extent(side) for side in (extent.lhs, extent.rhs)
            )
            return f" {extent.op} ".join(map(str, sides))
        case Call():
            return f"{extent.function}({', '.join(str(_extent(arg)) for arg in extent.args)})"
        case Var():
            return extent.name
    raise TypeError(f"no extent is a {type(extent).__name__}")


def _fragments(resolved: Resolved) -> dict[str, int]:
    """Registers (of 4 bytes) that a thread spends on each register tile."""
    return {
        tile.name: resolved.facts[tile, LAYOUT].words(tile.dtype.bytes)
        for tile in resolved.launch.tiles
        if tile.scope is Scope.FRAGMENT and tile.of is None and resolved.facts.get(tile, LAYOUT) is not None
    }


def _stages(resolved: Resolved) -> dict[str, int]:
    """The stages of each pipelined shared tile."""
    tiles = ((tile.name, resolved.facts.get(tile, STAGES)) for tile in resolved.launch.tiles)
    return {name: slots for name, slots in tiles if slots}


def _emit_options(options: EmitOptions) -> dict[str, str]:
    """The options of the text; of a user's .clang-format its hash."""
    style = hashlib.sha256(options.clang_format.encode()).hexdigest() if options.clang_format else "tile2cu"
    tiles: dict[str, str] = {"tiles": options.tiles} if options.tiles != "default" else {}
    tiles |= {"family": ", ".join(options.family)} if options.family else {}
    return {"style": options.style, "clang_format": style, "line": options.line, **tiles}


def _numerics(launches: tuple[Resolved, ...]) -> dict[str, Any]:
    found = numerics(launches)
    return {
        "accumulate": {"products": list(found.products), "reductions": list(found.reductions)},
        "rounded": [f"{name} to {dtype}, line {line}" for name, dtype, line in found.rounded],
        "computed": [f"{name} in {dtype}, line {line}" for name, dtype, line in found.computed],
        "approximated": list(found.approximated),
        "order": list(found.order),
    }


def _licences(text_files: Iterable[str], licence: str) -> dict[str, str]:
    """Who owns what: the emitted text belongs to the owner of its source, the headers it includes are tile2cu's."""
    return dict.fromkeys(text_files, licence or "as its source") | {"tl/": "MIT"}


def _facts(resolved: Resolved, own_layouts: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The decisions; of a layout that is the style's own, its words and no rule."""
    for fact in resolved.facts:
        if fact.what in ("shared_budget", "workspaces", "elected_writers", "staging") or isinstance(
            fact.value, Rejected
        ):
            continue
        name = "launch" if isinstance(fact.about, Launch) else name_of(fact.about).strip("`")
        own = own_layouts.get(name) if fact.what == "layout" else None
        yield {
            "about": _key(resolved, name),
            "what": fact.what,
            "value": own or value_of(fact),
            "rule": "" if own else fact.rule,
            "line": fact.span.line,
        }


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
