"""Turns dealt to two warpgroups: when, and why not."""

import pytest

from tests.unit.rules.kernels import settled
from tile2cu.core.program import Loop

LATENT = """
Q_shared = T.alloc_shared(({rows}, 128), "float16")
KV_shared = T.alloc_shared((64, 128), "float16")
S_shared = T.alloc_shared(({rows}, 64), "float16")
S = T.alloc_fragment(({rows}, 64), "float32")
best = T.alloc_fragment(({rows},), "float32")
sums = T.alloc_fragment(({rows},), "float32")
kept = T.alloc_fragment(({rows}, 64), "float32")
O = T.alloc_fragment(({rows}, {cols}), "float32")
T.copy(Z[0, 0], Q_shared)
T.clear(O)
T.clear(kept)
T.fill(best, -1)
for k in T.Pipelined(4, num_stages=2):
    T.copy(Z[k * 64, 0], KV_shared)
    T.gemm(Q_shared, KV_shared, S, transpose_B=True, clear_accum=True, policy=T.GemmWarpPolicy.FullCol)
    T.reduce_max(S, best, dim=1, clear=False)
    T.reduce_sum(S, sums, dim=1)
    {between}
    T.copy(S, S_shared)
    for i, j in T.Parallel({rows}, {cols}):
        O[i, j] *= best[i]
    T.gemm(S_shared, KV_shared, O, policy=T.GemmWarpPolicy.{policy})
{after}
"""


def facts(between: str = "", after: str = "", *, rows: int = 64, policy: str = "FullCol", threads: int = 256) -> str:
    """What is said of the loop: how its turns are dealt, or why not; empty for neither."""
    body = LATENT.format(between=between, after=after, rows=rows, cols=128, policy=policy)
    context = settled(body, threads=threads, target="cuda:sm_90a")
    loop = next(op for op in context.statements if isinstance(op, Loop))
    found = [context.facts.get(loop, what) for what in ("dealt", "not turns dealt to warpgroups")]
    return str(next(filter(None, found), ""))


def test_each_warpgroup_has_the_first_product_of_its_turns() -> None:
    body = LATENT.format(between="", after="", rows=64, cols=128, policy="FullCol")
    context = settled(body, threads=256, target="cuda:sm_90a")
    dealt = next(filter(None, (context.facts.get(op, "dealt") for op in context.statements)))
    assert [tile.name for tile in dealt.handed] == ["best"], "carried from turn to turn; `sums` is not"
    assert [str(context.facts[op, "warps"]) for op in dealt.products] == ["Warps(m=4, n=1)"]
    assert str(context.facts[dealt.second, "warps"]) == "Warps(m=4, n=2)"
    assert context.facts.get(dealt.second, "barrier") is None and context.facts.get(dealt.store, "barrier") is None


@pytest.mark.parametrize(("width", "held"), [(128, True), (512, False)])
def test_an_operand_that_is_the_same_in_all_turns_is_in_registers_where_it_fits(width: int, held: bool) -> None:
    body = LATENT.format(between="", after="", rows=64, cols=128, policy="FullCol").replace("128", str(width))
    context = settled(body, threads=256, target="cuda:sm_90a")
    dealt = next(filter(None, (context.facts.get(op, "dealt") for op in context.statements)))
    assert dealt.held == (dealt.products[0] if held else None)


@pytest.mark.parametrize("after", ["", "T.copy(sums, A[0:64, 0])"])
def test_values_a_row_that_outlive_the_loop_are_handed_over(after: str) -> None:
    assert facts(after=after) == "S by one warpgroup a turn, O by both"


@pytest.mark.parametrize("options", [{"rows": 128, "policy": "FullRow"}, {"threads": 128}])
def test_nothing_is_dealt_where_columns_are_not_shared(options: dict[str, object]) -> None:
    assert facts(**options) == ""  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("between", "after", "because"),
    [
        ("", "T.copy(S_shared, S)", "`S_shared` is not the second product's alone, in 16 bits"),
        (
            "for i, j in T.Parallel(64, 64):\n        kept[i, j] += S[i, j]",
            "",
            "`kept` lives longer than a turn, and is more than a value a row",
        ),
        ("T.copy(Z[0, 0], Q_shared)", "", "a turn reads more than fragments"),
        (
            "for i, j in T.Parallel(64, 64):\n        S[i, j] += O[i, j]",
            "",
            "what is done to `O` cannot wait for the end of the turn",
        ),
        (
            "T.gemm(Q_shared, Q_shared, S, transpose_B=True, policy=T.GemmWarpPolicy.FullCol)",
            "",
            "something else stands between the products",
        ),
    ],
)
def test_why_turns_are_not_dealt(between: str, after: str, because: str) -> None:
    assert facts(between, after) == because
