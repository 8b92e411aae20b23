"""The timer's protocol and the rates that follow from its times, on a GPU that is a clock."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tile2cu_runtime import Kernel
from tile2cu_runtime.bench import Bench, Timing, bench
from tile2cu_runtime.errors import ArgumentError, OptionError
from tile2cu_runtime.peaks import mma_tflops, peak_of
from tile2cu_runtime.spec import ScalarArgument, TensorArgument, parse_manifest
from tile2cu_runtime.timing import BURST_CALLS, Timer, interleaved

ROOT = Path(__file__).resolve().parents[3]
SIZES = {"M": 2048, "K": 2048, "N": 2048}
FLOPS = 2 * 2048**3


class Clock:
    """A GPU on which a flush, a hidden launch and a rest take time of their own; `log` is what was asked of it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.log: list[str] = []

    def call(self, label: str, ms: float) -> Callable[[], str]:
        def run() -> str:
            self.log.append(label)
            self.now += ms
            return label

        return run

    def flush(self) -> None:
        self.log.append("flush")
        self.now += 100.0

    def hide_launch(self) -> None:
        self.log.append("hide")
        self.now += 1000.0

    def rest(self, seconds: float) -> None:
        self.log.append("rest")
        self.now += seconds * 1e3

    def record(self) -> float:
        self.log.append("record")
        return self.now

    def elapsed_ms(self, pairs: list[tuple[float, float]]) -> list[float]:
        return [end - start for start, end in pairs]

    def graph(self, call: Callable[[], Any]) -> Callable[[], Any]:
        self.log.append("graph")
        return call


def test_only_the_call_is_between_the_events() -> None:
    clock = Clock()
    assert Timer(clock).measure(clock.call("a", 2.0), 1) == 2.0
    assert clock.log == ["flush", "hide", "record", "a", "record"]
    clock.log.clear()
    assert Timer(clock, burst=True).measure(clock.call("a", 2.0), 1) == 2.0
    assert clock.log == ["rest", "flush", "hide", "record", "a", "record"]


@pytest.mark.parametrize(
    ("ms", "burst", "warm", "calls"), [(1.0, False, 15, 60), (0.01, False, 100, 200), (100.0, False, 1, 8)]
)
def test_calls_fit_the_budget(ms: float, burst: bool, warm: int, calls: int) -> None:
    clock = Clock()
    assert Timer(clock, burst=burst).median_ms(clock.call("a", ms)) == pytest.approx(ms)
    assert clock.log.count("a") == 3 + warm + calls
    assert clock.log.count("flush") == 3 + calls  # the warm-up is not flushed


def test_a_burst_has_few_calls() -> None:
    clock = Clock()
    Timer(clock, burst=True).median_ms(clock.call("a", 1.0))
    assert clock.log.count("rest") == 3 + BURST_CALLS


def test_one_slow_call_does_not_change_the_median() -> None:
    clock, times = Clock(), iter([1.0, 50.0, 1.0])

    def call() -> None:
        clock.now += next(times)

    assert Timer(clock).measure(call, 3) == 1.0


def test_each_round_starts_with_another_call() -> None:
    clock = Clock()
    calls = {label: clock.call(label, ms) for label, ms in (("a", 30.0), ("b", 60.0))}
    assert interleaved(calls, Timer(clock), 2) == {"a": [30.0, 30.0], "b": [60.0, 60.0]}
    order = [each for each in clock.log if each in calls]
    runs = [label for at, label in enumerate(order) if at == 0 or order[at - 1] != label]
    assert runs == ["a", "b", "a"]  # the second round: b, then a


class FakeMachine:
    def __init__(self, clock: Clock, name: str = "NVIDIA H200") -> None:
        self.name, self.gpu = name, clock

    def tensor(self, spec: TensorArgument, array: Any) -> Any:
        return (spec.name, array.shape, array.dtype.name)

    def difference(self, found: Any, expected: Any) -> float | None:
        return 0.25 if found == "peer" else None


class FakeKernel:
    """A GEMM of 1 ms on a clock."""

    def __init__(self, clock: Clock, device: str = "cuda") -> None:
        data = json.loads((ROOT / "emitted/cuda/sm_90a/gemm_relu.json").read_text(encoding="utf-8"))
        self.manifest = parse_manifest(data)
        self.device, self.clock = device, clock
        self.calls: list[dict[str, Any]] = []

    def mma_flops(self, sizes: dict[str, int]) -> int:
        return 2 * sizes["M"] * sizes["N"] * sizes["K"]

    def __call__(self, **given: Any) -> None:
        self.calls.append(given)
        self.clock.now += 1.0


def benched(clock: Clock, name: str = "NVIDIA H200", **options: Any) -> tuple[Bench, FakeKernel]:
    kernel = FakeKernel(clock)
    return bench(kernel, SIZES, machine=FakeMachine(clock, name), **options), kernel  # type: ignore[arg-type]


