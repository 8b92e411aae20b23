"""Names, places and comments of the user survive; names that would be confused are numbered."""

from collections.abc import Callable
from pathlib import Path

from tile2cu.api import emit
from tile2cu.core.program import Let, Program, walk_stmts
from tile2cu.frontend import programs


def listed(program: Program) -> list[tuple[str, object, str, str]]:
    return [(each.name, each.value, each.formula, each.comment) for each in program.constants]


def test_computed_constants_keep_their_formula(body: Callable[..., Program], listing: Callable[..., list[str]]) -> None:
    program = body(
        "step = half + 1\nB[bx * half, step] = A[bx, COLUMN] * scale",
        module="LOG2E = 1.44269504\nCOLUMN = 3",
        factory="half, third = block_M // 2, 7  # of a block\nscale = (1.0 / half) ** 0.5 * LOG2E  # log2(e)",
    )
    assert listing(program) == ["B[(bx * half), step] = (A[bx, COLUMN] * scale)"]
    assert listed(program) == [
        ("COLUMN", 3, "3", ""),
        ("block_M", 64, "", ""),
        ("half", 32, "block_M // 2", "of a block"),
        ("scale", (1.0 / 32) ** 0.5 * 1.44269504, "(1.0 / half) ** 0.5 * LOG2E", "log2(e)"),
        ("step", 33, "half + 1", ""),
    ]


def test_module_name_gives_way_to_the_parameter(body: Callable[..., Program]) -> None:
    program = body("B[bx, M] = 0", module="M = 4096", M=1024)
    assert ("M", 1024, "", "") in listed(program)


def test_name_with_two_values_is_numbered(body: Callable[..., Program], listing: Callable[..., list[str]]) -> None:
    program = body("x = 1\nB[bx, x] = 0\nx = x + 1\nB[bx, x] = 0")
    assert listing(program) == ["B[bx, x] = 0", "B[bx, x_1] = 0"]
    assert [each[:2] for each in listed(program) if each[0].startswith("x")] == [("x", 1), ("x_1", 2)]


def test_loop_variable_gives_way_to_a_constant(body: Callable[..., Program], listing: Callable[..., list[str]]) -> None:
    text = "S = T.alloc_shared((block_M, 32), 'float32')\nfor block_M in T.serial(4):\n    T.copy(A[block_M, 0], S)"
    assert listing(body(text)) == ["serial block_M_1 in 0:4:1", "  copy A[block_M_1:+block_M, 0:+32] -> S"]


def test_a_number_gives_way_to_an_extent_of_its_name(trace: Callable[..., Program]) -> None:
    program = trace(
        """
        import tilelang.language as T

        @T.prim_func
        def kernel(A: T.Tensor((T.dynamic("n"),), "int32"), B: T.Tensor((4,), "int32")):
            with T.Kernel(4, threads=128) as bx:
                n = B[bx] + 1
                A[0] = n
        """
    )
    assert [size.name for size in program.sizes] == ["n"]
    assert [stmt.var.name for stmt in program.launches[0].body if isinstance(stmt, Let)] == ["n_1"]


def test_loops_in_sequence_share_a_name(body: Callable[..., Program], listing: Callable[..., list[str]]) -> None:
    text = "for i in range(4):\n    for _ in range(2):\n        B[bx, i] = 0\nfor i in range(5):\n    B[bx, i] = 1"
    assert [line for line in listing(body(text)) if line.lstrip().startswith("serial")] == [
        "serial i in 0:4:1",
        "  serial unused in 0:2:1",
        "serial i in 0:5:1",
    ]


def test_tiles_of_one_name(body: Callable[..., Program]) -> None:
    text = "S = T.alloc_shared((8,), 'float32')\nS = T.alloc_shared((16,), 'float32')\nT.clear(S)"
    program = body(text)
    assert [(tile.name, tile.static_shape) for tile in program.launches[0].tiles] == [("S", (8,)), ("S_1", (16,))]
    assert program.launches[0].body[0].dst.buffer is program.launches[0].tiles[1]


