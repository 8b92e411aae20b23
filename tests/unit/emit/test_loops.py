"""What of loops has a name: where they stop, if it is long or a turn would move it; and what barriers in them name."""

from pathlib import Path

from tile2cu import emit

EXAMPLES = Path(__file__).parents[3] / "examples"
KERNEL = """
import tilelang
import tilelang.language as T

M = T.dynamic("M")

@tilelang.jit
def small():
    @T.prim_func
    def body(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64) as bx:
            x = T.alloc_var("int32", 3)
            for each in T.serial(STOP):
                A[each % 64] = 1.0
                x += 1
    return body
"""


def loop(stop: str, folder: Path) -> list[str]:
    (folder / "small.py").write_text(KERNEL.replace("STOP", stop), encoding="utf-8")
    lines = [line.strip() for line in emit(folder / "small.py")["small"].files["small.cu"].splitlines()]
    at = next(number for number, line in enumerate(lines) if line.startswith("for (int each"))
    return lines[at - 1 : at + 1]


def test_a_long_stop_has_a_name(tmp_path: Path) -> None:
    stop = "T.ceildiv(T.min(M, 40) * 2, 3) + T.max(M - 5, 0) // 2"
    named, head = loop(stop, tmp_path)
    assert named == "const int each_end = tl::ceildiv(tl::min(M, 40) * 2, 3) + tl::max(M - 5, 0) / 2;"
    assert head == "for (int each = 0; each < each_end; ++each) {"


def test_a_short_one_stands_in_the_head(tmp_path: Path) -> None:
    assert loop("T.ceildiv(M, 3)", tmp_path)[1] == "for (int each = 0; each < tl::ceildiv(M, 3); ++each) {"


def test_one_that_turns_would_move_is_what_it_was_before_them(tmp_path: Path) -> None:
    named, head = loop("T.ceildiv(M, x)", tmp_path)
    assert named == "const int each_end = tl::ceildiv(M, x);" and head.startswith("for (int each = 0; each < each_end;")


def test_a_panel_keeps_its_name() -> None:
    text = emit(EXAMPLES / "gemm_persistent.py", target="cuda:sm_90a")["gemm_persistent"].files["gemm_persistent.cu"]
    assert "constexpr int panel = 12;" in text
    assert "const int panel_rows = tl::min(panel, by_end - panel_start);" in text


def test_a_barrier_names_all_that_it_shows() -> None:
    """Of two tiles that were written before it, the second is read behind the next statement."""
    example = EXAMPLES / "attention_backward.py"
    emitted = emit(example, kernel="attention_backward", target="cuda:sm_90a", dim=64, is_causal=True)
    text = emitted["attention_backward"].files["attention_backward.cu"]
    assert text.count("// RAW: all threads have stored delta and lse before any reads them") == 1


def test_who_loads_and_who_computes_share_the_arithmetic_of_tiles() -> None:
    text = emit(EXAMPLES / "gemm_persistent.py", target="cuda:sm_90a")["gemm_persistent"].files["gemm_persistent.cu"]
    assert text.count("const int tile = ") == 1 and text.count("for_each_work_tile([&](const WorkTile& work) {") == 2
    sizes = {"block_M": 128, "block_N": 128, "num_stages": 2, "threads": 256, "dim": 128, "is_causal": True}
    text = emit(EXAMPLES / "attention.py", target="cuda:sm_90a", **sizes)["attention"].files["attention.cu"]
    assert text.count("tl::lpt_order<") == 1 and text.count("WorkTile work;") == 2
    assert "const int num_iterations" not in text
