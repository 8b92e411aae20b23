"""Diagnostics of the command line, of the rules and of emission."""

from collections.abc import Mapping

from tile2cu.core.explanation import Explanation

# The command line and files.
_COMMAND_LINE: Mapping[str, Explanation] = {
    "T2C-C001": Explanation("the file cannot be read", "It does not exist, may not be read, or is not UTF-8 text."),
    "T2C-C002": Explanation(
        "-D is not of the form NAME=VALUE",
        "A value that reads as an integer, a float, True, False or None becomes that; anything else is text, such as "
        "the name of an element type.",
    ),
    "T2C-C003": Explanation(
        "no target has this name",
        "A target is a language and a chip as its compiler spells it, such as cuda:sm_80.",
    ),
    "T2C-C004": Explanation(
        "the file has several kernels, and one is wanted",
        "Printing to standard output and loading take one kernel. A kernel is named by its outermost function.",
    ),
    "T2C-C005": Explanation(
        "the files cannot be written",
        "Nothing was written: all files are put beside their places first, and moved there only when each is complete.",
    ),
    "T2C-C006": Explanation(
        "nothing has this name",
        "`tile2cu explain` takes a Python file, the id of a rule as the emitted text names it in brackets, or the code "
        "of a diagnostic.",
    ),
    "T2C-C010": Explanation(
        "there is no project",
        "Without a file, tile2cu builds what the nearest pyproject.toml lists under [tool.tile2cu]. "
        "docs/vendoring.md has an example.",
    ),
    "T2C-C011": Explanation(
        "[tool.tile2cu] has an unknown key",
        "A key that means nothing is mostly a slip of the pen, and ignoring it would emit something else.",
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
        "a file was edited by hand",
        "The manifest has the hash of each file as it was emitted. A file that differs holds somebody's work, and is "
        "written over only with --force.",
    ),
    "T2C-C015": Explanation("git is missing or failed", "`tile2cu update` merges with `git merge-file`."),
    "T2C-C017": Explanation(
        "a single header is for one kind of machine",
        "NVIDIA, AMD and the CPU engine have primitives of their own, and the engine's sources include the headers "
        "one by one.",
    ),
    "T2C-C018": Explanation(
        "a line cannot be translated",
        "`tile2cu map` takes a kernel's manifest, which holds the map, and a line of the text or py:LINE.",
    ),
    "T2C-C016": Explanation(
        "an edit by hand conflicts with what is emitted now",
        "Nothing of the kernel was written. The side file has both versions between markers, and the text that both "
        "started from; without its markers it is taken by the next `tile2cu update`.",
    ),
}

# What the rules on layouts and storage refuse.
_LAYOUT: Mapping[str, Explanation] = {
    "T2C-L001": Explanation(
        "two rules want different things for one tile",
        "Each fact has one rule. When two rules settle the same fact differently, no text is right by both, so both "
        "are named, with the lines that made them speak. An annotation of the tile's layout decides.",
    ),
    "T2C-L010": Explanation(
        "the warps cannot share a product",
        "A warp owns a contiguous part of the result, a multiple of 16 rows and of 8 columns, and all parts are "
        "equal. The warps of the block (threads / 32) have to be factors of the tile in that sense.",
    ),
    "T2C-L013": Explanation(
        "a fragment cannot be reduced along this dimension",
        "A reduction combines registers of a thread, then lanes, then warps. Fragments of up to three "
        "dimensions can be reduced.",
    ),
    "T2C-L014": Explanation(
        "a fragment is indexed by something else than the loop's variables",
        "A fragment's elements are spread over the threads. A T.Parallel loop gives each thread its own elements; "
        "another thread's are read as they were before the loop, and written, through shared memory. Refused is what "
        "the turns of a loop, which are independent, cannot tell: sums over elements of other turns, and a read of "
        "what the same turn may have written to another thread.",
    ),
    "T2C-L015": Explanation(
        "elements of 4 bits are not taken two at a time",
        "Memory holds two elements of 4 bits a byte. Rows and parts of tensors and shared tiles are whole bytes. A "
        "loop writes both halves of a byte at once where it goes through whole rows with its last variable, else each "
        "by an atomic operation. Results of reductions, scans, atomics and T.print take wider elements.",
    ),
    "T2C-L016": Explanation(
        "a layout puts two elements of a tile in one place",
        "T.annotate_layout of a shared tile is a hint: the rules choose where its elements lie. A layout in which one "
        "element would overwrite another is a slip all the same, and the two elements are named.",
    ),
    "T2C-L020": Explanation(
        "the tiles do not fit into shared memory",
        "The table shows what each tile takes, its slots in a pipeline included, against what the chip gives a block. "
        "Tiles that are in use one after the other share memory, and loops have fewer stages than they ask for, where "
        "that is enough.",
    ),
    "T2C-L021": Explanation(
        "a block cannot have this many threads",
        "A block has whole warps, and at most as many threads as the chip allows.",
    ),
}

