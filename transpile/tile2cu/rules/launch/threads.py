"""Thread-level operations of the user: whether the target has them, and what they require of layouts."""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from tile2cu.analysis.accesses import parts_of
from tile2cu.analysis.sync_calls import BLOCK_VOTES
from tile2cu.core.decisions import BLOCK_VOTE, PTX_VERSION, SHARED_LAYOUT
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.expr import ROUNDED, ROUNDINGS, Address, Call
from tile2cu.core.layout import SharedLayout
from tile2cu.core.memo import kept
from tile2cu.core.program import Buffer, Launch, Scope, Stmt
from tile2cu.core.shared_memory import BlockVote
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule

_CHUNK_BYTES = 16  # contiguous under every swizzle: headers/tl/common/swizzle.h
_ONLY_NVIDIA: Mapping[str, tuple[str, str]] = MappingProxyType(
    dict.fromkeys(("cp_async", "cp_async_commit", "cp_async_wait"), ("cp.async", "write T.copy"))
    | dict.fromkeys(
        (f"{name}_{rounding}" for name in ROUNDED for rounding in ROUNDINGS[1:]),
        ("instruction with a rounding mode other than nearest", 'write `rounding_mode="rn"`'),
    )
    | {
        "sync_grid": (
            "barrier of the grid that tile2cu emits in a kernel",
            "keep what goes on in a tensor (T.alloc_global), and write T.sync_grid() where all blocks come once",
        )
    }
    | dict.fromkeys(("barrier_sync", "barrier_arrive"), ("barrier of a part of the block", "write T.sync_threads()"))
)
# PTX that a compute capability introduced, as a user's asm statement writes it: PTX ISA, 'Target ISA Notes'
# of each instruction.
_PTX_SINCE = (
    (re.compile(r"\b(?:add|sub|mul)(?:\.rn|\.rz)?\.bf16(?:x2)?\b"), (9, 0)),
    (re.compile(r"\b(?:cp\.async\.bulk|mbarrier\.try_wait|setmaxnreg|wgmma|mapa|barrier\.cluster)\b[.\w]*"), (9, 0)),
    (re.compile(r"\btcgen05\b[.\w]*"), (10, 0)),
)
_ASM = re.compile(r"\basm\b")
_COUNT = "n = T.syncthreads_count(T.get_thread_binding() > 3)"
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


@rule(
    "layout.shared.addressed",
    phase=Phase.STRICT,
    on=Stmt,
    writes=(SHARED_LAYOUT,),
    source="docs/tl.md, address",
    examples=(
        Example(
            'S = T.alloc_shared((64, 64), "float16")\n'
            'p = T.alloc_local((32,), "float16")\n'
            "T.import_source('__device__ void load(__half* from, __half* to);')\n"
            'T.call_extern("handle", "load", T.access_ptr(S[0, 0], "r", 32), T.access_ptr(p, "w"))',
            "S",
            "layout",
            "no swizzle",
        ),
    ),
)
def shared_addressed(op: Stmt, context: Context) -> Iterator[Decision]:
    """A shared tile is stored row by row if inline user code gets the address of more than 16 bytes of it.

    Gives: its layout.
    """
    for tile in _addressed(op):
        yield tile, SHARED_LAYOUT, SharedLayout(tile.static_shape, tile.dtype.bits)


def addressed_in_rows(tile: Buffer, context: Context) -> bool:
    """Whether a shared tile is stored row by row because its address is taken."""
    return any(found is tile for op in context.statements for found in _addressed(op))


@kept
def _addressed(op: Stmt) -> tuple[Buffer, ...]:
    """The shared tiles of which a function gets the address of more than the 16 bytes that a swizzle keeps together."""
    found = []
    for part in _parts(op):
        if isinstance(part, Address):
            assert isinstance(part.buffer, Buffer)
            if part.buffer.scope is Scope.SHARED and part.dtype.bytes_of(part.extent) > _CHUNK_BYTES:
                found.append(part.buffer)
    return tuple(found)


@rule(
    "select.thread.available",
    phase=Phase.WARPS,
    on=Stmt,
    writes=(BLOCK_VOTE,),
    source="CUDA C++ Programming Guide, 'Synchronization Functions'; AMD Instinct MI300 ISA, 'S_BARRIER'",
    examples=(
        Example(_COUNT, 1, "block_vote", "by a barrier with a reduction"),
        Example(_COUNT, 1, "block_vote", "by the waves' ballots, through LDS", target="hip:gfx942"),
    ),
)
def thread_available(op: Stmt, context: Context) -> Iterator[Decision]:
    """Votes, shuffles and barriers of single threads must exist on the target.

    A vote of the block is NVIDIA's barrier with a reduction. CDNA's barrier has none: the waves exchange the counts of
    their ballots through LDS, between two barriers; a block of one wave needs no exchange.

    Gives: how the threads of a block vote.
    Errors: T2C-S006 where the target lacks what a thread calls.
    """
    for part in _parts(op):
        function = part.function.partition("<")[0] if isinstance(part, Call) else ""
        if function in _ONLY_NVIDIA and context.target.mfma:
            raise Tile2CuError(
                "T2C-S006",
                f"{context.target.arch} has no {_ONLY_NVIDIA[function][0]}",
                op.span,
                help=_ONLY_NVIDIA[function][1],
            )
        if function in BLOCK_VOTES:
            yield op, BLOCK_VOTE, _vote(context)


def _vote(context: Context) -> BlockVote:
    if not context.target.is_amd:
        return BlockVote.BARRIER
    return BlockVote.LDS if context.launch.threads > context.target.warp_size else BlockVote.WAVE


@rule(
    "select.extern.ptx",
    phase=Phase.WARPS,
    on=Launch,
    writes=(PTX_VERSION,),
    source="PTX ISA, 'Target ISA Notes' of each instruction",
    examples=(
        Example(
            'T.import_source(\'__device__ void twice(int* x) { asm("mul.bf16x2 %0, %0, %0;" : "+r"(*x)); }\')',
            "launch",
            "ptx_since",
            "(9, 0)",
            target="cuda:sm_90a",
        ),
    ),
)
def inline_ptx(launch: Launch, context: Context) -> Iterator[Decision]:
    """Instructions in inline asm must exist on the target, unless the code checks for its architecture.

    Gives: the compute capability that they need, where it is more than the oldest supported one.
    Errors: T2C-S006 where the target lacks one.
    """
    newest = (0, 0)
    for user_code in context.program.user_code:
        text = _COMMENT.sub("", user_code.text)
        if context.target.mfma or not _ASM.search(text) or "__CUDA_ARCH__" in text:
            continue
        for instruction, since in _PTX_SINCE:
            found = instruction.search(text)
            if found and context.target.capability < since:
                raise Tile2CuError(
                    "T2C-S006",
                    f"{context.target.arch} has no {found[0]}, which an asm statement of the file's inline C++ uses",
                    user_code.span,
                    help=f"take a target from sm_{since[0]}{since[1]} on, or put it under `#if __CUDA_ARCH__ >= ...`",
                )
            newest = max(newest, since if found else newest)
    if newest > (0, 0):
        yield launch, PTX_VERSION, newest


def _parts(op: Stmt) -> Iterator[object]:
    return parts_of((op,))
