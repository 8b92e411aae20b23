"""Two warpgroups that take iterations alternately: when, and why not."""

import pytest
from msgspec.structs import replace

from tests.unit.rules.kernels import resolved
from tile2cu.analysis.accesses import buffers_written
from tile2cu.analysis.legality import why_not
from tile2cu.analysis.uses import without
from tile2cu.core.decisions import BARRIER, NO_PING_PONG, SCHEDULE, WARPS
from tile2cu.core.program import Loop, Stmt
from tile2cu.core.schedule import PingPong
from tile2cu.rules import Context

LATENT = """
Q_shared = T.alloc_shared(({rows}, 128), "float16")
KV_shared = T.alloc_shared((64, 128), "float16")
S_shared = T.alloc_shared(({rows}, 64), "float16")
S = T.alloc_fragment(({rows}, 64), "float32")
best = T.alloc_fragment(({rows},), "float32")
sums = T.alloc_fragment(({rows},), "float32")
kept = T.alloc_fragment(({rows}, 64), "float32")
total = T.alloc_fragment(({rows},), "float32")
O = T.alloc_fragment(({rows}, {cols}), "float32")
T.copy(Z[0, 0], Q_shared)
T.clear(O)
T.clear(kept)
T.fill(best, -1)
T.fill(total, {start})
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


def facts(
    between: str = "", after: str = "", *, rows: int = 64, policy: str = "FullCol", threads: int = 256, stages: int = 2
) -> str:
    """The schedule of the alternating warpgroups, or why there is none; empty for neither."""
    body = LATENT.format(between=between, after=after, rows=rows, cols=128, policy=policy, start=0)
    body = body.replace("num_stages=2", f"num_stages={stages}")
    context = resolved(body, threads=threads, target="cuda:sm_90a")
    loop = next(op for op in context.statements if isinstance(op, Loop))
    found = [context.facts.get(loop, key) for key in (SCHEDULE, NO_PING_PONG)]
    return str(next(filter(None, found), ""))


def test_each_warpgroup_has_the_first_product_of_its_turns() -> None:
    body = LATENT.format(between="", after="", rows=64, cols=128, policy="FullCol", start=0)
    context = resolved(body, threads=256, target="cuda:sm_90a")
    schedule = next(filter(None, (context.facts.get(op, SCHEDULE) for op in context.statements)))
    assert [tile.name for tile in schedule.row_values] == ["best"], "carried from turn to turn; `sums` is not"
    assert [str(context.facts[op, WARPS]) for op in schedule.own_mmas] == ["Warps(m=4, n=1)"]
    assert str(context.facts[schedule.second, WARPS]) == "Warps(m=4, n=2)"
    assert context.facts.get(schedule.second, BARRIER) is None and context.facts.get(schedule.store, BARRIER) is None


@pytest.mark.parametrize(
    ("width", "more", "operands"),
    [
        (128, 0, ["Q_local"]),
        (512, 0, ["Q_shared"]),
        (128, 64, ["Q_local", "R_local"]),
        (256, 64, ["Q_local", "R_local"]),
        (256, 128, ["Q_shared", "R_local"]),
    ],
)
def test_operands_that_are_the_same_in_all_turns_are_in_registers_where_they_fit(
    width: int, more: int, operands: list[str]
) -> None:
    """The last product's first, then those before it as far as registers are left."""
    body = LATENT.format(between="", after="", rows=64, cols=128, policy="FullCol", start=0).replace("128", str(width))
    if more:
        product = next(line for line in body.splitlines() if "T.gemm(Q_shared" in line)
        second = (
            product.replace("Q_shared", "R_shared").replace("KV_shared", "W_shared").replace("clear_accum=True, ", "")
        )
        tiles = [
            f'R_shared = T.alloc_shared((64, {more}), "float16")',
            f'W_shared = T.alloc_shared((64, {more}), "float16")',
        ]
        load = "    T.copy(Z[k * 64, 0], KV_shared)"
        body = "\n".join([*tiles, "T.copy(Z[0, 512], R_shared)", body])
        body = body.replace(load, f"{load}\n    T.copy(Z[k * 64, 512], W_shared)").replace(
            product, f"{product}\n{second}"
        )
    context = resolved(body, threads=256, target="cuda:sm_90a")
    schedule = next(filter(None, (context.facts.get(op, SCHEDULE) for op in context.statements)))
    assert [op.a.buffer.name for op in schedule.own_mmas] == operands


@pytest.mark.parametrize("after", ["", "T.copy(sums, A[0:64, 0])"])
def test_values_a_row_that_outlive_the_loop_are_handed_over(after: str) -> None:
    assert facts(after=after) == "S by one warpgroup per iteration, O by both"


