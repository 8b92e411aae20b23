"""The diagnostics: one table, by code. docs/errors.md is written from it.

Letters: F front end, L layout, P pipeline, S select, E emit, R runtime, C command line, W warnings.
"""

from collections.abc import Mapping
from types import MappingProxyType

from tile2cu.core.codes_decisions import DECISIONS
from tile2cu.core.codes_runtime import RUNTIME
from tile2cu.core.codes_warnings import WARNINGS
from tile2cu.core.explanation import Explanation

_FRONT_END = {
    "T2C-F001": Explanation(
        "the file is not Python",
        "The file has a syntax error. The message is that of the Python that runs tile2cu, so a kernel that uses newer "
        "syntax needs a newer Python.",
    ),
    "T2C-F002": Explanation(
        "the file is too large or nested too deeply",
        "Files up to 500,000 characters and 120 levels of nesting are read, and kernels with up to 64 loops and "
        "branches inside one another, far beyond what a person writes. The limits keep a damaged or hostile file from "
        "exhausting the stack.",
    ),
    "T2C-F003": Explanation(
        "the file has no kernel",
        "A kernel is a function under @tilelang.jit whose own body has `with T.Kernel(...)`, a function that returns a "
        "nested @T.prim_func, or a @T.prim_func at module level.",
    ),
    "T2C-F004": Explanation(
        "no kernel has the name that was asked for",
        "A kernel is named by its outermost function: the factory, not the prim_func inside it.",
    ),
    "T2C-F005": Explanation(
        "-D names something that cannot be bound",
        "-D binds parameters of factories and eager functions, and sizes from T.const and T.dynamic.",
    ),
    "T2C-F006": Explanation(
        "a value is needed at transpile time, but left unbound",
        "A parameter without a value stays a size that is known at run time, as long as only extents, indices and loop "
        "bounds depend on it. Shapes of tiles, conditions of static branches, element types, thread counts and stages "
        "need a number. It comes from -D, from the parameter's default, or from a call of the factory in the file. A "
        "run-time size must also be the whole extent of a tensor, since callers do not pass it.",
    ),
    "T2C-F007": Explanation(
        "a value known only at run time is needed at transpile time",
        "The value depends on an index of the grid, on a loop's variable or on an element of a tensor, so no binding "
        "can make it a number.",
    ),
    "T2C-F008": Explanation(
        "a value is known only by running the file",
        "tile2cu reads the user's file without executing it. Results of other libraries, of the driver or of the "
        "environment are not known to it. The kernel may not depend on them, except through a parameter.",
    ),
    "T2C-F009": Explanation(
        "a name is not defined",
        "Names follow Python's scopes. In addition, names bound inside a loop or branch of the kernel end with it, "
        "since there is no value that they could have after it.",
    ),
    "T2C-F010": Explanation("a name does not exist in the tile language", "The name is nowhere in tilelang.language."),
    "T2C-F011": Explanation(
        "a part of the tile language is not supported yet",
        "The name or option exists in tilelang.language, but tile2cu cannot translate it yet.",
    ),
    "T2C-F012": Explanation(
        "a form of Python is not supported",
        "Kernels, factories and helpers may use plain functions and classes, loops, conditions, comprehensions, "
        "f-strings and the usual literals. Exceptions, generators, `class` inside functions and the like "
        "are not evaluated.",
    ),
    "T2C-F013": Explanation(
        "an attribute or method is not available",
        "The file sees a fixed list of attributes and methods, since it is never executed.",
    ),
    "T2C-F014": Explanation(
        "an operation fails",
        "Python would raise here as well: a division by zero, a missing key, an operation on values that do not go "
        "together, or a `raise` in the file.",
    ),
    "T2C-F015": Explanation(
        "evaluating the file takes too long",
        "Evaluation is limited to 200,000 steps and 30 nested calls, ten times what the largest kernels need. Loops of "
        "factories and helpers run at transpile time; loops of the kernel's body do not.",
    ),
    "T2C-F016": Explanation(
        "a value is too large",
        "Integers of more than 4096 bits, strings of more than 100,000 characters, sequences of more than 65,536 "
        "items and expressions of more than 2,000 operations are rejected. Numbers of the program must fit into 64 "
        "bits.",
    ),
    "T2C-F017": Explanation("the arguments of a call do not fit", "An argument is missing, unknown or given twice."),
    "T2C-F018": Explanation(
        "not an element type",
        "Element types are given as T.float16, torch.float16 or the string 'float16'.",
    ),
    "T2C-F019": Explanation("an assertion fails", "A static `assert` in a factory, helper or kernel does not hold."),
    "T2C-F020": Explanation(
        "the shapes in T.copy do not agree",
        "A whole buffer has its shape, a slice its extents; `A[i, j]` is a corner, and the box is as large as the "
        "other side. Dimensions of extent 1 are ignored on both sides; the rest must be equal.",
    ),
    "T2C-F021": Explanation(
        "the shapes in T.gemm do not agree",
        "C is (M, N). A is (M, K), or (K, M) with transpose_A; B is (K, N), or (N, K) with transpose_B.",
    ),
    "T2C-F022": Explanation(
        "the shapes in T.reduce do not agree",
        "The result has the source's shape without the reduced dimension, or with extent 1 there.",
    ),
    "T2C-F023": Explanation(
        "an argument is of the wrong kind",
        "A function of the tile language got a value that it cannot use: an element where a buffer is needed, a tensor "
        "in global memory where a tile is needed, a negative extent.",
    ),
    "T2C-F024": Explanation(
        "an index does not fit its buffer",
        "A buffer takes one integer index per dimension, and constant indices must be in bounds. For a tile, an index "
        "with no value in bounds is an error, too, as is a slice that always exceeds the bounds. So is an index that "
        "all blocks compute and whose largest value int32 does not hold, for any sizes.",
    ),
    "T2C-F025": Explanation(
        "T.Kernel is missing or in the wrong place",
        "A kernel has one `with T.Kernel(...)` or several in sequence, never nested, and not inside loops or branches "
        "of the program. Tiles belong to the T.Kernel in which they are allocated.",
    ),
    "T2C-F026": Explanation(
        "a loop has the wrong form",
        "Loops of a kernel go through range, T.serial, T.unroll, T.vectorized, T.Pipelined, T.Persistent, T.grid or "
        "T.Parallel, or are `while`. T.Parallel has one name for each extent, and only elementwise statements inside.",
    ),
    "T2C-F027": Explanation(
        "a name would have to carry a value between iterations",
        "Assigning to a name in a loop of the kernel defines a new value whose scope is the iteration. TileLang "
        "evaluates `x = x + 1` once, which is rarely meant. A scalar that changes is declared with T.alloc_var.",
    ),
    "T2C-F028": Explanation(
        "the outputs of the kernel are not clear",
        "`out_idx` names tensors of the prim_func, from the end when negative. An eager kernel returns all tensors "
        "that it makes with T.empty, and nothing else.",
    ),
    "T2C-F029": Explanation(
        "a parameter has no type, or a wrong one",
        "Parameters of a prim_func are annotated with T.Tensor(shape, dtype) or a scalar type. In eager kernels, "
        "`A: T.Tensor(...)` in the body names a parameter.",
    ),
    "T2C-F031": Explanation(
        "a statement is not allowed here",
        "A store outside of T.Kernel, a `return` inside a loop of the kernel, an allocation without a name.",
    ),
    "T2C-F032": Explanation(
        "a factory does not return a kernel",
        "A factory returns its @T.prim_func, or another factory.",
    ),
    "T2C-F033": Explanation(
        "two integers are divided with `/`",
        "In a kernel, `/` is for floating-point numbers. `//` divides integers and rounds down.",
    ),
    "T2C-F034": Explanation(
        "the shapes of two tiles do not broadcast",
        "Expressions of tiles broadcast as in NumPy: shapes are aligned from the right, and an extent of 1 goes with "
        "any other. A vector in an expression with a matrix is a value per row where a reduction of rows made it, or "
        "where only the number of rows equals its length.",
    ),
    "T2C-F035": Explanation(
        "a view has another size than its buffer",
        "T.view and T.reshape reinterpret the contiguous bits of a tensor or tile in another shape. Both have the "
        "same number of bits. The underlying data is never moved.",
    ),
}

CODES: Mapping[str, Explanation] = MappingProxyType({**_FRONT_END, **DECISIONS, **RUNTIME, **WARNINGS})

__all__ = ["CODES", "Explanation"]
