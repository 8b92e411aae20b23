"""Diagnostics of the command line, of the rules and of emission."""

from collections.abc import Mapping

from tile2cu.core.explanation import Explanation

# The command line and files.
_COMMAND_LINE: Mapping[str, Explanation] = {
    "T2C-C001": Explanation("the file cannot be read", "It does not exist, may not be read, or is not UTF-8 text."),
    "T2C-C002": Explanation(
        "-D is not of the form NAME=VALUE",
        "A value that reads as an integer, a float, True, False or None becomes that; anything else is a string, such "
        "as the name of an element type.",
    ),
    "T2C-C003": Explanation(
        "no target has this name",
        "A target is a language and an architecture as its compiler names it, such as cuda:sm_80.",
    ),
    "T2C-C004": Explanation(
        "the file has several kernels, and one is wanted",
        "Printing to standard output and loading take one kernel. A kernel is named by its outermost function.",
    ),
    "T2C-C005": Explanation(
        "the files cannot be written",
        "Nothing was written: all files are written to temporary names first, and renamed only when each is complete. "
        "The standard output may end early, where a disk is full.",
    ),
    "T2C-C006": Explanation(
        "nothing has this name",
        "`tile2cu explain` takes a Python file, an emitted source with its manifest next to it, a line of either as "
        "FILE:LINE, the id of a rule as the emitted source names it in brackets, or the code of a diagnostic. "
        "`tile2cu layout` takes the name of a tile of the Python file.",
    ),
    "T2C-C010": Explanation(
        "there is no project",
        "Without a file, tile2cu builds what the nearest pyproject.toml lists under [tool.tile2cu]. "
        "docs/vendoring.md has an example.",
    ),
    "T2C-C011": Explanation(
        "[tool.tile2cu] has an unknown key",
        "An unknown key is usually a typing error, and ignoring it would emit something else.",
    ),
    "T2C-C012": Explanation(
        "[tool.tile2cu] has a wrong value",
        "Each key has one type; targets and styles are names that tile2cu knows.",
    ),
    "T2C-C013": Explanation(
        "two entries write the same file",
        "A kernel's files are named for it. Kernels that share a name go to different folders.",
    ),
    "T2C-C014": Explanation(
        "an emitted file was edited",
        "The manifest has the hash of each file as it was emitted. A file that differs has manual edits, and is "
        "overwritten only with --force.",
    ),
    "T2C-C015": Explanation(
        "git is missing or failed",
        "`tile2cu update` merges with `git merge-file`; `tile2cu review --against` reads a revision of the file.",
    ),
    "T2C-C017": Explanation(
        "a single header is for one vendor",
        "NVIDIA, AMD and the CPU engine have primitives of their own, and the engine's sources include the headers "
        "one by one.",
    ),
    "T2C-C018": Explanation(
        "a line cannot be mapped",
        "`tile2cu map` takes NAME.cu:LINE of an emitted source; or its manifest, which holds the map, and a line of "
        "the source or py:LINE.",
    ),
    "T2C-C019": Explanation(
        "a Python package is not installed",
        "Transpiling needs the packages that `pip install tile2cu` brings; building and running kernels needs those of "
        "`tile2cu[run]`, too.",
    ),
    "T2C-C020": Explanation(
        "tiles are to be chosen, and a size has no value",
        "The model predicts the time of a call, which depends on all of its sizes. Give them with -D, or let each call "
        'choose: `tile2cu.load(FILE, tiles="auto")`.',
    ),
    "T2C-C021": Explanation(
        "a file of tuned settings cannot be read",
        "NAME.tune.json is written by `tile2cu tune`; its schema is docs/schemas/tune.schema.json. It was edited, "
        "or written by another version.",
    ),
    "T2C-C022": Explanation(
        "a kernel has no parameters to tune",
        "A tile parameter is an integer parameter of the factory that has a default (or a value in a configuration of "
        "`@autotune`), that divides an extent of the grid or a trip count, and that reaches tiles, threads, stages or "
        "parts of a loop alone: no tensor's shape and no element's value depends on it.",
    ),
    "T2C-C023": Explanation(
        "files of a family take different arguments",
        "The model chooses among the kernels of a family (`--family`), which is one C function: they take the same "
        "tensors and scalars, by name, type and rank, in the same order.",
    ),
    "T2C-C024": Explanation(
        "the workers of `tile2cu tune` cannot measure",
        "`--gpus` starts a process for each GPU of the host, `--ray` an actor for each GPU of a cluster. There is "
        "none, a worker reads other files than those of the kernel, or it ends each time it measures a shape.",
    ),
    "T2C-C030": Explanation(
        "a function has no source",
        "A kernel is read from the text of its function. Functions of C, of the interactive prompt or of `exec` have "
        "none; those of files and of notebooks' cells do.",
    ),
    "T2C-C031": Explanation(
        "a part of TileLang's interface is not in tile2cu.tilelang",
        "docs/migrating.md lists every part, with what replaces it. `tile2cu migrate FILE` finds them in a file.",
    ),
    "T2C-C016": Explanation(
        "a manual edit conflicts with the regenerated source",
        "Nothing of the kernel was written. The side file has both versions between markers, and their common base; "
        "once the markers are removed, the next `tile2cu update` takes it.",
    ),
}

