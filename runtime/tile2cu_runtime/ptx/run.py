"""Runs a kernel of a PTX module on NumPy arrays: all threads of some blocks at once."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tile2cu_runtime.amdgcn.arguments import Arguments, ArgumentValue, extent_of
from tile2cu_runtime.amdgcn.global_memory import GlobalMemory
from tile2cu_runtime.ptx.barriers import ClusterBarriers, MemoryBarriers, NamedBarriers
from tile2cu_runtime.ptx.errors import PtxError
from tile2cu_runtime.ptx.parse import Kernel, parse
from tile2cu_runtime.ptx.program import Program
from tile2cu_runtime.ptx.state import WARP, Threads
from tile2cu_runtime.ptx.tma import BulkCopies
from tile2cu_runtime.ptx.wgmma import Warpgroups

THREADS_AT_ONCE = 1024
STEP_LIMIT = 50_000_000


class Module:
    """A PTX module whose kernels can be launched; decoded programs are cached."""

    def __init__(self, text: str) -> None:
        self.kernels = parse(text)
        self._programs: dict[str, Program] = {}

    @staticmethod
    def load(path: Path) -> Module:
        return Module(path.read_text(encoding="utf-8"))

    def find(self, *parts: str) -> str:
        """The one kernel whose symbol contains these parts. PtxError if there is none, or several."""
        found = [name for name in self.kernels if all(part in name for part in parts)]
        if len(found) != 1:
            raise PtxError(f"{len(found)} kernels match {parts}: {list(self.kernels)}")
        return found[0]

    def launch(
        self,
        kernel: str,
        grid: Sequence[int],
        block: Sequence[int],
        arguments: Sequence[ArgumentValue],
        *,
        shared_bytes: int = 0,
        limit: int = STEP_LIMIT,
        names: Sequence[str] = (),
    ) -> int:
        """Runs a kernel; arrays are global buffers and hold the result afterwards. Returns the number of executed
        instructions.

        Shapes: `grid` in blocks, `block` in threads, up to three extents each; `shared_bytes` of dynamic memory.
        Errors: PtxError for a fault of the kernel (out of bounds, misaligned, an incomplete warp at a warp-wide
        instruction), and for unsupported instructions; SimulatorError for arguments that do not fit the kernel.
        """
        chosen = self.kernels[kernel]
        program = self._programs.setdefault(kernel, Program(chosen))
        called = Arguments(arguments, names)
        store = GlobalMemory(called.contents)
        addresses = called.place(store.buffers)
        counts, threads = extent_of(grid), extent_of(block)
        ids = _in_clusters(counts, chosen.cluster)
        a_block = threads[0] * threads[1] * threads[2]
        if a_block % WARP:
            raise PtxError(f"a block of {a_block} threads is not a whole number of warps")
        in_cluster = chosen.cluster[0] * chosen.cluster[1] * chosen.cluster[2]
        executed, at_once = 0, max(1, THREADS_AT_ONCE // (a_block * in_cluster)) * in_cluster
        with np.errstate(all="ignore"):
            for first in range(0, len(ids), at_once):
                blocks = ids[first : first + at_once]
                state = Threads(
                    kernel=chosen,
                    blocks=blocks,
                    grid=counts,
                    block=threads,
                    parameters=_parameter_bytes(chosen, called, addresses),
                    memory=store,
                    shared_bytes=chosen.shared_bytes + shared_bytes,
                    barriers=NamedBarriers(a_block * len(blocks)),
                    clusters=ClusterBarriers(a_block * len(blocks), a_block * in_cluster),
                    mbarriers=MemoryBarriers(a_block * len(blocks)),
                    bulk=BulkCopies(),
                    warpgroups=Warpgroups(a_block, len(blocks)),
                )
                executed += program.run(state, limit - executed)
        called.write_back(store)
        return executed


def _in_clusters(grid: tuple[int, int, int], cluster: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    """The block indices, cluster after cluster, by rank. Errors: PtxError if the clusters do not divide the grid."""
    if any(blocks % each for blocks, each in zip(grid, cluster, strict=True)):
        raise PtxError(f"a grid of {grid} blocks is not divisible by clusters of {cluster}")
    steps = zip(reversed(grid), reversed(cluster), strict=True)
    firsts = itertools.product(*(range(0, blocks, each) for blocks, each in steps))
    ranks = list(itertools.product(*map(range, cluster[::-1])))
    return [(x + i, y + j, z + k) for z, y, x in firsts for k, j, i in ranks]


def _parameter_bytes(kernel: Kernel, arguments: Arguments, addresses: dict[int, int]) -> bytes:
    if len(arguments.values) != len(kernel.parameters):
        raise PtxError(f"{kernel.name} takes {len(kernel.parameters)} arguments, not {len(arguments.values)}")
    raw = bytearray(sum(each.bytes for each in kernel.parameters) + 64)
    for number, parameter in enumerate(kernel.parameters):
        content = arguments.bytes_of(number, parameter.bytes, addresses, kernel.name)
        raw[parameter.offset : parameter.offset + parameter.bytes] = content
    return bytes(raw)
