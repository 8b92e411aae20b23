"""Warnings: what is emitted as the file asks for, and probably not what its author wants."""

from collections.abc import Mapping

from tile2cu.core.explanation import Explanation

WARNINGS: Mapping[str, Explanation] = {
    "T2C-W001": Explanation(
        "a tile is read before it is written",
        "No statement before the read, in program order, writes to the tile, so that results depend on what its memory "
        "or its registers held before. Most often a T.clear before a T.gemm is missing.",
    ),
    "T2C-W002": Explanation(
        "a tail of a tensor is never accessed",
        "The tiles that the kernel accesses end less than one tile before the end of the tensor: a grid or a loop has "
        "`size // tile` steps where the size is no multiple of the tile. T.ceildiv covers the tail; accesses past the "
        "end are bounds-checked.",
    ),
    "T2C-W003": Explanation(
        "a block index is used along a dimension of another extent",
        "The index of the grid, times the tile, does not cover the dimension, while another index of the same grid "
        "does: `bx` and `by` are probably swapped. The first name after `as` goes with the first extent of T.Kernel.",
    ),
    "T2C-W004": Explanation(
        "accesses to global memory are not coalesced",
        "The lanes of a warp access a tensor in at least four times as many sectors of 32 bytes as their elements "
        "fill, so that most of each memory transaction is wasted. The last loop variable of T.Parallel should index "
        "the last dimension of the tensor, or the tile be copied with T.copy and transposed in shared memory. Loops "
        "of fewer than 4 KiB per tensor are not reported.",
    ),
    "T2C-W005": Explanation(
        "a call has no effect in the emitted kernel",
        "Python's print runs when the file is traced, which tile2cu does not execute. T.print prints from the kernel.",
    ),
    "T2C-W006": Explanation(
        "a GEMM does not run on tensor cores",
        "No MMA instruction of the target takes these element types, or the tile is smaller than the shape of one. "
        "Each thread then computes with scalar FMA, which has a fraction of the throughput.",
    ),
    "T2C-W007": Explanation(
        "an integer accumulator may overflow",
        "The sum of as many elements of the operand's type as the kernel adds does not fit the accumulator's type: "
        "a reduction into 8 or 16 bits, or an int8 GEMM whose K exceeds what 32 bits can hold.",
    ),
    "T2C-W008": Explanation(
        "a comment is not in the emitted source",
        "The statement that the comment belongs to has no counterpart of its own in the emitted source.",
    ),
    "T2C-W009": Explanation(
        "fragments need more registers than a thread has",
        "The fragments that are live at one time exceed the registers that a thread of such a block can have, so that "
        "the compiler keeps parts of them in local memory, which is global memory behind the L1 cache. Addresses and "
        "temporaries need registers besides, which are not counted here. Kernels with T.ws are not examined.",
    ),
    "T2C-W010": Explanation(
        "a name is bound again, which the next iteration does not see",
        "One arm of a branch in a loop assigns to a name that the other arm reads. The loop's body is traced once, so "
        "that the other arm reads the value from before the loop in every iteration; in Python it would read the "
        "assigned one.",
    ),
    "T2C-W011": Explanation(
        "threads copy one tile from different places",
        "A coordinate of T.copy depends on the thread. A tile operation is of the whole block: each thread moves the "
        "elements that the layout gives it, at the place that it computes itself, so that the tile consists of "
        "elements of several places. Kernels with T.ws, and copies of T.alloc_local, are not examined.",
    ),
    "T2C-W012": Explanation(
        "iterations of T.Parallel read elements of a shared tile that others write",
        "The iterations of T.Parallel are unordered and run in different threads, without a barrier between them: "
        "`S[i] = S[127 - i]` may read an element before or after another iteration has written it. Of a fragment the "
        "values from before the loop are read. Accesses under a condition are not examined.",
    ),
}