# What the rules on pipelines and barriers refuse.
_PIPELINE: Mapping[str, Explanation] = {
    "T2C-P002": Explanation(
        "a barrier would stand in a branch that not all threads take",
        "A barrier waits for all threads of the block. Threads that skip the branch never arrive, and the block hangs.",
    ),
    "T2C-P003": Explanation(
        "groups of threads that work by themselves would do one thing together",
        "Under T.ws each warpgroup sees its own threads as the whole block. A reduction or a scan exchanges parts in "
        "shared memory, so it belongs to one group.",
    ),
    "T2C-P004": Explanation(
        "an operation on a whole tile stands in a branch that only some threads take",
        "The threads of the block share the elements of a tile. Where branches give shares of whole warps work, each "
        "share is a group that works by itself, as under T.ws; operations on tiles in other branches are done by all "
        "threads, unless they stand between barriers or depend on the thread. Groups are equal or have no thread in "
        "common, as each has a barrier and fragments of its own, and what several of different sizes would do with one "
        "fragment is nobody's.",
    ),
}

# What the choice of instructions refuses.
_SELECT: Mapping[str, Explanation] = {
    "T2C-S001": Explanation(
        "no instruction multiplies these types, and they are in registers",
        "The chip's table of matrix instructions has no row for the types of the operands and of the accumulator. Each "
        "thread then multiplies and adds, and reads its operands from shared memory. The note lists the rows.",
    ),
    "T2C-S002": Explanation(
        "K of a product is not a multiple of the instruction's",
        "One matrix instruction takes a fixed number of elements of K. The tile is a whole number of them; what lies "
        "past the end of a tensor is filled with zeros and adds nothing.",
    ),
    "T2C-S003": Explanation(
        "an operand of a product lies where it cannot be read",
        "In registers A may not be transposed, and B has elements of 16 bits; others go through shared memory. The "
        "product's own result cannot.",
    ),
    "T2C-S006": Explanation(
        "the chip has no instruction for this",
        "What threads ask of one another, and what runs beside them, is not the same on every chip: barriers that "
        "count, for instance, are NVIDIA's; barriers that count bytes, and TMA, came with sm_90.",
    ),
    "T2C-S007": Explanation(
        "TMA cannot do a copy that is asked of it",
        "TMA moves boxes of a tensor of up to five dimensions whose rows start at multiples of 16 bytes, without "
        "converting, into all rows and columns of a shared tile.",
    ),
    "T2C-S008": Explanation(
        "the chip does not multiply such sparse matrices",
        "T.gemm_sp runs on mma.sp: a float16 or bfloat16 matrix of which memory has two of each four neighbours, on "
        "NVIDIA from sm_80 on, into float32.",
    ),
}

# What emission refuses.
_EMISSION: Mapping[str, Explanation] = {
    "T2C-E001": Explanation(
        "a statement has no text",
        "The front end accepts a statement that the emitter cannot write yet. This is a gap of tile2cu: please report"
        " it with the kernel.",
    ),
    "T2C-E003": Explanation(
        "the two sides of a copy do not line up",
        "Dimensions of extent 1 are left out; the others have to be equally many on both sides.",
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
        "All kernels under one entry take the same tensors and scalars in the same order. Sizes may be compiled in or "
        "left open, element types may differ.",
    ),
    "T2C-E023": Explanation(
        "a dispatch has no fallback",
        "For each combination of element types, the last entry takes every call: it has no condition, leaves open the "
        "sizes that another entry leaves open, asks for no multiples, and runs wherever the others do.",
    ),
    "T2C-E030": Explanation(
        "a kernel has no plain C++ reference",
        "The test that --with-test writes runs the program one element after the other, without threads. A kernel that "
        "asks which thread it is, or takes a scalar that plain C++ has not, cannot be run that way.",
    ),
    "T2C-E031": Explanation(
        "a kernel cannot be called through a shim",
        "--shim writes the kernel as an operator of torch, a function of tvm-ffi or over DLPack, or a pybind11 module. "
        "These know dense tensors of the common element types, and scalars that plain C++ has.",
    ),
    "T2C-E032": Explanation(
        "one kernel of a text has groups of threads, another has not, or others",
        "T.ws makes groups of a kernel's threads work by themselves, and tile operations see the threads of one. That "
        "is said once for a whole text.",
    ),
    "T2C-E033": Explanation(
        "a kernel's name cannot be a C function's",
        "The launcher is called from C and has the kernel's name: the outermost Python function's (the file's, for "
        "one called main). C++ keywords and the names that the emitted file itself stands on are taken.",
    ),
    "T2C-E034": Explanation(
        "a style cannot write an operation, or for a target",
        "`--style` chooses the vocabulary that a kernel is written in. `tl` writes every kernel for every target; "
        "`cute` has CuTe's words for a part of the operations, and the message names the one that it lacks.",
    ),
    "T2C-E010": Explanation(
        "clang-format failed",
        "The text is formatted by the pinned clang-format, so that it has the same bytes everywhere. Its message "
        "follows.",
    ),
    "T2C-E011": Explanation(
        "the clang-format package is missing",
        "Without it the text would have other bytes, so nothing is written. It is a dependency of tile2cu, in an "
        "exact version.",
    ),
}

DECISIONS: Mapping[str, Explanation] = {**_COMMAND_LINE, **_LAYOUT, **_PIPELINE, **_SELECT, **_EMISSION}