@pytest.mark.parametrize(
    "between",
    [
        "for i, j in T.Parallel(64, 64):\n        S[i, j] += A[i, j]",
        "if k == 0:\n        for i, j in T.Parallel(64, 64):\n"
        "            S[i, j] = T.if_then_else(j < A[i, 0], S[i, j], 0)",
    ],
)
def test_an_iteration_may_read_tensors_that_nothing_writes(between: str) -> None:
    assert facts(between) == "S by one warpgroup per iteration, O by both"


def test_the_first_gemm_may_follow_a_clear_and_the_last_one_a_copy_from_its_tile() -> None:
    body = LATENT.format(between="", after="", rows=64, cols=128, policy="FullCol", start=0)
    body = body.replace("    T.gemm(Q_shared", "    T.clear(S)\n    T.gemm(Q_shared").replace("clear_accum=True, ", "")
    body = body.replace("    T.copy(S, S_shared)", "    T.copy(S, S_shared)\n    T.copy(S_shared, S_local)")
    body = 'S_local = T.alloc_fragment((64, 64), "float16")' + body.replace("T.gemm(S_shared,", "T.gemm(S_local,")
    context = resolved(body, threads=256, target="cuda:sm_90a")
    schedule = next(filter(None, (context.facts.get(op, SCHEDULE) for op in context.statements)))
    assert [op.clear for op in schedule.own_mmas] == [True] and schedule.second.a.buffer.name == "S_shared"


@pytest.mark.parametrize("options", [{"rows": 128, "policy": "FullRow"}, {"threads": 128}])
def test_nothing_is_dealt_where_columns_are_not_shared(options: dict[str, object]) -> None:
    assert facts(**options) == ""  # type: ignore[arg-type]


_READS = "an iteration reads more than fragments"


@pytest.mark.parametrize(
    ("between", "after", "because"),
    [
        ("", "T.copy(S_shared, S)", "`S_shared` is not a 16-bit tile that only the last GEMM reads"),
        (
            "for i, j in T.Parallel(64, 64):\n        kept[i, j] += S[i, j]",
            "",
            "`kept` is live after an iteration, and has more than one value per row",
        ),
        ("T.copy(Z[0, 0], Q_shared)", "", f"{_READS} and tensors that nothing writes"),
        (
            "for i, j in T.Parallel(64, 64):\n        S[i, j] += X[i, j]",
            "T.copy(S, X[0, 0])",
            f"{_READS} and tensors that nothing writes",
        ),
        (
            "T.reduce_max(O, best, dim=1)",
            "",
            "updates of `O` cannot move to the end of the iteration",
        ),
        (
            "T.gemm(Q_shared, Q_shared, S, transpose_B=True, policy=T.GemmWarpPolicy.FullCol)",
            "",
            "another statement is between the GEMMs",
        ),
    ],
)
def test_why_turns_are_not_dealt(between: str, after: str, because: str) -> None:
    assert facts(between, after) == because


def test_statements_in_front_of_the_first_products_run_while_tiles_are_loaded() -> None:
    body = LATENT.format(between="", after="", rows=64, cols=128, policy="FullCol", start=0)
    masked = "    for j in T.Parallel(64):\n        taken[j] = A[k * 64 + j, 0]\n"
    used = "    for i, j in T.Parallel(64, 64):\n        S[i, j] = S[i, j] * taken[j]\n"
    body = 'taken = T.alloc_fragment((64,), "float32")\n' + body
    body = body.replace("    T.gemm(Q_shared", masked + "    T.gemm(Q_shared").replace(
        "    T.reduce_max", used + "    T.reduce_max"
    )
    context = resolved(body, threads=256, target="cuda:sm_90a")
    schedule = next(filter(None, (context.facts.get(op, SCHEDULE) for op in context.statements)))
    (early,) = schedule.before
    assert early.body[0].buffer.name == "taken" and [tile.name for tile in schedule.row_values] == ["best"]


def running(update: str, after: str = "", start: int = 0) -> str:
    """The sum of which each thread keeps a part, and what goes from turn to turn; the sum's name is empty for none."""
    between = f"for i in T.Parallel(64):\n        {update}"
    after = f"for i in T.Parallel(64):\n    A[i, 0] = total[i]\n{after}"
    body = LATENT.format(between=between, after=after, rows=64, cols=128, policy="FullCol", start=start)
    context = resolved(body, threads=256, target="cuda:sm_90a")
    schedule = next(filter(None, (context.facts.get(op, SCHEDULE) for op in context.statements)))
    found = schedule.running.total.name if schedule.running is not None else ""
    assert schedule.running is None or schedule.late[0] is schedule.running.update
    return f"{found}; {', '.join(tile.name for tile in schedule.row_values)}"


