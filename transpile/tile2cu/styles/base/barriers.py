"""The table of a producer's barriers: whose arrivals complete a phase, who waits for it, and the hazard it orders."""

from collections.abc import Iterator

from tile2cu.core.record import Record
from tile2cu.plan.producer_ops import Iterations, Ring
from tile2cu.plan.roles import Producer, Prologue, SlabbedStages
from tile2cu.plan.slabs import Slabs
from tile2cu.styles.base.comments import BODY_WIDTH, listed, table, wrapped
from tile2cu.styles.base.names import Names
from tile2cu.styles.base.vocabulary import ALLREDUCE_SUM, FRAGMENT_STORED, MMA_STARTED, SYNC_READERS

_Row = tuple[str, str, str, str]
_HEAD: _Row = ("barrier", "completed by", "waiting", "orders")
_PRODUCER = "producer"
_ARRIVALS_OF_TMA = "The producer's arrival announces the bytes that TMA then counts down (mbarrier.arrive.expect_tx)"
_ARRIVALS_OF_GATHERS = (
    "Each producer thread arrives when its copies to the slab are complete (cp.async.mbarrier.arrive.noinc)"
)
SLAB = "__n"  # the name of a slab's number
_BY_TMA = "producer; TMA"
_BY_GATHERS = "producer's threads"


_FENCED = (
    " cp.async writes by the generic proxy, wgmma reads by the async proxy: behind either wait is a proxy fence of the "
    "threads that issue wgmma."
)


def barriers_name(ring: Ring, names: Names) -> str:
    """The barriers of a ring."""
    return names(f"{ring.tile.name}_barriers")


def numbered(wish: str, of: Iterations, names: Names) -> str:
    """The name of a loop's pipeline, or its state: numbered for further loops."""
    if of.number == 1:
        return names(f"__{wish}") if wish == "stage" else wish
    return names(f"__{wish}_{of.number}")


class SlabWords(Record, frozen=True, kw_only=True):
    """How a style writes what the comments on a ping-pong loop's barriers name: the number of `stages`, the wait for an
    MMA's result. Named barriers of events have numbers behind `reserved` ones.
    """

    stages: str
    wait: str
    reserved: int = 0


def barrier_table(producer: Producer, names: Names, words: SlabWords) -> tuple[str, ...]:
    """A line for each barrier, under their heads, and what holds for all."""
    gathered = producer.stages is not None and producer.stages.gathered
    about = (
        f"{_ARRIVALS_OF_GATHERS if gathered else _ARRIVALS_OF_TMA}; each consumer warp arrives once. "
        f"{'cp.async' if gathered else 'TMA'} writes out-of-bounds elements as zeros."
    )
    if producer.multicast:
        about += f" A cluster's first block multicasts the tiles that its blocks share  [{producer.multicast_rule}]"
    names = names.in_comments
    if producer.persistent is not None and producer.prologue is not None and not producer.prologue.used:
        first = _loaded_first(producer.prologue, names)
        about += f" Each tile of work is a phase of prologue_barriers: one without iterations loads {first}, too."
    lines = table((_HEAD, *_rows(producer, names)), BODY_WIDTH)
    if producer.stages is not None:
        return (*lines, *wrapped(about, BODY_WIDTH), *_about_slabs(producer.stages, words, names))
    return (*lines, *wrapped(about, BODY_WIDTH))


def _rows(producer: Producer, names: Names) -> Iterator[_Row]:
    consumers = f"{producer.threads // 32} consumer warps"
    if producer.stages is not None:
        yield from _of_slabs(producer.stages, names)
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


def _of_slabs(stages: SlabbedStages, names: Names) -> Iterator[_Row]:
    """The barriers of a ping-pong loop (headers/tl/common/sm90/tma_slabs.h, exchange.h)."""
    owner, other, both = "warpgroup k % 2", "warpgroup 1 - k % 2", "2 warpgroups"
    handed = ", ".join(names(name) for name in stages.handed)
    shared = next(names(each.tile.name) for each in stages.slabs if each.shared)
    ranges = ", ".join(f"{numbers(part)} (g = {g})" for g, part in enumerate(stages.parts))
    slab = names(SLAB)
    yield f"barriers.full[s][{slab}]", _BY_GATHERS if stages.gathered else _BY_TMA, owner, f"RAW slab {slab}"
    yield "barriers.empty[s][g]", "4 warps of warpgroup g", _PRODUCER, f"WAR slabs {ranges}"
    yield (
        f"{MMA_STARTED}, even k",
        "warpgroup 0",
        "warpgroup 1",
        f"{names(stages.first)} k is issued before k + 1: for speed, no hazard",
    )
    yield f"{FRAGMENT_STORED}, k", owner, other, f"RAW {handed}, {shared}[s]; WAR slabs of tile k"
    if stages.exchanged:
        freed = "".join(f"; WAR {names(tile)}, by {names(staging)}" for staging, tile in stages.summed_before)
        yield ALLREDUCE_SUM, both, both, f"RAW {names(stages.exchanged)}{freed}"
    for staging, tile in stages.reuses:
        yield SYNC_READERS, both, both, f"WAR {names(tile)}, by {names(staging)}"