# Diagnostics of the rules on layouts and storage.
_LAYOUT: Mapping[str, Explanation] = {
    "T2C-L001": Explanation(
        "two rules require different layouts of one tile",
        "Each fact has one rule. When two rules state different values of the same fact, no source satisfies both, so "
        "both are named, with the lines that caused them. An annotation of the tile's layout decides.",
    ),
    "T2C-L010": Explanation(
        "the warps cannot share a GEMM",
        "A warp owns a contiguous part of the result, a multiple of 16 rows and of 8 columns, and all parts are "
        "equal. The warps of the block (threads / 32) have to be factors of the tile in that sense.",
    ),
    "T2C-L013": Explanation(
        "a fragment cannot be reduced along this dimension",
        "A reduction combines registers of a thread, then lanes, then warps. Fragments of up to three dimensions are "
        "supported.",
    ),
    "T2C-L014": Explanation(
        "a fragment is indexed by something other than the loop's variables",
        "A fragment's elements are distributed over the threads. A T.Parallel loop gives each thread its own "
        "elements; another thread's are read as they were before the loop, and written, through shared memory. "
        "Unsupported are dependences between iterations, which are independent: sums over elements of other "
        "iterations, and a read of an element that the same iteration may have written to another thread.",
    ),
    "T2C-L015": Explanation(
        "4-bit elements are not accessed in pairs",
        "Memory holds two 4-bit elements per byte. Rows and slices of tensors and shared tiles are whole bytes. A "
        "loop writes both halves of a byte together where its last variable runs over whole rows, otherwise each by "
        "an atomic operation. Results of reductions, scans, atomics and T.print take wider elements.",
    ),
    "T2C-L016": Explanation(
        "a layout maps two elements of a tile to one address",
        "T.annotate_layout of a shared tile is a hint: the rules choose its layout. A layout in which one element "
        "would overwrite another is an error all the same, and the two elements are named.",
    ),
    "T2C-L020": Explanation(
        "the tiles do not fit into shared memory",
        "The table lists the bytes of each tile, all its pipeline stages included, and the target's limit per block. "
        "Tiles with disjoint lifetimes share memory, and loops have fewer stages than they ask for, where that is "
        "enough.",
    ),
    "T2C-L021": Explanation(
        "a block cannot have this many threads",
        "A block is a whole number of warps, up to the target's limit of threads.",
    ),
}

# Diagnostics of the rules on pipelines and barriers.
_PIPELINE: Mapping[str, Explanation] = {
    "T2C-P002": Explanation(
        "a barrier would be in divergent code",
        "A barrier waits for all threads of the block. Threads that skip it never arrive, and the block hangs. A "
        "branch that whole warps take (on NVIDIA GPUs), or lanes of one warp, has a barrier of its threads, and "
        "others are split, so that all threads reach the barrier between the parts. A loop whose iterations depend "
        "on the thread has none; nor has a branch whose statements order others, as barriers of the file do.",
    ),
    "T2C-P003": Explanation(
        "independent groups of threads would share one operation",
        "Under T.ws each warpgroup sees its own threads as the whole block. A reduction or a scan exchanges partial "
        "results in shared memory, so it belongs to one group.",
    ),
    "T2C-P004": Explanation(
        "an operation on a whole tile is in divergent code",
        "The threads of the block share the elements of a tile. Where branches partition the threads into whole "
        "warps, each part is an independent group, as under T.ws; operations on tiles in other branches are executed "
        "by all threads, unless barriers surround them or they depend on the thread. Groups are equal or disjoint, as "
        "each has a barrier and fragments of its own; groups of different sizes cannot share a fragment.",
    ),
}