def test_rates_and_the_fraction_of_the_roofline() -> None:
    found, kernel = benched(Clock())
    (ours,) = found.measured
    moved = 3 * 2048 * 2048 * 2
    assert found.work.total_bytes == moved and found.work.mma_flops == FLOPS
    assert ours.ms == pytest.approx(1.0) and ours.spread == pytest.approx(0.0)
    assert ours.tflops == pytest.approx(FLOPS * 1e-9) and ours.gbytes_per_s == pytest.approx(moved * 1e-6)
    assert found.roofline is not None and (found.roofline.bound, found.roofline.tflops) == ("mma", 989.4)
    assert ours.roofline == pytest.approx(FLOPS / 989.4e9)
    assert kernel.calls[0] == {
        **{name: (name, (2048, 2048), "float16") for name in "ABC"},
        **SIZES,
    }
    assert "TFLOP/s" in str(found) and "of roofline" in str(found)


def test_a_peer_takes_what_the_kernel_reads() -> None:
    clock, seen = Clock(), []

    def peers(*tensors: Any) -> dict[str, Callable[[], str]]:
        seen.append([name for name, *_ in tensors])
        return {"peer": clock.call("peer", 2.0), "silent": clock.call("silent", 0.5)}

    found, _ = benched(clock, peers=[peers], timing=Timing(rounds=2))
    assert seen == [["A", "B"]]
    assert [each.name for each in found.measured] == ["gemm_relu", "peer", "silent"]
    assert [each.times_kernel for each in found.measured] == pytest.approx([1.0, 2.0, 0.5])
    assert [each.difference for each in found.measured] == [None, 0.25, None]


def test_calls_are_replayed_from_graphs() -> None:
    clock = Clock()
    benched(clock, peers=[lambda *_: {"peer": clock.call("peer", 1.0)}], timing=Timing(graph=True))
    assert clock.log.count("graph") == 2


def test_an_unknown_gpu_has_no_roofline() -> None:
    found, _ = benched(Clock(), "NVIDIA GeForce 256")
    assert found.roofline is None and found.measured[0].roofline is None and found.measured[0].tflops is not None


def test_given_flops_replace_the_programs() -> None:
    found, _ = benched(Clock(), mma_flops=10**9)
    assert found.work.mma_flops == 10**9 and found.measured[0].tflops == pytest.approx(1.0)


@pytest.mark.parametrize("device", ["cpu", "sim", "ptx"])
def test_without_a_gpu_there_are_counts_and_no_times(device: str) -> None:
    clock = Clock()
    kernel = FakeKernel(clock, device)
    found = bench(kernel, SIZES, machine=FakeMachine(clock))  # type: ignore[arg-type]
    assert (found.work.mma_flops, found.measured, found.gpu, found.roofline) == (FLOPS, (), "", None)
    assert not kernel.calls and not clock.log
    assert "no times" in str(found)


def test_a_loaded_kernel_counts_its_work(load_axpy: Callable[..., Kernel]) -> None:
    kernel = load_axpy()
    found = kernel.bench(**{name.name: 64 for name in kernel.manifest.sizes}, **dict.fromkeys(scalars(kernel), 2))
    assert found.device == "cpu" and found.measured == () and found.work.mma_flops is None
    assert dict(found.work.bytes_moved).keys() == {tensor.name for tensor in kernel.manifest.tensors}
    assert kernel.bench(**dict(found.sizes), mma_flops=128).work.mma_flops == 128


def scalars(kernel: Kernel) -> list[str]:
    return [each.name for each in kernel.manifest.called if isinstance(each, ScalarArgument)]


def test_the_shape_of_the_json() -> None:
    data = json.loads(json.dumps(benched(Clock())[0].as_data()))
    assert list(data) == ["kernel", "target", "device", "gpu", "sizes", "work", "timing", "roofline", "measured"]
    assert data["sizes"] == {"M": 2048, "K": 2048, "N": 2048}
    assert data["work"]["bytes"] == dict.fromkeys("ABC", 2048 * 2048 * 2)
    assert data["work"]["flops_per_byte"] == pytest.approx(FLOPS / (3 * 2048 * 2048 * 2))
    assert data["timing"] == {"rounds": 3, "burst": False, "clean": False, "graph": False}
    assert sorted(data["measured"][0]) == [
        "difference", "gbytes_per_s", "ms", "name", "roofline", "spread", "tflops", "times_kernel"
    ]  # fmt: skip


def test_wrong_options_and_sizes_are_errors() -> None:
    with pytest.raises(OptionError, match="0 rounds"):
        benched(Clock(), timing=Timing(rounds=0))
    with pytest.raises(ArgumentError, match="is not given"):
        bench(FakeKernel(Clock()), {"M": 1})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("instruction", "tflops"),
    [
        ("wgmma.m64n256k16.f32.f16.f16", 989.4), ("mma.m16n8k16.f32.bf16.bf16.f32", 989.4),
        ("wgmma.m64n128k32.f32.e4m3.e4m3", 1978.8), ("mma.m16n8k32.s32.s8.s8.s32", 1978.8), ("fma", None),
    ],
)  # fmt: skip
def test_the_peak_of_an_instruction(instruction: str, tflops: float | None) -> None:
    peak = peak_of("NVIDIA H200")
    assert peak is not None and mma_tflops(peak, [instruction]) == tflops


def test_the_timer_needs_the_standard_library_alone() -> None:
    code = "import sys; import tile2cu_runtime.timing as t; t.Timer; sys.exit('numpy' in sys.modules)"
    path = str(ROOT / "runtime")
    run = subprocess.run([sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {path!r}); {code}"])
    assert run.returncode == 0