@pytest.mark.parametrize(
    "update",
    [
        "total[i] = total[i] * best[i] + sums[i]",
        "total[i] = sums[i] + T.exp2(best[i]) * total[i]",
        "total[i] = total[i] + sums[i]",
        "total[i] += sums[i]",
    ],
)
def test_a_sum_that_only_adds_up_stays_in_parts(update: str) -> None:
    assert running(update) == "total; best"


@pytest.mark.parametrize(
    ("update", "after", "start"),
    [
        ("total[i] = total[i] * best[i] + sums[i]", "", 1),
        ("total[i] = total[i] * total[i] + sums[i]", "", 0),
        ("total[i] = total[i] * best[i] - sums[i]", "", 0),
        ("total[i] = best[i] + sums[i]", "", 0),
        ("total[i] = total[i] * best[i] + sums[i]", "for i in T.Parallel(64):\n    A[i, 1] = sums[i]", 0),
    ],
    ids=["starts at 1", "its square", "less", "not the sum before", "a turn's sum is read, too"],
)
def test_other_values_of_rows_are_handed_over(update: str, after: str, start: int) -> None:
    assert running(update, after, start).startswith("; best")


def test_values_of_rows_that_follow_from_handed_ones_are_computed_by_both() -> None:
    tiles = [f'{name} = T.alloc_fragment((64,), "float32")' for name in ("twice", "factor")]
    loops = ("twice[i] = best[i] * 2", "factor[i] = T.exp2(twice[i])")
    between = "\n    ".join(f"for i in T.Parallel(64):\n        {line}" for line in loops)
    body = LATENT.format(between=between, after="", rows=64, cols=128, policy="FullCol", start=0)
    body = "\n".join((*tiles, body.replace("O[i, j] *= best[i]", "O[i, j] *= factor[i]")))
    context = resolved(body, threads=256, target="cuda:sm_90a")
    schedule = next(filter(None, (context.facts.get(op, SCHEDULE) for op in context.statements)))
    assert [tile.name for tile in schedule.row_values] == ["best"]
    assert [type(op).__name__ for op in schedule.recomputed] == ["Parallel", "Parallel"]


def factor(value: str, more: str = "", scaled: str = "O[i, j] *= factor[i]") -> str:
    """What a turn scales by only where it is not 1: the two values a row of which it is made; empty for nothing."""
    tiles = [f'{name} = T.alloc_fragment((64,), "float32")' for name in ("before", "factor")]
    between = f"for i in T.Parallel(64):\n        factor[i] = {value}\n    {more}"
    body = LATENT.format(between=between, after="", rows=64, cols=128, policy="FullCol", start=0)
    body = body.replace("T.reduce_max(", "T.copy(best, before)\n    T.reduce_max(", 1)
    body = "\n".join((*tiles, body.replace("O[i, j] *= best[i]", scaled)))
    context = resolved(body, threads=256, target="cuda:sm_90a")
    schedule = next(filter(None, (context.facts.get(op, SCHEDULE) for op in context.statements)))
    if schedule.factor is None:
        return ""
    assert schedule.late[0] is schedule.factor.op and schedule.factor.op not in (
        *schedule.between,
        *schedule.recomputed,
    )
    return f"{schedule.factor.before.name}, {schedule.factor.after.name}"


@pytest.mark.parametrize(
    "value",
    [
        "T.exp2(before[i] - best[i])",
        "T.exp2(before[i] * 0.5 - best[i] * 0.5)",
        "T.exp((before[i] - best[i]) * 0.5)",
        "T.exp2(0.5 * (before[i] * 2 - best[i] * 2))",
    ],
)
def test_factors_of_rows_that_did_not_change_are_left_out(value: str) -> None:
    assert factor(value) == "before, best"


@pytest.mark.parametrize(
    ("value", "more", "scaled"),
    [
        ("T.exp2(before[i] - best[i] * 0.5)", "", "O[i, j] *= factor[i]"),
        ("T.exp2(before[i] * best[i] - best[i] * best[i])", "", "O[i, j] *= factor[i]"),
        ("T.exp2(before[i] + best[i])", "", "O[i, j] *= factor[i]"),
        ("before[i] - best[i]", "", "O[i, j] *= factor[i]"),
        ("T.exp2(before[i] - best[i])", "", "O[i, j] = O[i, j] * 2 + factor[i]"),
        (
            "T.exp2(before[i] - best[i])",
            "for i, j in T.Parallel(64, 64):\n        S[i, j] *= factor[i]",
            "O[i, j] *= factor[i]",
        ),
        (
            "T.exp2(before[i] - best[i])",
            "for i in T.Parallel(64):\n        before[i] = 3",
            "O[i, j] *= factor[i]",
        ),
    ],
    ids=["other terms", "a product of both", "a sum", "no power", "not scaled", "of the turn's own", "changed"],
)
def test_other_factors_are_not(value: str, more: str, scaled: str) -> None:
    assert factor(value, more, scaled) == ""