def test_comments_and_places(body: Callable[..., Program]) -> None:
    program = body(
        """
        # the tile
        S = T.alloc_shared((block_M, 32), "float32")  # one block's rows
        # a number
        x = 5
        # first
        for k in T.serial(3):  # each part
            # inside
            T.copy(A[bx, k * 32], S)  # load
            # behind
        # after
        if True:
            # in the branch
            T.clear(S)
        """
    )
    (launch,) = program.launches
    assert launch.tiles[0].comment == "the tile\none block's rows"
    assert [(type(stmt).__name__, stmt.comments, stmt.trailing) for stmt in walk_stmts(launch.body)] == [
        ("Loop", ("a number", "first"), "each part"),
        ("Copy", ("inside",), "load"),
        ("Fill", ("behind", "after", "in the branch"), ""),
    ]
    copy = list(walk_stmts(launch.body))[1]
    assert copy.span.text[copy.span.column - 1 : copy.span.end_column - 1] == "T.copy(A[bx, k * 32], S)"
    loop = launch.body[0]
    assert loop.span.text[loop.span.column - 1 : loop.span.end_column - 1] == "for k in T.serial(3):"


def test_comments_of_what_is_computed_before_stay_in_their_paragraph(body: Callable[..., Program]) -> None:
    """What they are about is in no statement: above the next paragraph they would mislead."""
    program = body(
        """
        S = T.alloc_shared((block_M, 32), "float32")

        # a number that is not used
        x = 5

        # of the copy
        y = 0
        T.copy(A[bx, y], S)

        # a value that a run gives
        z = bx * 2

        T.fill(S, z)
        """
    )
    assert [(type(stmt).__name__, stmt.comments) for stmt in program.launches[0].body] == [
        ("Copy", ("of the copy",)),
        ("Let", ("a value that a run gives",)),
        ("Fill", ()),
    ]


def test_comments_of_parameters(trace: Callable[..., Program]) -> None:
    program = trace(
        '''
        import tilelang.language as T

        def factory(
            M,
            block=128,  # elements a block
        ):
            """A = 0."""
            # about the kernel
            @T.prim_func
            def main(
                A: T.Tensor((M,), "float32"),  # is cleared
            ):
                # about the grid
                with T.Kernel(T.ceildiv(M, block)) as bx:  # one block a part
                    for i in T.Parallel(block):
                        A[bx * block + i] = 0
            return main
        '''
    )
    assert program.comments == ("about the kernel",)
    assert program.params[0].comment == "is cleared"
    assert program.constants[0].comment == "elements a block"
    assert program.launches[0].comments == ("about the grid", "one block a part")


def test_names_end_with_their_block(refusal: Callable[..., str]) -> None:
    ended = "F009 `y` was bound inside a loop or branch of the kernel that ended before this line"
    assert refusal("for k in T.serial(N):\n    y = A[bx, k]\nB[bx, 0] = y") == ended
    assert refusal("y = 1\nif bx > 0:\n    y = 2\nB[bx, 0] = y") == ended
    assert refusal("if bx > 0:\n    y = 2\nelse:\n    y = 3\nB[bx, 0] = y") == ended


def test_values_are_not_carried_by_a_loop(refusal: Callable[..., str], body: Callable[..., Program]) -> None:
    assert refusal("y = 0\nfor k in T.serial(N):\n    y += 1").startswith("F027 `y` is bound again")
    assert refusal("y = A[bx, 0]\nfor k in T.serial(N):\n    if k > 3:\n        y = y * 2").startswith("F027")
    body("y = 0\nfor k in T.serial(N):\n    y = k\n    y = y + 1\n    B[bx, y] = 0")  # bound before it is read


def test_a_kernel_called_main_has_its_files_name() -> None:
    text = """
import tilelang.language as T

@T.prim_func
def main(A: T.Tensor((64,), "float32")):
    with T.Kernel(64) as bx:
        A[bx] = 0.0
"""

    def name(file: str, text: str) -> tuple[str, str]:
        program = programs(Path(file), text, kernel="main", bindings={})[0]
        return program.name, program.alias_of

    assert name("row-sums.py", text) == ("row_sums", "main")
    assert name("2d.py", text) == ("_2d", "main")
    other = text.replace("def main", "def scale").replace("import tilelang.language as T", "")
    assert name("scale.py", text + other) == ("scale_main", "main")


def test_a_text_of_a_kernel_called_main_says_how_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "zero.py"
    path.write_text(
        "import tilelang.language as T\n@T.prim_func\ndef main(A: T.Tensor((64,), 'float32')):\n"
        "    with T.Kernel(64) as bx:\n        A[bx] = 0.0\n",
        encoding="utf-8",
    )
    files = emit(path)["zero"].files
    assert "--kernel main\n" in files["zero.cu"] and "tl_status zero(" in files["zero.h"]
