"""What keeps a choice fast: a bound below every prediction, decisions that are kept, and long loops in samples."""

import pytest

from tests.unit.chooser.kernels import example
from tile2cu.chooser.choose import Ranking
from tile2cu.chooser.model import least_time
from tile2cu.chooser.space import Kind
from tile2cu.chooser.work import moved_bytes
from tile2cu.targets.costs import H200

SHAPES = ((1, 4096, 4096), (200, 3648, 9920), (4096, 4096, 4096))


def ranking(name: str, shape: tuple[int, int, int]) -> Ranking:
    return example(name).ranking(dict(zip("MNK", shape, strict=True)))


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["gemm_relu", "gemm_clusters", "gemm_hybrid"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_no_setting_is_predicted_below_the_bound_of_its_tile(name: str, shape: tuple[int, int, int]) -> None:
    """Settings that the rules decided, with all their threads and stages."""
    kernel, sizes = example(name), dict(zip("MNK", shape, strict=True))
    found = ranking(name, shape)
    found.best(4)
    assert len(found.found) >= 4
    tensors = [bytes_of(kernel.space.values(kernel.space.default, sizes)) for bytes_of in kernel.space.bytes_of]
    for ranked in found.found.values():
        pairs = zip(ranked.works, tensors, strict=True)
        first, *others = [least_time(work, moved_bytes(work, *own), H200) for work, own in pairs]
        assert first <= ranked.times[0].total
        assert all(bound - H200.launch_us <= times.total for bound, times in zip(others, ranked.times[1:], strict=True))


def test_the_runner_up_has_another_tile() -> None:
    found = ranking("gemm_relu", SHAPES[2])
    (first,) = found.best(1)
    (second,) = found.best(1, but=first)
    assert found.tile(first) != found.tile(second)
    assert first.us <= second.us


def test_a_setting_is_decided_once() -> None:
    kernel = example("gemm_relu")
    assert kernel.decide(kernel.space.default) is kernel.decide(kernel.space.default)


def test_three_warpgroups_take_three_parts_of_rows() -> None:
    kernel = example("gemm_relu")
    kinds = {each.kind: each.name for each in kernel.space.parameters}
    found = ranking("gemm_relu", (333, 11392, 4800))
    tried = [dict(setting) for setting in (*found.rejected, *(each.setting for each in found.best(8)))]
    assert all((each[kinds[Kind.M]] % 3 == 0) == (each[kinds[Kind.THREADS]] % 3 == 0) for each in tried)
    assert any(each[kinds[Kind.M]] == 192 for each in tried)


def test_a_second_launch_moves_only_what_it_accesses() -> None:
    """The kernel that adds parts stores those of the cut tiles, and reads no operand."""
    kernel, sizes = example("gemm_hybrid"), {"M": 333, "N": 11392, "K": 4800}
    values = kernel.space.values(kernel.space.default, sizes)
    (a_and_b, c), (none, all_of_c) = (bytes_of(values) for bytes_of in kernel.space.bytes_of)
    assert (a_and_b, c) == ((333 * 4800 + 4800 * 11392) * 2, 333 * 11392 * 2)
    assert (none, all_of_c) == (0, c)
    _, adds = kernel.space.works(kernel.space.default, sizes)
    assert moved_bytes(adds, none, all_of_c) <= adds.blocks * adds.longest.stored
