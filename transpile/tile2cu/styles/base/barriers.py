"""The table of a producer's barriers: whose arrivals complete a phase, who waits for it, and the hazard it orders."""

from collections.abc import Iterator

from tile2cu.plan.producer_ops import Iterations, Ring
from tile2cu.plan.roles import Panels, Producer
from tile2cu.styles.base.comments import BODY_WIDTH, table, wrapped
from tile2cu.styles.base.names import Names

_Row = tuple[str, str, str, str]
_HEAD: _Row = ("barrier", "completed by", "waiting", "orders")
_PRODUCER = "producer"


def barriers_name(ring: Ring, names: Names) -> str:
    """The barriers of a ring."""
    return names(f"{ring.tile.name}_barriers")


def numbered(wish: str, of: Iterations, names: Names) -> str:
    """The name of a loop's pipeline, or its state: numbered for further loops."""
    if of.number == 1:
        return names(f"__{wish}") if wish == "stage" else wish
    return names(f"__{wish}_{of.number}")


def barrier_table(producer: Producer, names: Names) -> tuple[str, ...]:
    """A line for each barrier, under their heads, and what holds for all."""
    about = "A warp arrives once. TMA writes out-of-bounds elements as zeros."
    if producer.multicast:
        about += f" A cluster's first block multicasts the tiles that its blocks share  [{producer.multicast_rule}]"
    return (*table((_HEAD, *_rows(producer, names)), BODY_WIDTH), *wrapped(about, BODY_WIDTH))


def _rows(producer: Producer, names: Names) -> Iterator[_Row]:
    consumers = f"{producer.threads // 32} consumer warps"
    if producer.panels is not None:
        yield from _of_slabs(producer.panels, names)
    elif producer.rings:
        for ring in producer.rings:
            yield from _of_stages(barriers_name(ring, names), _held(ring, names), consumers, consumers)
    else:
        released = f"{consumers} of each of {producer.multicast} blocks" if producer.multicast else consumers
        for fed in producer.pipelines:
            tiles = ", ".join(f"{names(tile.name)}[s]" for tile in fed.tiles)
            yield from _of_stages(numbered("barriers", fed.iterations, names), tiles, consumers, released)
    yield from _of_prologue(producer, names, consumers)
    yield from _of_scheduler(producer, consumers)


def _of_stages(barriers: str, tiles: str, consumers: str, released: str) -> Iterator[_Row]:
    yield f"{barriers}.full[s]", "TMA: bytes of stage s", consumers, f"RAW {tiles}"
    yield f"{barriers}.empty[s]", f"{released}", _PRODUCER, f"WAR {tiles}"


def _held(ring: Ring, names: Names) -> str:
    """What a stage of the pipeline holds: its tile, and its iteration where the producer states it."""
    return f"{names(ring.tile.name)}[s]" + ", active_iterations[s]" * ring.publishes


def _of_slabs(slabs: Panels, names: Names) -> Iterator[_Row]:
    parts = ", ".join(f"{count} of {names(tile.name)}" for tile, count in slabs.counts)
    first, shared = slabs.first_part, names(slabs.tile.name)
    columns = f"its columns of {shared}[s] (slabs from {first} on for g = 1)"
    read = f"RAW slab n ({parts}); warpgroup 1 - k % 2 waits only for its columns of {shared}"
    yield "barriers.full[s][n]", "TMA: bytes of slab n of stage s", "2 warpgroups", read
    yield "barriers.empty[s][g]", "4 warps of warpgroup g", _PRODUCER, f"WAR {columns}"
    yield "named barrier 2", "warpgroup 0: its MMAs are issued", "warpgroup 1", "issue order of the MMAs"
    yield "named barrier 4 + k % 2", "warpgroup k % 2", "warpgroup 1 - k % 2", "RAW the fragments of iteration k"


def _of_prologue(producer: Producer, names: Names, consumers: str) -> Iterator[_Row]:
    if producer.prologue is None:
        return
    tiles = ", ".join(names(load.dst.buffer.name) for load in producer.prologue.copies)
    if producer.persistent is None:
        yield "prologue_full", f"TMA: bytes of {tiles}", consumers, f"RAW {tiles}"
    else:
        yield "prologue_barriers.full[0]", f"TMA: bytes of {tiles}", consumers, f"RAW {tiles}"
        yield "prologue_barriers.empty[0]", consumers, _PRODUCER, f"WAR {tiles}"


def _of_scheduler(producer: Producer, consumers: str) -> Iterator[_Row]:
    persistent = producer.persistent
    if persistent is None or not persistent.queue:
        return
    readers = consumers if persistent.idle is None else f"{consumers}, producer"
    fetching = _PRODUCER if persistent.idle is None else "fetching warp"
    yield "scheduled_tiles.full[i]", f"{fetching}: publishes tile i", readers, "RAW work[i]"
    yield "scheduled_tiles.empty[i]", consumers, fetching, "WAR work[i]"
    if persistent.idle is not None:
        yield "scheduled_tiles.wanted", "producer, once a tile", fetching, "the fetch of the next tile"
