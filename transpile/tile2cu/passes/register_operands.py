"""Register-resident operands: a loop-invariant tile of MMAs, and a copy for an MMA in flight."""

from msgspec.structs import replace

from tile2cu.analysis.accesses import buffers_written
from tile2cu.analysis.prelude import before, outermost
from tile2cu.analysis.uses import statements
from tile2cu.core.program import Buffer, Copy, Gemm, Launch, Scope, Stmt
from tile2cu.core.rebuild import in_body, with_buffer, with_instead
from tile2cu.passes.tiles import fresh, whole

HELD = "pipeline.gemm.register-operand"
LOADED = "pipeline.gemm.loaded-operand"


def in_registers(launch: Launch, mma: Gemm, tile: Buffer) -> Launch:
    """The launch with the MMA's A operand, a shared tile, copied to registers before the loop around it."""
    name = fresh(launch, f"{tile.name.removesuffix('_shared')}_local")
    held = replace(tile, name=name, scope=Scope.FRAGMENT, comment="")
    load = next(stmt for stmt in statements(launch.body, Copy, below=False) if tile in buffers_written(stmt))
    about = f"Every iteration's MMA reads the same {tile.name}: read once, and kept in registers  [{HELD}]"
    copied = Copy(src=whole(tile, load), dst=whole(held, load), span=load.span, comments=(about,))
    multiplied = replace(mma, a=replace(mma.a, buffer=held))
    at = len(before(launch.body, outermost(launch.body, mma)))
    body = with_instead(launch.body, {id(mma): (multiplied,)})
    return replace(launch, body=(*body[:at], copied, *body[at:]), tiles=(*launch.tiles, held))


def loaded(launch: Launch, tile: Buffer) -> Launch:
    """The launch with an A operand, a shared tile, loaded from its tensor to registers in its place."""
    held = replace(tile, name=fresh(launch, f"{tile.name.removesuffix('_shared')}_local"), scope=Scope.FRAGMENT)
    reasons = "the MMAs of each wave read its own rows only, and a SIMD has registers for two waves with it"
    about = f"To registers, not through {tile.name}: {reasons}  [{LOADED}]"

    def noted(body: tuple[Stmt, ...], position: int) -> tuple[Stmt, ...] | None:
        stmt = body[position]
        is_load = isinstance(stmt, Copy) and stmt.dst.buffer is tile
        return (replace(stmt, comments=(*stmt.comments, about)),) if is_load else None

    body = with_buffer(in_body(launch.body, noted), tile, held)
    tiles = (*(each for each in launch.tiles if each is not tile), held)
    return replace(launch, body=body, tiles=tiles)


def in_flight(launch: Launch, mma: Gemm) -> Launch:
    """The launch with the MMA's A operand, a fragment, copied to one of its own just before it."""
    tile = mma.a.buffer
    copy = replace(tile, name=fresh(launch, f"{tile.name}_in_flight"), comment="")
    copied = Copy(src=whole(tile, mma), dst=whole(copy, mma), span=mma.span)
    multiplied = replace(mma, a=replace(mma.a, buffer=copy))
    body = with_instead(launch.body, {id(mma): (copied, multiplied)})
    return replace(launch, body=body, tiles=(*launch.tiles, copy))
