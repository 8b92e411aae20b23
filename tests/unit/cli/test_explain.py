"""`tile2cu explain`: what was decided, what was not and what would change that, and the pages of rules and errors."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tile2cu.cli import main
from tile2cu.renamed import RENAMED
from tile2cu.rules import RULES
from tile2cu.rules.rewrites import REWRITES

GEMM = Path(__file__).resolve().parents[3] / "examples" / "gemm_relu.py"
KERNEL = """\
import tilelang
import tilelang.language as T

@tilelang.jit
def small():
    @T.prim_func
    def body(X: T.Tensor((512, 128), "float32"), Y: T.Tensor((512, 128), "float32")):
        with T.Kernel(4) as bx:
            H = T.alloc_shared((64, 128), "float16")
            S = T.alloc_shared((64, 128), "float32")
            L = T.alloc_fragment((64, 128), "float32")
            first = T.alloc_var("int32", init=0)
{body}
    return body
"""


def explain(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["explain", *arguments]) == 0
    return capsys.readouterr().out


def small(capsys: pytest.CaptureFixture[str], folder: Path, *lines: str, target: str = "cuda:sm_80") -> str:
    """What is said of a kernel with this body, without line breaks."""
    path = folder / "small.py"
    path.write_text(KERNEL.format(body="\n".join(" " * 12 + line for line in lines)), encoding="utf-8")
    return " ".join(explain(capsys, str(path), "--target", target).split())


def test_every_copy_product_and_loop_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    said = explain(capsys, str(GEMM), "--target", "cuda:sm_90a")
    assert said.startswith("gemm_relu for cuda:sm_90a\n")
    for part in (
        "line 22   T.copy(A[by * block_M, ko * block_K], A_shared)\n     tl::tma_load  [pipeline.loop.tma, line 21]",
        "instruction: wgmma.m64n128k16.f32.f16.f16  [select.gemm.wgmma]",
        "pipeline: 3 stages of A_shared, B_shared  [pipeline.loop.tma]",
        "producer: yes  [launch.hopper.producer-warp]",
        "not 128-byte swizzle: rows of 64 bytes are not a multiple of 128; to have it: make rows of `A_shared`",
    ):
        assert part in said


def test_decisions_are_words_and_no_data_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    examples = ("attention.py", "dequant.py", "linear_int4_prefill.py", "mla_decode.py")
    for example in examples:
        said = explain(capsys, str(GEMM.with_name(example)), "--target", "cuda:sm_90a")
        assert not re.search(r"True|False|None|\w=|extent %", re.sub(r"(?m)^line .*", "", said))
    said = explain(capsys, str(GEMM), "--target", "cuda:sm_90a")
    assert "layout: WgmmaAccumulator, (T128 threads, V128 values each) -> (128, 128); warpgroup g holds" in said
    assert "bounds-checked, per dimension: yes, yes" in said


def test_json_has_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    (kernel,) = json.loads(explain(capsys, str(GEMM), "--json"))
    assert (kernel["kernel"], kernel["target"]) == ("gemm_relu", "cuda:sm_80")
    (product,) = (place for place in kernel["places"] if "T.gemm" in place["text"])
    rules = {one["what"]: one["rule"] for one in product["chosen"]}
    assert rules["instruction"] == "select.gemm.mma-sync" and product["line"] == 24
    (tile,) = (place for place in kernel["places"] if place["about"] == "A_shared")
    assert tile["rejected"][0]["candidate"] == "128-byte swizzle"


LOOP = "for k in T.Pipelined(4, num_stages={stages}):"
REJECTIONS = {
    "not pipeline: num_stages is 0; to have it: num_stages=2 or more": (
        LOOP.format(stages=0),
        "    T.copy(X[k * 64, 0], S)",
    ),
    "not prefetched: `L` is not in shared memory; to have it: copy into a T.alloc_shared tile": (
        LOOP.format(stages=2),
        "    T.copy(X[k * 64, 0], L)",
    ),
    "not prefetched: it fills a part of `S`; to have it: give the part a tile of its own": (
        LOOP.format(stages=2),
        "    T.copy(X[k * 32, 0], S[0:32, :])",
    ),
    "its coordinates depend on `first`, which the loop assigns to; to have it: compute the coordinates": (
        LOOP.format(stages=2),
        "    T.copy(X[first, 0], S)",
        "    first += 64",
    ),
    "not prefetched: the loop also writes `X`; to have it: write to another tensor": (
        LOOP.format(stages=2),
        "    T.copy(X[k * 64, 0], S)",
        "    T.copy(S, L)",
        "    T.copy(L, X[k * 64, 0])",
    ),
    "not prefetched: it computes `S` element by element from `X`; to have it: T.copy of whole boxes": (
        LOOP.format(stages=2),
        "    for i, j in T.Parallel(64, 64):",
        "        S[i, j] = X[k * 64 + i, j] * 2.0",
        "    T.copy(S, L)",
    ),
    "not prefetched: it gathers rows that `X` selects; to have it: T.copy of whole boxes": (
        LOOP.format(stages=2),
        "    for i, j in T.Parallel(64, 64):",
        "        S[i, j] = X[i, T.cast(X[k, j], 'int32')]",
        "    T.copy(S, L)",
    ),
    "not cp.async: it changes float32 to float16, and cp.async moves bytes; to have it: allocate `H` as float32": (
        LOOP.format(stages=2),
        "    T.copy(X[k * 64, 0], H)",
    ),
    "not vectorised: `X` in line 14 is not contiguous along `j`; to have it: let `j` be a term of the last index": (
        "for i, j in T.Parallel(64, 128):",
        "    Y[i, j] = X[i, 127 - j]",
    ),
    "not vectorised: line 14 is not plain arithmetic of elements": (
        "for i, j in T.Parallel(64, 128):",
        "    Y[i, j] = T.if_then_else(j > 3, X[i, j], 0.0)",
    ),
}


@pytest.mark.parametrize("said", REJECTIONS)
def test_what_was_not_chosen_says_why_and_what_would_change_it(
    said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in small(capsys, tmp_path, *REJECTIONS[said])


def test_a_copy_to_a_barrier_of_the_users_stays_in_its_turn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = "    T.tma_copy(X[k * 64, 0], S, barrier=there)"
    waits = "    T.barrier_arrive(there)", "    T.barrier_wait(there, k % 2)", "    T.copy(S, L)"
    lines = "there = T.alloc_barrier(128)", LOOP.format(stages=2), copy, *waits
    said = small(capsys, tmp_path, *lines, target="cuda:sm_90a")
    assert "not prefetched: the iteration that starts it waits for it at `there`" in said


def test_barriers_say_what_they_are_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    backwards = ("for i, j in T.Parallel(64, 64):", "    L[i, j] = S[63 - i, j]")
    said = small(capsys, tmp_path, "T.copy(X[0, 0], S)", *backwards, "T.copy(L, Y[0, 0])")
    assert "barrier: before it: `S` was written by other threads [sync.shared.hazard" in said


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_rule_has_a_page(rule: object, capsys: pytest.CaptureFixture[str]) -> None:
    page = explain(capsys, rule.id)  # type: ignore[attr-defined]
    assert "Source: " in page and "Gives: " in page and "Example, on " in page


@pytest.mark.parametrize("rewrite", REWRITES)
def test_every_rewrite_that_a_text_names_has_a_page(rewrite: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert explain(capsys, rewrite).startswith(f"{rewrite}\n{'=' * len(rewrite)}\n\nThe launch ")


@pytest.mark.parametrize("old", RENAMED)
def test_old_ids_lead_to_the_new_page(old: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert old not in {*(rule.id for rule in RULES), *REWRITES}
    assert explain(capsys, old).startswith(f"{RENAMED[old]}\n")


def test_errors_have_pages_and_other_names_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain(capsys, "T2C-L001").startswith("T2C-L001: ")
    assert explain(capsys, "l001").startswith("T2C-L001: ")
    assert main(["explain", "layout.gemm.widest-swizle"]) == 1
    assert "did you mean `layout.gemm.widest-swizzle`" in capsys.readouterr().err


def test_loops_and_barriers_that_no_rule_decides_about_are_as_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = small(capsys, tmp_path, "for i in T.serial(3):", "    T.copy(X[64 * bx, 0], H)", "T.sync_threads()")
    assert "for i in T.serial(3): as written: all threads run all iterations" in said
    assert "T.sync_threads() as written: block barrier" in said


def test_a_line_of_the_python_file_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    said = explain(capsys, f"{GEMM}:22", "--target", "cuda:sm_90a")
    assert said == (
        "gemm_relu for cuda:sm_90a\n\n"
        "line 22   T.copy(A[by * block_M, ko * block_K], A_shared)\n     tl::tma_load  [pipeline.loop.tma, line 21]\n"
    )
    assert main(["explain", f"{GEMM}:1"]) == 1
    assert "nothing was decided about" in (said := capsys.readouterr().err)
    assert "there are decisions about the lines 13, 15," in said


def test_an_emitted_kernel_is_explained_by_its_manifest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main([str(GEMM), "--target", "cuda:sm_90a", "-o", str(tmp_path)]) == 0
    capsys.readouterr()
    monkeypatch.chdir(tmp_path)
    text = Path("gemm_relu.cu").read_text(encoding="utf-8").splitlines()
    whole = explain(capsys, "gemm_relu.cu")
    assert whole == explain(capsys, "gemm_relu.json")
    assert whole.startswith("gemm_relu for cuda:sm_90a\n\nline 15   launch:\n     warps: ")
    assert "     instruction: wgmma.m64n128k16.f32.f16.f16  [select.gemm.wgmma]\n" in whole
    line = next(at for at, each in enumerate(text, 1) if "tma_load(" in each and "A" in each)
    said = explain(capsys, f"gemm_relu.cu:{line}", "--json")
    places = json.loads(said)[0]["places"]
    assert places and {place["line"] for place in places} <= {22, 23}
    assert main(["explain", f"gemm_relu.cu:{len(text)}"]) == 1
    assert f"gemm_relu.cu:{len(text)} comes from no line of `gemm_relu.py`" in capsys.readouterr().err
    Path("gemm_relu.json").unlink()
    assert main(["explain", "gemm_relu.cu"]) == 1
    assert "no manifest of tile2cu is next to `gemm_relu.cu`" in capsys.readouterr().err
