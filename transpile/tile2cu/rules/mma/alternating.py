"""Hopper: loops whose iterations two warpgroups can take alternately, and the rows that a producer gathers for them."""

from tile2cu.analysis.accesses import loaded
from tile2cu.analysis.bounds import Bounds
from tile2cu.analysis.uses import statements
from tile2cu.core.expr import static_value
from tile2cu.core.program import Copy, Gemm, Launch, Scope
from tile2cu.core.schedule import Pipeline
from tile2cu.rules.memory.tensors import POINTER_BYTES
from tile2cu.rules.mma.wgmma_support import WARPGROUP, split_of

GROUPS = 2


def shares_columns_of_last(pipeline: Pipeline) -> bool:
    """Whether an iteration ends with a GEMM of a tile that it computes, whose columns two warpgroups share."""
    second = pipeline.body[-1]
    if not isinstance(second, Gemm) or second.a.buffer.scope is not Scope.SHARED or second.a.buffer in pipeline.buffers:
        return False
    split = split_of(second, GROUPS)
    mmas = tuple(statements(pipeline.body, Gemm, below=False))
    return len(mmas) > 1 and split is not None and split.n == GROUPS


def gathers_unsupported(pipeline: Pipeline, launch: Launch, bounds: Bounds) -> str:
    """Why a producer cannot gather the rows that a loop loads; empty if it can, or none are gathered.

    Its warpgroup gathers them by cp.async, which arrives slab by slab: loops that two warpgroups take alternately wait
    for slabs.
    """
    gathers = pipeline.gathers
    if not gathers:
        return ""
    line = f"the copy in line {gathers[0].span.line} gathers rows"
    if launch.threads != GROUPS * WARPGROUP or not shares_columns_of_last(pipeline):
        return line
    if len(gathers) < len(pipeline.copies):
        return f"{line}, and others of its loop do not"
    return next(filter(None, (_gather_unsupported(load, bounds) for load in gathers)), "")


def _gather_unsupported(load: Copy, bounds: Bounds) -> str:
    """Why cp.async cannot gather the rows of a copy 16 bytes at a time; empty if it can."""
    tensor, line = load.src.buffer, f"the copy in line {load.span.line}"
    places = (*(part.start for part in load.src.ranges), *(() if load.when is None else (load.when,)))
    if any(buffer.scope is not Scope.GLOBAL for buffer in loaded(*places)):
        return f"{line} gathers rows that a tile selects"
    elements = tensor.dtype.elements_in(POINTER_BYTES)
    strides = tensor.strides[:-1] if tensor.strides is not None else (tensor.shape[-1],)
    known = [static_value(stride) for stride in strides]
    start = load.src.ranges[-1].start
    if any(stride is None or int(stride) % elements for stride in known) or bounds.multiple_of(start) % elements:
        return f"{line} gathers rows that may start at no multiple of {POINTER_BYTES} bytes"
    return ""