def _about_slabs(stages: SlabbedStages, words: SlabWords, names: Names) -> Iterator[str]:
    """Who reads and releases each slab, why that suffices, and the numbers of the named barriers."""
    first, last, slab = names(stages.first), names(stages.last), names(SLAB)
    count, waited, issued, stored = words.stages, words.wait.format, words.reserved + 2, words.reserved + 4
    yield from table((("slabs of tile k", "read by", "released by"), *_slabs(stages, names)), BODY_WIDTH)
    ordinary = [f"{ALLREDUCE_SUM} (twice)"] * bool(stages.exchanged) + [SYNC_READERS] * bool(stages.reuses)
    behind = f", {listed(ordinary)} 1" if ordinary else ""
    whose = "the producer's" if stages.gathered else "TMA's"
    behind += f" (NamedBarrier adds {words.reserved} to an event's)" if words.reserved else ""
    for about in (
        f"Tile k is in stage s = k % {count}. Consumers wait for the phase of full with parity k / {count} % 2, the "
        "producer for the phase of empty with the opposite parity, which a barrier without any arrival passes: it "
        f"loads the first {count} tiles without waiting.",
        f"RAW: the owner of iteration k, warpgroup k % 2, waits for full[s][{slab}] before slab {slab} of {first} k. "
        f"The other warpgroup reads tile k only in {last} k, after it has waited at {FRAGMENT_STORED} k, at which "
        f"the owner arrives after {waited(first)}, so after all slabs have arrived. It needs no wait at full: the "
        f"owner's wait there and the named barrier order {whose} writes "
        "before its reads, as causality order is transitive [PTX ISA, Memory Consistency Model]."
        f"{_FENCED * stages.gathered}",
        f"WAR: warpgroup g releases its slabs after {waited(last)}, the last of its own reads. The other one "
        f"reads them only in {first} k, as the owner: these reads are complete before it arrives at "
        f"{FRAGMENT_STORED} k, where g waits before {last} k.",
        f"Named barriers: {MMA_STARTED} {issued} (k is even), {FRAGMENT_STORED} {stored} + k % 2{behind}. Iteration "
        f"k + 2 uses those of k again. No arrival for k + 2 completes a phase of k: the arriving warpgroup has passed "
        f"{FRAGMENT_STORED} k + 1, at which the other one arrives after its waits of iteration k.",
    ):
        yield from wrapped(about, BODY_WIDTH)


def _slabs(stages: SlabbedStages, names: Names) -> Iterator[tuple[str, str, str]]:
    """The rows of the table of slabs."""
    for each in stages.slabs:
        which = numbers(range(each.first, each.last + 1))
        read = f"{names(stages.first)} k of warpgroup k % 2"
        read += f", {names(stages.last)} k of warpgroup {each.part}" * each.shared
        yield f"{which}: {_columns(each, names)}", read, f"warpgroup {each.part}"


def _columns(slabs: Slabs, names: Names) -> str:
    """Which columns of which tile they are."""
    start, end = slabs.start * slabs.columns, (slabs.start + slabs.count) * slabs.columns - 1
    return f"{names(slabs.tile.name)}[s]" + f" columns {start}-{end}" * slabs.shared


def numbers(slabs: range) -> str:
    """Slabs by their numbers: `0-3`."""
    return f"{slabs[0]}-{slabs[-1]}" if len(slabs) > 1 else str(slabs[0])


def called(slabs: range) -> str:
    """Slabs by their numbers, with the noun: `slab 0`, `slabs 1-2`."""
    return f"slab{'s' * (len(slabs) > 1)} {numbers(slabs)}"


def of_first_part(stages: SlabbedStages) -> str:
    """Whose part of a stage begins with its first slab."""
    own = len(stages.parts[0])
    first = f"first {own}" if own > 1 else "first one"
    return f"Of a stage's {stages.total} slabs warpgroup 0 releases the {first}, warpgroup 1 the others"


def _loaded_first(prologue: Prologue, names: Names) -> str:
    return ", ".join(names(load.dst.buffer.name) for load in prologue.copies)


def _of_prologue(producer: Producer, names: Names, consumers: str) -> Iterator[_Row]:
    if producer.prologue is None:
        return
    tiles = _loaded_first(producer.prologue, names)
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
        yield "scheduled_tiles.wanted", "producer, once per tile", fetching, "the next fetch; WAR work[i]"