# Diagnostics of the choice of instructions.
_SELECT: Mapping[str, Explanation] = {
    "T2C-S001": Explanation(
        "no MMA instruction takes these types, and they are in registers",
        "The target's table of MMA instructions has no row for the types of the operands and of the accumulator. Each "
        "thread then computes FMAs, and reads its operands from shared memory. The note lists the rows.",
    ),
    "T2C-S002": Explanation(
        "K of a GEMM is not a multiple of the instruction's",
        "An MMA instruction has a fixed K, which must divide the tile's. Elements past the end of a tensor are filled "
        "with zeros and add nothing.",
    ),
    "T2C-S003": Explanation(
        "an operand of a GEMM is where no instruction reads it",
        "In registers A may not be transposed, and B has elements of 16 bits; others go through shared memory. The "
        "GEMM's own result cannot.",
    ),
    "T2C-S006": Explanation(
        "the target has no instruction for this",
        "Synchronisation between threads and asynchronous operations differ between targets: mbarriers, for instance, "
        "are NVIDIA's; transaction barriers and TMA need sm_90.",
    ),
    "T2C-S007": Explanation(
        "TMA cannot do the copy of a T.tma_copy",
        "TMA moves boxes of a tensor of up to five dimensions whose rows are aligned to 16 bytes, without converting, "
        "to all rows and columns of a shared tile.",
    ),
    "T2C-S008": Explanation(
        "the target does not multiply such sparse matrices",
        "T.gemm_sp runs on mma.sp: a float16 or bfloat16 matrix with 2:4 sparsity, on NVIDIA from sm_80 on, "
        "accumulated in float32.",
    ),
}

# Diagnostics of emission.
_EMISSION: Mapping[str, Explanation] = {
    "T2C-E001": Explanation(
        "a statement cannot be emitted",
        "The front end accepts a statement that the emitter does not support yet. This is a gap of tile2cu: please "
        "report it with the kernel.",
    ),
    "T2C-E003": Explanation(
        "the two sides of a copy do not line up",
        "Dimensions of extent 1 are ignored; the number of the others has to be equal on both sides.",
    ),
    "T2C-E020": Explanation(
        "a dispatch is not well formed",
        "A dispatch has a name, a Python file and entries; an entry has a name and, if it needs them, a target, "
        "bindings, a condition and a measurement. Names become parts of C functions.",
    ),
    "T2C-E021": Explanation(
        "the condition of an entry cannot be read",
        "`when` is made of comparisons and integer arithmetic (+ - * // %) of the kernel's sizes and integer "
        "arguments, joined with `and` and `or`.",
    ),
    "T2C-E022": Explanation(
        "the entries of a dispatch are not one function",
        "All kernels under one entry take the same tensors and scalars in the same order. Sizes may be compile-time "
        "constants or run-time values, element types may differ.",
    ),
    "T2C-E023": Explanation(
        "a dispatch has no fallback",
        "For each combination of element types, the last entry takes every call: it has no condition, takes as "
        "run-time values the sizes that another entry does, requires no multiples, and runs wherever the others do.",
    ),
    "T2C-E030": Explanation(
        "a kernel has no plain C++ reference",
        "The test that --with-test writes runs the program element by element, without threads. A kernel that uses "
        "its thread index, or shows a tensor in another shape, cannot be run that way.",
    ),
    "T2C-E031": Explanation(
        "a kernel cannot be called through a shim",
        "--shim writes the kernel as an operator of torch, a custom call of JAX, a function of tvm-ffi or over DLPack, "
        "or a pybind11 module. "
        "These know dense tensors of the common element types, and scalars.",
    ),
    "T2C-E032": Explanation(
        "the kernels of one source have different groups of threads",
        "T.ws partitions a kernel's threads into independent groups, and tile operations see the threads of one. The "
        "partition is the same for all kernels of a source.",
    ),
    "T2C-E033": Explanation(
        "a kernel's name cannot be a C function's",
        "The launcher is called from C and has the kernel's name: the outermost Python function's (the file's, for "
        "one called main). C++ keywords and the names that the emitted source itself needs are reserved.",
    ),
    "T2C-E034": Explanation(
        "a style does not support an operation, or a target",
        "`--style` chooses the vocabulary of the emitted source. `tl` supports every kernel on every target; `cute` "
        "and `ck` have the names of CuTe and of ck_tile for a part of the operations, and the message names the one "
        "that is missing.",
    ),
    "T2C-E010": Explanation(
        "clang-format failed",
        "The source is formatted by the pinned clang-format, so that it has the same bytes everywhere. Its message "
        "follows.",
    ),
    "T2C-E011": Explanation(
        "the clang-format package is missing",
        "Without it the source would have other bytes, so nothing is written. It is a dependency of tile2cu, in an "
        "exact version.",
    ),
}

DECISIONS: Mapping[str, Explanation] = {**_COMMAND_LINE, **_LAYOUT, **_PIPELINE, **_SELECT, **_EMISSION}
