"""What bounds a call: by the cost model, or by the roofline where the model does not predict the kernel."""

import re
from collections.abc import Mapping
from typing import Any

from tile2cu.analysis.work import mma_flops
from tile2cu.chooser.choose import NoModel, Ranked, reasons
from tile2cu.choosing import Tunable
from tile2cu.core.choice import named
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.program import Program
from tile2cu.core.record import Record
from tile2cu_runtime.bench import roofline_of, work_of
from tile2cu_runtime.peaks import gpu_of
from tile2cu_runtime.spec import Manifest

_FIGURES = re.compile(r" at | \(|; ")
_LEADERS = 5  # settings that the page lists


class Part(Record, frozen=True, kw_only=True):
    """What a part of the GPU takes for the work of a call, in microseconds."""

    name: str
    us: float


class Setting(Record, frozen=True, kw_only=True):
    """Values of the tile parameters, and the predicted microseconds; `own` are those of this page's kernel."""

    values: str
    us: float
    own: bool


class Bound(Record, frozen=True, kw_only=True):
    """What bounds a call with these sizes on `gpu`.

    With a model `us` is the predicted time, and `settings` are the fastest by it, with this kernel's own; without one
    `us` is None, and `no_model` states why.
    """

    gpu: str
    sizes: str
    parts: tuple[Part, ...]
    by: str
    us: float | None = None
    settings: tuple[Setting, ...] = ()
    no_model: str = ""

    @property
    def headline(self) -> str:
        """What bounds it, without figures."""
        return _FIGURES.split(self.by)[0]

    @property
    def scale(self) -> float:
        """The longest of the times, for bars."""
        return max(*(part.us for part in self.parts), self.us or 0.0, 1e-9)


def bound_of(
    tunable: Tunable, program: Program, manifest: Manifest, numbers: Mapping[str, Any], sizes: Mapping[str, int]
) -> Bound | None:
    """What bounds a call of a kernel; None for a GPU that is in neither table.

    `numbers` are all sizes and scalars of the call, `sizes` those that were given for it.
    """
    given = ", ".join(f"{name} = {value}" for name, value in numbers.items())
    try:
        return _by_model(tunable, program, sizes, given)
    except (NoModel, Tile2CuError) as error:
        return _by_roofline(program, manifest, numbers, given, str(getattr(error, "message", error)))


def _by_model(tunable: Tunable, program: Program, sizes: Mapping[str, int], given: str) -> Bound:
    """Raises NoModel, and Tile2CuError where the file's own setting is rejected."""
    ranking = tunable.ranking(sizes)
    chosen = getattr(program.choice, "setting", None)
    own = ranking.time_of(dict(chosen)) if chosen is not None else ranking.default
    leaders = ranking.best(_LEADERS)
    listed = leaders if own.setting in {each.setting for each in leaders} else [*leaders[: _LEADERS - 1], own]
    return Bound(
        gpu=tunable.costs.card,
        sizes=given,
        parts=tuple(_parts(own)),
        by=reasons(own),
        us=own.us,
        settings=tuple(
            Setting(values=named(each.setting), us=each.us, own=each.setting == own.setting) for each in listed
        ),
    )


def _parts(ranked: Ranked) -> list[Part]:
    """Of the launches together."""
    return [
        Part(name="tensor cores", us=sum(each.mma for each in ranked.times)),
        Part(name="DRAM", us=sum(each.dram for each in ranked.times)),
        Part(name="iterations of the blocks, wave after wave", us=sum(each.path for each in ranked.times)),
    ]


def _by_roofline(
    program: Program, manifest: Manifest, numbers: Mapping[str, Any], given: str, no_model: str
) -> Bound | None:
    """The least times of the work, without what a launch and its waves add."""
    gpu = gpu_of(manifest.target)
    work = work_of(manifest, numbers, mma_flops(program, numbers))
    roofline = roofline_of(manifest, work, gpu)
    if roofline is None:
        return None
    parts = [Part(name="tensor cores", us=roofline.mma_ms * 1e3)] if roofline.mma_ms else []
    name, count = ("the tensor cores", work.mma_flops or 0) if roofline.bound == "mma" else ("DRAM", work.total_bytes)
    unit = "operations of MMAs" if roofline.bound == "mma" else "bytes"
    return Bound(
        gpu=gpu,
        sizes=given,
        parts=(*parts, Part(name="DRAM", us=roofline.dram_ms * 1e3)),
        by=f"bound by {name} at {roofline.ms * 1e3:.1f} us or more: {count:,} {unit} at the peak rate",
        no_model=no_model,
    )
