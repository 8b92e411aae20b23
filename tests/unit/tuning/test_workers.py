"""Shapes that workers share: each is measured once, whatever dies, and the file does not depend on their number."""

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.unit.chooser.kernels import EXAMPLES, example
from tests.unit.tuning.machine import FakeGpu
from tile2cu.choosing import family_of
from tile2cu.core.errors import Tile2CuError
from tile2cu.targets import SM90A
from tile2cu.tuning.on_ray import on_ray
from tile2cu.tuning.run import tune_shapes
from tile2cu.tuning.workers import VISIBLE, Here, Process, Workers, on_this_host, spread

SHAPES = [{"M": m, "N": 4096, "K": 4096} for m in (16, 1024)]


class Dying(Here):
    """A worker of this process that dies at its calls of these numbers."""

    class Dead(Exception):
        pass

    def __init__(self, *deaths: int) -> None:
        self.calls, self.renewed, self._deaths = 0, 0, deaths

    def submit(self, call: Callable[[], Any]) -> "Future[Any]":
        self.calls += 1
        if self.calls in self._deaths:
            failed: Future[Any] = Future()
            failed.set_exception(self.Dead())
            return failed
        return super().submit(call)

    def died(self, error: BaseException) -> bool:
        return isinstance(error, self.Dead)

    def renew(self) -> None:
        self.renewed += 1


def numbers(count: int) -> list[Callable[[], int]]:
    return [partial(int, each) for each in range(count)]


def test_results_are_in_the_order_of_the_calls() -> None:
    said: list[tuple[int, int]] = []
    workers = [Here(), Here(), Here()]
    assert spread(numbers(7), workers, done=lambda number, result: said.append((number, result))) == list(range(7))
    assert sorted(said) == [(each, each) for each in range(7)]


def test_a_call_whose_worker_dies_is_made_again() -> None:
    worker = Dying(1, 3)
    assert spread(numbers(3), [worker, Here()]) == [0, 1, 2]
    assert worker.renewed > 0


def test_a_call_that_three_workers_do_not_survive_is_an_error() -> None:
    with pytest.raises(Tile2CuError, match="a worker ended 3 times while it measured one shape") as caught:
        spread(numbers(2), [Dying(*range(1, 9))])
    assert caught.value.code == "T2C-C024"


def test_an_error_of_a_call_is_raised_and_what_was_done_is_told() -> None:
    said: list[int] = []

    def fails() -> int:
        raise Tile2CuError("T2C-C022", "it has no tile parameters")

    with pytest.raises(Tile2CuError, match="no tile parameters"):
        spread([partial(int, 1), fails, partial(int, 3)], [Here()], done=lambda number, _: said.append(number))
    assert said == [0]


def test_a_worker_takes_only_what_suits_it() -> None:
    workers = [Here(), Here()]
    taken: list[tuple[int, bool]] = []
    spread(
        numbers(6),
        workers,
        suits=lambda number, worker: (number % 2 == 0) == (worker is workers[0]),
        started=lambda number, worker: taken.append((number, worker is workers[0])),
    )
    assert sorted(taken) == [(each, each % 2 == 0) for each in range(6)]


def tuned(place: Path, workers: Workers, device: FakeGpu) -> bytes:
    """The file of a tuning of two kernels for all shapes."""
    with workers:
        family = family_of(EXAMPLES / "gemm_relu.py", None, SM90A, {}, ["gemm_clusters.py"])
        tune_shapes(family, SHAPES, device, place=place, workers=workers)
    return place.read_bytes()


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a tuning in this process."""
    return tuned(tmp_path_factory.mktemp("here") / "gemm_relu.tune.json", Workers(each=(Here(),)), FakeGpu())


@pytest.mark.nightly
def test_processes_give_the_same_file_and_one_that_is_killed_is_replaced(tmp_path: Path, expected: bytes) -> None:
    log = tmp_path / "log"
    processes = tuple(Process(f"GPU {each}", {VISIBLE: str(each)}) for each in range(2))
    found = tuned(tmp_path / "gemm_relu.tune.json", Workers(each=processes), FakeGpu(log=log, dies=True))
    assert found == expected
    measured_by = log.read_text(encoding="utf-8").split()
    assert str(os.getpid()) not in measured_by
    assert len(measured_by) == len(SHAPES) + 1  # the shape of the one that was killed again


def test_a_process_sees_its_gpu() -> None:
    with Workers(each=(Process("GPU 1", {VISIBLE: "1"}),)) as workers:
        assert workers.each[0].submit(partial(os.getenv, VISIBLE)).result() == "1"


def test_a_process_that_dies_while_it_is_idle_is_replaced() -> None:
    with Workers(each=(Process("GPU 0", {}),)) as workers:
        (worker,) = workers.each
        os.kill(worker.submit(os.getpid).result(), signal.SIGKILL)
        assert spread([partial(int, 7)] * 2, [worker]) == [7, 7]


@pytest.mark.needs("torch")
def test_more_gpus_than_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv(VISIBLE, "4,6")
    with on_this_host(None) as workers:
        assert [worker.name for worker in workers.each] == ["GPU 4", "GPU 6"]
    with pytest.raises(Tile2CuError, match="torch finds 2 GPUs here"):
        on_this_host(3)


def test_a_worker_that_reads_another_file(tmp_path: Path) -> None:
    """As a host that has an older version of the folder."""
    kernel = example("gemm_relu")
    other = tmp_path / "gemm_relu.py"
    other.write_text(kernel.text + "\n", encoding="utf-8")

    class Elsewhere(FakeGpu):
        def identity(self) -> Any:
            other.write_text(kernel.text, encoding="utf-8")
            return super().identity()

    family = family_of(other, None, SM90A, {}, [])
    with pytest.raises(Tile2CuError, match="has another content for a worker"):
        tune_shapes(family, SHAPES[:1], Elsewhere(), place=tmp_path / "gemm_relu.tune.json")


@pytest.fixture
def two_actors(monkeypatch: pytest.MonkeyPatch) -> Iterator[Workers]:
    """Two actors of a cluster that is started here, on a host without a GPU."""
    import ray

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(EXAMPLES.parent), os.environ.get("PYTHONPATH", "")]))
    yield on_ray("local", actors=2)
    ray.shutdown()


@pytest.mark.nightly
@pytest.mark.needs("ray")
def test_actors_give_the_same_file_and_one_that_is_killed_is_replaced(
    tmp_path: Path, expected: bytes, two_actors: Workers
) -> None:
    log = tmp_path / "log"
    found = tuned(tmp_path / "gemm_relu.tune.json", two_actors, FakeGpu(log=log, dies=True))
    assert found == expected
    assert len(log.read_text(encoding="utf-8").split()) == len(SHAPES) + 1


@pytest.mark.nightly
@pytest.mark.needs("ray")
def test_an_error_of_a_call_crosses_the_cluster(two_actors: Workers) -> None:
    call = partial(family_of, EXAMPLES / "gemm_relu.py", None, SM90A, {}, ["gemv.py"])
    with pytest.raises(Tile2CuError) as caught:
        spread([call], two_actors.each)
    assert caught.value.code == "T2C-C023"


@pytest.mark.nightly
@pytest.mark.needs("ray")
def test_a_cluster_without_a_gpu() -> None:
    import ray

    with pytest.raises(Tile2CuError, match="has no GPU"):
        on_ray("local")
    ray.shutdown()
