"""Few settings for all shapes: each near its best, with guards that select them, in a dispatch that compiles."""

from collections.abc import Mapping
from pathlib import Path

from tests.unit.chooser.kernels import EXAMPLES
from tile2cu import dispatch
from tile2cu.cli.tune import write_between
from tile2cu.core.choice import Candidate
from tile2cu.core.dispatch import Dispatch, Entry, condition, size
from tile2cu.core.expr import int_const, static_value, substitute
from tile2cu.project.config import read_project
from tile2cu.tuning.cover import MOST, as_toml, cover, entries_of
from tile2cu.tuning.record import Figure, Tuned


def setting(n: int, file: str = "gemm_relu.py") -> Candidate:
    return Candidate(file, (("block_M", 64), ("block_N", n)))


def entry(m: int, times: Mapping[int, float], n: int = 4096) -> Tuned:
    figures = tuple(
        sorted(
            (Figure(**setting(each)._asdict(), us=us, spread=0.0, rounds=3) for each, us in times.items()),
            key=lambda f: f.us,
        )
    )
    sizes = (("K", 4096), ("M", m), ("N", n))
    return Tuned(sizes=sizes, card="H200", best=figures[0], by="model", default_us=20.0, figures=figures)


KERNELS = {"gemm_relu.py": "gemm_relu"}
# 32 columns are best for few rows, 64 for more; 128 are near the best everywhere but for M = 1.
TUNED = (
    entry(1, {32: 10, 64: 13, 128: 14}),
    entry(16, {32: 10, 64: 10.6, 128: 10.3}),
    entry(256, {32: 20, 64: 14, 128: 14.5}),
    entry(4096, {32: 40, 64: 30, 128: 30.5}),
)


def none(candidate: Candidate, sizes: Mapping[str, int]) -> float | None:
    return None


def chosen(entries: tuple[Entry, ...], **sizes: int) -> str:
    """The entry that a call takes."""
    for each in entries:
        found = condition(each, {name: size(name) for name in sizes})
        if found is None:
            return each.name
        if static_value(substitute(found, {size(name): int_const(value) for name, value in sizes.items()})):
            return each.name
    return ""


def test_few_settings_serve_all_shapes() -> None:
    found = cover(TUNED)
    assert set(found.settings) == {setting(128), setting(32)}
    assert found.settings[-1] == setting(128)  # the fallback
    assert found.of[TUNED[0].sizes] == setting(32)
    for each in TUNED:
        us = each.us_of(found.of[each.sizes])
        assert us is not None and us <= 1.05 * each.best.us


def test_no_more_than_eight() -> None:
    tuned = [entry(m, {n: 10.0 if n == 16 * m else 20.0 for n in range(16, 16 * 21, 16)}) for m in range(1, 21)]
    found = cover(tuned)
    assert len(found.settings) == MOST
    assert set(found.of) == {each.sizes for each in tuned}


def test_guards_select_what_was_measured_and_the_fallback_takes_the_rest() -> None:
    found = cover(TUNED)
    entries = entries_of(found, TUNED, "cuda:sm_90a", "M", none, KERNELS)
    assert [each.name for each in entries] == ["tile_1", "other", "any"]
    for each in TUNED:
        name = "other" if found.of[each.sizes] == found.settings[-1] else "tile_1"
        assert chosen(entries, **dict(each.sizes)) == name
    assert chosen(entries, M=1, N=5120, K=4096) == "other"
    assert "2.00 x the file's own speed on 2 shapes, H200" in entries[0].measured


def test_between_measured_sizes_the_prediction_decides() -> None:
    """The first setting is predicted to be faster up to M = 100."""

    def predict(each: Candidate, sizes: Mapping[str, int]) -> float | None:
        return 10.0 if (each == setting(32)) == (sizes["M"] <= 100) else 11.0

    entries = entries_of(cover(TUNED), TUNED, "cuda:sm_90a", "M", predict, KERNELS)
    assert [chosen(entries, M=m, N=4096, K=4096) for m in (16, 100, 101, 255)] == ["tile_1", "tile_1", "other", "other"]


def test_the_dispatch_is_written_and_read_and_emits(tmp_path: Path) -> None:
    tuned = [
        Tuned(
            sizes=each.sizes,
            card=each.card,
            best=each.best,
            by=each.by,
            default_us=each.default_us,
            figures=each.figures,
        )
        for each in TUNED
    ]
    entries = entries_of(cover(tuned), tuned, "cuda:sm_90a", "M", none, KERNELS)
    text = as_toml("gemm_tuned", "gemm_relu.py", "gemm_relu", entries)
    project = tmp_path / "pyproject.toml"
    project.write_text("[tool.tile2cu]\noutput = 'out'\n", encoding="utf-8")
    write_between(project, "gemm_tuned", "unfinished\n")
    write_between(project, "gemm_tuned", text)
    assert project.read_text(encoding="utf-8").count("[[tool.tile2cu.dispatch]]") == 1
    (job,) = read_project(tmp_path).jobs
    assert job.dispatch is not None and job.dispatch.entries == entries
    files = dispatch(Dispatch(name="gemm_tuned", file="gemm_relu.py", entries=entries), EXAMPLES)
    assert "gemm_tuned_dispatch.cpp" in files
