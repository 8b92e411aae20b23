"""Operands in registers: a tile that all turns of a loop multiply, and a copy for a product that is in flight."""

from dataclasses import replace

from tile2cu.analysis.accesses import buffers_written
from tile2cu.analysis.prelude import before, outermost
from tile2cu.core.program import Buffer, Copy, Gemm, Launch, Scope
from tile2cu.passes.rebuild import in_body
from tile2cu.passes.tiles import fresh, whole

HELD = "pipeline.gemm.register-operand"


def in_registers(launch: Launch, product: Gemm, tile: Buffer) -> Launch:
    """The launch with the product's first operand, a shared tile, copied to registers before the loop around it."""
    name = fresh(launch, f"{tile.name.removesuffix('_shared')}_local")
    held = replace(tile, name=name, scope=Scope.FRAGMENT, comment="")
    load = next(stmt for stmt in launch.body if isinstance(stmt, Copy) and tile in buffers_written(stmt))
    about = f"Every iteration's MMA reads the same {tile.name}: read once, and kept in registers  [{HELD}]"
    copied = Copy(src=whole(tile, load), dst=whole(held, load), span=load.span, comments=(about,))
    multiplied = replace(product, a=replace(product.a, buffer=held))
    at = len(before(launch.body, outermost(launch.body, product)))
    body = in_body(launch.body, lambda body, place: (multiplied,) if body[place] is product else None)
    return replace(launch, body=(*body[:at], copied, *body[at:]), tiles=(*launch.tiles, held))


def in_flight(launch: Launch, product: Gemm) -> Launch:
    """The launch with the product's first operand, a fragment, copied to one of its own just before it."""
    tile = product.a.buffer
    copy = replace(tile, name=fresh(launch, f"{tile.name}_in_flight"), comment="")
    copied = Copy(src=whole(tile, product), dst=whole(copy, product), span=product.span)
    multiplied = replace(product, a=replace(product.a, buffer=copy))
    body = in_body(launch.body, lambda body, place: (copied, multiplied) if body[place] is product else None)
    return replace(launch, body=body, tiles=(*launch.tiles, copy))
