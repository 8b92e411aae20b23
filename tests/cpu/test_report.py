"""The engine as a library: reports, threads, several kernels in a process, machines without addr2line."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from kernels_under_test import Bench, Uninitialised

from tile2cu_runtime.engine import EngineOptions

OUT = Uninitialised((4096,), np.dtype(np.float32))
INPUTS = np.arange(4096, dtype=np.float32)


def test_report_has_the_promised_form(bench: Bench) -> None:
    report = bench.launch("micro", "block_sum_run", 1, INPUTS, OUT, check=True, statistics=True).report
    assert set(report) == {"findings", "warnings", "findings_omitted", "statistics"}
    assert set(report["statistics"]) == {"switches", "collectives", "shared", "global"}
    for finding in report["findings"]:
        assert {"kind", "message", "count", "places"} <= set(finding)
        assert "{" not in finding["message"]
        for place in finding["places"]:
            assert set(place) == {"file", "line", "function"}
    for row in report["statistics"]["shared"]:
        assert set(row) == {"place", "access", "bytes", "requests", "wavefronts", "ideal", "worst_ways"}
        assert row["access"] in ("read", "write")
    for row in report["statistics"]["global"]:
        assert set(row) == {"place", "access", "bytes", "requests", "sectors", "ideal"}


def test_repeated_finding_is_one_with_a_count(bench: Bench) -> None:
    findings = bench.launch("micro", "warp_exchange_run", 1, INPUTS, OUT, check=True).findings
    (race,) = [finding for finding in findings if finding["kind"] == "race: write -> read"]
    assert race["count"] > 1


def test_reading_a_report_twice_gives_it_twice_and_a_launch_starts_anew(bench: Bench) -> None:
    memory = (ctypes.c_float * 8192)()
    with bench.engine.turn(EngineOptions()):
        run = bench.library("micro").fast.warp_exchange_run
        assert run(0, memory, memory) == 0
        assert run(0, memory, memory) == 0
        first, again = bench.engine.report(), bench.engine.report()
        assert run(0, memory, memory) == 0
        third = bench.engine.report()
    assert first == again
    assert first["statistics"]["switches"] == 2 * third["statistics"]["switches"]


def test_launches_from_many_threads_each_get_their_own_report(bench: Bench) -> None:
    memory = [(ctypes.c_float * 8192)() for _ in range(4)]
    statuses: dict[int, int] = {}
    findings: dict[int, list[str]] = {}

    def work(number: int) -> None:
        micro = bench.library("micro").fast
        run = micro.half_warp_run  # fault 1 deadlocks
        for _ in range(20):
            statuses[number] = run(number % 2, memory[number], memory[number])
        findings[number] = [finding["kind"] for finding in bench.engine.report()["findings"]]

    with bench.engine.turn(EngineOptions()):
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert statuses == {0: 0, 1: 1, 2: 0, 3: 1}
    assert findings == {0: [], 1: ["deadlock"], 2: [], 3: ["deadlock"]}


def test_launch_beyond_the_limits_is_refused(bench: Bench) -> None:
    request = (ctypes.c_byte * 256)()
    header = (ctypes.c_uint32 * 6)(1, 1, 1, 2048, 1, 1)
    ctypes.memmove(request, header, 24)
    with bench.engine.turn(EngineOptions()):
        library = ctypes.CDLL(str(bench.engine.path))
        assert library.tl_engine_launch(request) == 1
        (finding,) = bench.engine.report()["findings"]
    assert finding["kind"] == "launch rejected"
    assert "1 to 1024 threads, not 2048" in finding["message"]


def test_freed_memory_is_out_of_bounds(bench: Bench) -> None:
    content = np.zeros(4096, np.float32)
    with bench.engine.memory(content.nbytes, content.ctypes.data) as freed:
        pass
    run = bench.library("micro").checked.global_run
    with (
        bench.engine.turn(EngineOptions(check=True)),
        bench.engine.memory(content.nbytes, content.ctypes.data) as first,
        bench.engine.memory(content.nbytes, None) as second,
    ):
        assert freed in (first, second)  # space is used again
        assert run(0, ctypes.c_void_p(first), ctypes.c_void_p(second)) == 0
        assert bench.engine.report()["findings"] == []
    with bench.engine.turn(EngineOptions(check=True)):
        run(0, ctypes.c_void_p(first), ctypes.c_void_p(second))
        assert {finding["kind"] for finding in bench.engine.report()["findings"]} == {"global out-of-bounds"}


WITHOUT_ADDR2LINE = """
import ctypes, json, sys
engine = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
kernels = ctypes.CDLL(sys.argv[2])
engine.tl_engine_report_json.restype = ctypes.c_char_p
memory = (ctypes.c_float * 8192)()
kernels.half_warp_run(1, memory, memory)
(finding,) = json.loads(engine.tl_engine_report_json())["findings"]
(place,) = finding["places"]
assert finding["kind"] == "deadlock", finding
assert place["file"].startswith(sys.argv[2] + "+0x") and place["line"] == 0, place
"""


def test_without_addr2line_a_place_is_library_and_offset(bench: Bench) -> None:
    kernels = bench.library("micro").fast._name
    command = [sys.executable, "-c", WITHOUT_ADDR2LINE, bench.engine.path, kernels]
    subprocess.run(command, check=True, env={**os.environ, "PATH": "/nowhere"})


BESIDE_TORCH = """
import torch, ctypes, sys
import numpy
engine = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
kernels = ctypes.CDLL(sys.argv[2])
x = torch.ones(4096)
out = torch.zeros(256)
assert kernels.block_sum_run(0, ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(out.data_ptr())) == 0
assert (out == 4096).all()
assert (torch.ones(64, 64) @ torch.ones(64, 64) == 64).all()
"""


@pytest.mark.nightly
@pytest.mark.needs("torch")
def test_engine_loads_beside_torch(bench: Bench) -> None:
    """Its thread-local variables live in a small reserve that libraries loaded later share."""
    kernels = bench.library("micro").fast._name
    subprocess.run([sys.executable, "-c", BESIDE_TORCH, bench.engine.path, kernels], check=True)
