"""The figures at the top of a page: what a reviewer asks first."""

from collections.abc import Iterator

from tile2cu.core.record import Record
from tile2cu.review.kernel import Kernel


class Card(Record, frozen=True, kw_only=True):
    """A figure with its name and a note. `section` is the part of the page that it leads to; `warns` marks a defect."""

    name: str
    value: str
    note: str = ""
    section: str = "resources"
    warns: bool = False


def cards(kernel: Kernel) -> Iterator[Card]:
    """The cards in their order: what a block takes, what is known of its execution, what was found."""
    launches = kernel.manifest_launches
    most = max(launches, key=lambda launch: int(launch["shared_bytes"]))
    count = f"{len(launches)} launches" if len(launches) > 1 else " x ".join(map(str, launches[0]["grid"]))
    yield Card(name="threads per block", value=str(max(launch["threads"] for launch in launches)), note=count)
    shared, limit = most["shared_bytes"], most["shared_limit"]
    share = f"bytes, {shared / limit:.0%} of a block's limit" if limit else "bytes"
    yield Card(name="shared memory", value=f"{shared:,}", note=share, section="memory")
    yield from _compiled(kernel)
    if kernel.bound is not None:
        bound = kernel.bound
        us = bound.us if bound.us is not None else max(part.us for part in bound.parts)
        what = "predicted time" if bound.us is not None else "roofline"
        yield Card(name=what, value=f"{us:.1f} us" if us >= 1 else f"{us:.2f} us", note=bound.headline, section="bound")
    if kernel.run is not None:
        found = len(kernel.run.findings)
        value, note = (str(found), "findings of a checked run") if found else ("clean", "a checked run on the CPU")
        yield Card(name="checks", value=value, note=note, section="run", warns=bool(found))
    warned = len(kernel.warnings)
    yield Card(name="warnings", value=str(warned), note="of this kernel", section="warnings", warns=bool(warned))


def _compiled(kernel: Kernel) -> Iterator[Card]:
    """Of the compiled kernel that takes most registers; without a compiler, the registers of its tiles."""
    if kernel.compiled is None:
        registers = max(launch["tile_registers"] for launch in kernel.manifest_launches)
        yield Card(name="registers for tiles", value=str(registers), note="per thread; not compiled")
        return
    most = max(kernel.compiled.kernels, key=lambda each: each.compiled.registers)
    spills = most.compiled.spills
    note = "per thread, some spill to memory" if spills else "per thread, no spills"
    yield Card(name="registers", value=str(most.compiled.registers), note=note, warns=spills)
    held = most.occupancy
    unit = "block per SM" if held.blocks_per_sm == 1 else "blocks per SM"
    limited = f"{unit}, by {' and '.join(held.limited_by)}"
    yield Card(name="occupancy", value=str(held.blocks_per_sm), note=limited, warns=not held.blocks_per_sm)
    if most.waves is not None:
        note = f"{most.waves.efficiency:.0%} of their places used"
        yield Card(name="waves", value=f"{most.waves.count:.2f}", note=note)