def test_each_warpgroup_needs_a_stage() -> None:
    """With one, each waits for the tile that the producer loads when the other has released its own."""
    assert facts(stages=1) == "each warpgroup needs a stage of its own"
    assert "each warpgroup" not in facts(stages=3)


def with_in_front(in_front: str, between: str = "", scaled: str = "best[i]") -> tuple[Loop, Context]:
    """A loop with statements in front of its first GEMMs, and its launch's decisions."""
    tiles = [f'{name} = T.alloc_fragment((64,), "float32")' for name in ("w", "f", "g")]
    body = LATENT.format(between=between, after="", rows=64, cols=128, policy="FullCol", start=0)
    body = body.replace("    T.gemm(Q_shared", f"    {in_front}\n    T.gemm(Q_shared")
    body = "\n".join((*tiles, body.replace("O[i, j] *= best[i]", f"O[i, j] *= {scaled}")))
    context = resolved(body, threads=256, target="cuda:sm_90a")
    return next(op for op in context.statements if isinstance(op, Loop)), context


def rows(value: str) -> str:
    return f"for i in T.Parallel(64):\n        {value}"


WEIGHTS = rows("w[i] = A[k * 64 + i, 0]")


@pytest.mark.parametrize(
    ("in_front", "between", "scaled", "parts"),
    [
        (WEIGHTS, rows("f[i] = w[i] - best[i]"), "f[i]", "w ahead, f behind; best f exchanged; nothing again"),
        ("T.fill(w, k)", "", "w[i]", "w behind; best w exchanged; nothing again"),
        ("T.copy(best, w)", rows("f[i] = w[i] - best[i]"), "f[i]", "w f behind; best exchanged; w f again"),
        (
            f"T.copy(best, w)\n    {rows('g[i] = w[i] * 2')}",
            rows("f[i] = g[i] - best[i]"),
            "f[i]",
            "w g f behind; best exchanged; w g f again",
        ),
        (
            f"index = k * 64\n    {rows('w[i] = A[index + i, 0]')}",
            rows("f[i] = w[i] - best[i]"),
            "f[i]",
            "w f behind; best f exchanged; nothing again",
        ),
        (
            WEIGHTS,
            f"{rows('g[i] = w[i] + best[i]')}\n    {rows('w[i] = best[i] * 2')}\n    {rows('f[i] = w[i] + best[i]')}",
            "f[i]",
            "w ahead, g w f behind; best f exchanged; nothing again",
        ),
    ],
    ids=["own", "read by both", "of the turn before", "and what follows", "by a name", "written again"],
)
def test_what_uses_exchanged_values_runs_behind_the_first_products(
    in_front: str, between: str, scaled: str, parts: str
) -> None:
    """What runs in front of them is ahead of the values that are received of the turn before."""
    loop, context = with_in_front(in_front, between, scaled)
    schedule = context.facts[loop, SCHEDULE]
    assert isinstance(schedule, PingPong)

    def written(ops: tuple[Stmt, ...]) -> str:
        tiles = (tile.name for op in ops for tile in buffers_written(op))
        return " ".join(name for name in tiles if name in ("w", "f", "g"))

    ahead = f"{written(schedule.before)} ahead, " if schedule.before else ""
    exchanged = " ".join(sorted(tile.name for tile in schedule.row_values))
    again = written(schedule.recomputed) or "nothing"
    assert f"{ahead}{written(schedule.between)} behind; {exchanged} exchanged; {again} again" == parts


@pytest.mark.parametrize(
    ("in_front", "between", "tile"),
    [
        ("T.copy(best, w)", rows("f[i] = w[i] - best[i]"), "best"),
        ("T.fill(w, k)", rows("f[i] = best[i]"), "w"),
    ],
    ids=["of the turn before", "read by both"],
)
def test_what_uses_exchanged_values_may_not_run_earlier(in_front: str, between: str, tile: str) -> None:
    """The dependences say so, too."""
    loop, context = with_in_front(in_front, between, f"(f[i] + {tile}[i])")
    schedule = context.facts[loop, SCHEDULE]
    assert isinstance(schedule, PingPong) and not schedule.before
    body = without(loop.body, loop.body[:1])  # its load
    assert why_not(schedule, body, loop) == ""
    first, *others = schedule.between
    assert first.span.line < schedule.own_mmas[0].span.line
    found = why_not(replace(schedule, before=(first,), between=tuple(others), recomputed=()), body, loop)
    assert " runs before line " in found and found.endswith(f" of `{tile}`")


def test_a_product_that_begins_with_exchanged_values_is_not_dealt() -> None:
    start = "for i, j in T.Parallel(64, 64):\n        S[i, j] = best[i]"
    loop, context = with_in_front(start)
    assert context.facts.get(loop, SCHEDULE) is None
