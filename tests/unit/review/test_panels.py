"""The panels of the page: what bounds a call, tuning results, key figures, who accesses a tile."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).parent))  # pytest imports tests without their folder

from html_page import Element, parsed  # noqa: E402

from tile2cu.analysis.elements import byte_of  # noqa: E402
from tile2cu.api import one_resolved_kernel  # noqa: E402
from tile2cu.choosing import tunable  # noqa: E402
from tile2cu.cli import main  # noqa: E402
from tile2cu.core.decisions import SHARED_LAYOUT  # noqa: E402
from tile2cu.core.layout import SharedLayout  # noqa: E402
from tile2cu.core.origin import EmitOptions, Tool  # noqa: E402
from tile2cu.review.accesses import accesses_of, rows_read_together, ways  # noqa: E402
from tile2cu.review.bound import Bound, bound_of  # noqa: E402
from tile2cu.review.kernel import Kernel, reviewed  # noqa: E402
from tile2cu.review.summary import cards  # noqa: E402
from tile2cu.targets import find  # noqa: E402
from tile2cu.tuning.record import Figure, Tuned, TuneFile  # noqa: E402
from tile2cu_runtime.spec import parse_manifest  # noqa: E402

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
SIZES = {"M": 4096, "N": 4096, "K": 4096}


def kernel(path: Path, target: str, **values: object) -> Kernel:
    launches = one_resolved_kernel(path, None, target=find(target), bindings=values)
    return reviewed(launches, label=target, tool=Tool(version="test"), options=EmitOptions())


def bound(path: Path, target: str, sizes: dict[str, int], **values: object) -> Bound:
    found = kernel(path, target, **values)
    made = tunable(path, path.read_text(encoding="utf-8"), None, find(target), values)
    stated = bound_of(made, found.launches[0].program, parse_manifest(found.manifest), sizes, sizes)
    assert stated is not None
    return stated


def review(path: Path, *options: str) -> Element:
    place = path.with_name("page.html")
    assert main(["review", str(path), *options, "--no-compile", "-o", str(place)]) == 0
    return parsed(place.read_text(encoding="utf-8"))


def test_the_cost_model_states_what_bounds_a_gemm() -> None:
    path = EXAMPLES / "gemm_relu.py"
    found = bound(path, "cuda:sm_90a", SIZES)
    made = tunable(path, path.read_text(encoding="utf-8"), None, find("cuda:sm_90a"), {})
    assert found.us == made.ranking(SIZES).default.us and found.no_model == ""
    assert found.by.startswith(found.headline) and found.headline.startswith("bound by ")
    times = [each.us for each in found.settings]
    assert times == sorted(times) and [each.us for each in found.settings if each.own] == [found.us]
    assert {part.name for part in found.parts} >= {"tensor cores", "DRAM"}


def test_a_kernel_without_a_model_has_its_roofline() -> None:
    """2 * 4096^3 operations at 312 TFLOP/s, against three tensors of 32 MiB at 2039 GB/s."""
    found = bound(EXAMPLES / "gemm_relu.py", "cuda:sm_80", SIZES)
    times = {part.name: part.us for part in found.parts}
    assert times["tensor cores"] == pytest.approx(2 * 4096**3 / 312e6, rel=1e-6)
    assert times["DRAM"] == pytest.approx(3 * 2 * 4096**2 / 2039e3, rel=1e-6)
    assert found.us is None and found.headline == "bound by the tensor cores"
    assert "no measured constants" in found.no_model
    assert bound(EXAMPLES / "vector_add.py", "hip:gfx942", {"N": 1 << 20}).headline == "bound by DRAM"


def test_the_page_states_the_bound_where_the_sizes_are_given() -> None:
    path = EXAMPLES / "gemm_relu.py"
    found = kernel(path, "cuda:sm_80")
    assert "roofline" not in {card.name for card in cards(found)}
    stated = replace(found, bound=bound(path, "cuda:sm_80", SIZES))
    (card,) = (card for card in cards(stated) if card.name == "roofline")
    assert card.value == "440.5 us" and card.note == "bound by the tensor cores"


def test_tuning_results_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "gemm_relu.py"
    path.write_text((EXAMPLES / path.name).read_text(encoding="utf-8"), encoding="utf-8")
    best = Figure(file="gemm_relu.py", setting=(("block_M", 64),), us=123.4, spread=0.01, rounds=11)
    entry = Tuned(
        sizes=tuple(sorted(SIZES.items())), card="H200", best=best, by="measured", default_us=150.0, figures=(best,)
    )
    sha256 = kernel(path, "cuda:sm_90a").launches[0].program.source.sha256
    for digest, stated in ((sha256, "for cuda:sm_90a."), ("0" * 64, "of another version of the file")):
        file = TuneFile(kernel="gemm_relu", target="cuda:sm_90a", sha256=digest, entries=(entry,))
        (tmp_path / "gemm_relu.tune.json").write_text(file.text(), encoding="utf-8")
        panel = " ".join(review(path, "--target", "cuda:sm_90a").by_id("k1-tuning").text.split())
        assert stated in panel and "123.4 us" in panel and "block_M = 64" in panel and "K = 4096" in panel


def test_who_accesses_a_tile() -> None:
    (resolved,) = one_resolved_kernel(EXAMPLES / "gemm_relu.py", None, target=find("cuda:sm_80"), bindings={})
    tiles = {tile.name: tile for tile in resolved.launch.tiles}
    assert [str(each) for each in accesses_of(tiles["A_shared"], resolved)] == [
        "written in line 22 by tl::copy_async",
        "read in line 24 by mma.m16n8k16.f32.f16.f16.f32",
    ]
    assert rows_read_together(tiles["A_shared"], resolved) == 8 and rows_read_together(tiles["C_local"], resolved) == 0


def test_bank_conflicts_of_one_pass() -> None:
    """Without a swizzle, rows of 128 bytes are all in the same banks; with it, they are apart."""
    (resolved,) = one_resolved_kernel(EXAMPLES / "gemm_relu.py", None, target=find("cuda:sm_80"), bindings={})
    layout = resolved.facts[next(tile for tile in resolved.launch.tiles if tile.name == "B_shared"), SHARED_LAYOUT]
    assert layout.swizzle == 128 and ways(layout, 8, 32) == 1
    plain = SharedLayout(extents=(8, 64), element_bits=16)
    assert byte_of(plain, (1, 0)) == 128 and ways(plain, 8, 32) == 8


def test_key_figures_lead_to_their_sections() -> None:
    root = review_of(EXAMPLES / "flash_decoding.py")
    links = [each.all("a")[0].attributes["href"][1:] for each in root.all("ul", class_="cards")[0].all("li")]
    assert links and all(root.by_id(link) for link in links)


def review_of(path: Path) -> Element:
    from tile2cu.review.page import page

    return parsed(page([kernel(path, "cuda:sm_80")]))
