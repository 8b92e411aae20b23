"""The table of a producer's barriers: whose arrivals complete a phase, who waits for it, and the hazard it orders."""

from collections.abc import Iterator

from tile2cu.core.program import Buffer
from tile2cu.plan.producer_ops import Iterations, Ring
from tile2cu.plan.roles import Panels, Producer
from tile2cu.styles.base.comments import BODY_WIDTH, listed, table, wrapped
from tile2cu.styles.base.names import Names
from tile2cu.styles.base.vocabulary import ALLREDUCE_SUM, FRAGMENT_STORED, MMA_STARTED, SYNC_READERS

_Row = tuple[str, str, str, str]
_HEAD: _Row = ("barrier", "completed by", "waiting", "orders")
_PRODUCER = "producer"
_BY_TMA = "producer; TMA"


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
    about = (
        "The producer's arrival announces the bytes that TMA then counts down (mbarrier.arrive.expect_tx); each "
        "consumer warp arrives once. TMA writes out-of-bounds elements as zeros."
    )
    if producer.multicast:
        about += f" A cluster's first block multicasts the tiles that its blocks share  [{producer.multicast_rule}]"
    if producer.panels is not None:
        about = f"{_about_slabs(producer.panels, names)} {about}"
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
    yield f"{barriers}.full[s]", _BY_TMA, consumers, f"RAW {tiles}"
    yield f"{barriers}.empty[s]", f"{released}", _PRODUCER, f"WAR {tiles}"


def _held(ring: Ring, names: Names) -> str:
    """What a stage of the pipeline holds: its tile, and its iteration where the producer states it."""
    return f"{names(ring.tile.name)}[s]" + ", active_iterations[s]" * ring.publishes


def _of_slabs(slabs: Panels, names: Names) -> Iterator[_Row]:
    """The barriers of a ping-pong loop (headers/tl/common/sm90/tma_slabs.h, exchange.h)."""
    owner, other, both = "warpgroup k % 2", "warpgroup 1 - k % 2", "2 warpgroups"
    handed = ", ".join(names(name) for name in slabs.handed)
    ranges = f"WAR slabs 0-{slabs.first_part - 1} (g = 0), {slabs.first_part}-{slabs.total - 1} (g = 1)"
    yield "barriers.full[s][n]", _BY_TMA, owner, "RAW slab n"
    yield "barriers.empty[s][g]", "4 warps of warpgroup g", _PRODUCER, ranges
    yield f"{MMA_STARTED}, k", "warpgroup 0", "warpgroup 1", f"issue order: {names(slabs.first)} k, k + 1"
    yield f"{FRAGMENT_STORED}, k", owner, other, f"RAW {handed}, {names(slabs.tile.name)}[s]"
    if slabs.exchanged:
        freed = "".join(f"; WAR {names(tile)}, by {names(staging)}" for staging, tile in slabs.summed_before)
        yield ALLREDUCE_SUM, both, both, f"RAW {names(slabs.exchanged)}{freed}"
    for staging, tile in slabs.reuses:
        yield SYNC_READERS, both, both, f"WAR {names(tile)}, by {names(staging)}"


def _about_slabs(slabs: Panels, names: Names) -> str:
    """Which slabs are whose, why one warpgroup alone waits for TMA, and the numbers of the named barriers."""
    ordinary = [f"{ALLREDUCE_SUM} (twice)"] * bool(slabs.exchanged) + [SYNC_READERS] * bool(slabs.reuses)
    last = f", {listed(ordinary)} 1" if ordinary else ""
    return (
        f"Slabs {_slab_ranges(slabs.counts, names)}. Of iteration k its owner alone, warpgroup k % 2, waits for TMA: "
        f"{FRAGMENT_STORED} orders TMA's writes before the other's reads of {names(slabs.tile.name)}[s], too, and "
        f"the owner's reads of all slabs before either warpgroup's release. Named barriers: {MMA_STARTED} 2 (k is "
        f"even), {FRAGMENT_STORED} 4 + k % 2{last}."
    )


def _slab_ranges(counts: tuple[tuple[Buffer, int], ...], names: Names) -> str:
    """Which slabs of a stage are which tile's: `0-7 of KV_shared[s], 8 of K_pe_shared[s]`."""
    parts, start = [], 0
    for tile, count in counts:
        which = str(start) if count == 1 else f"{start}-{start + count - 1}"
        parts.append(f"{which} of {names(tile.name)}[s]")
        start += count
    return ", ".join(parts)


def _of_prologue(producer: Producer, names: Names, consumers: str) -> Iterator[_Row]:
    if producer.prologue is None:
        return
    tiles = ", ".join(names(load.dst.buffer.name) for load in producer.prologue.copies)
    if producer.persistent is None:
        yield "prologue_full", _BY_TMA, consumers, f"RAW {tiles}"
    else:
        yield "prologue_barriers.full[0]", _BY_TMA, consumers, f"RAW {tiles}"
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
