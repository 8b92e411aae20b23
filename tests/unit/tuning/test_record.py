"""Files of results: sorted, atomic, merged; what is damaged is a diagnostic or a warning, never a traceback."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import jsonschema
import pytest

import schemas
from tests.unit.chooser.kernels import EXAMPLES, example
from tests.unit.tuning.machine import FakeGpu, Machine
from tile2cu.choosing import Tunable
from tile2cu.core.choice import Candidate, Choice
from tile2cu.core.errors import Tile2CuError
from tile2cu.targets import SM90A
from tile2cu.tuning import record
from tile2cu.tuning.record import Figure, Tuned, TuneFile
from tile2cu.tuning.run import Limits, Task, tune_shapes
from tile2cu.tuning.store import Store, key_of

FILE = TuneFile(kernel="gemm_relu", target="cuda:sm_90a", sha256="0" * 64)
SHAPES = [{"M": m, "N": 4096, "K": 4096} for m in (16, 1024)]


def entry(m: int, card: str = "Fake GPU", us: float = 10.0) -> Tuned:
    figure = Figure(file="gemm_relu.py", setting=(("block_M", 64),), us=us, spread=0.01, rounds=11)
    return Tuned(
        sizes=(("K", 1), ("M", m), ("N", 1)), card=card, best=figure, by="model", default_us=us, figures=(figure,)
    )


def tune_into(
    place: Path, shapes: Sequence[Mapping[str, int]] = SHAPES, **options: object
) -> tuple[TuneFile, list[Machine]]:
    machines: list[Machine] = []

    class Counting(FakeGpu):
        def measurer(self, task: Task, default: Candidate) -> Machine:
            machines.append(super().measurer(task, default))
            return machines[-1]

    return tune_shapes([example("gemm_relu")], shapes, Counting(), place=place, **options), machines  # type: ignore[arg-type]


def test_a_file_is_read_as_it_was_written_and_fits_its_schema(tmp_path: Path) -> None:
    place = tmp_path / "gemm_relu.tune.json"
    found, _ = tune_into(place)
    assert record.read(place) == found
    assert [dict(each.sizes)["M"] for each in found.entries] == [16, 1024]
    jsonschema.validate(json.loads(place.read_text(encoding="utf-8")), schemas.tuned())
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == [place.name]


def test_order_and_repetition_do_not_change_its_bytes(tmp_path: Path) -> None:
    for name, order in (("a", SHAPES), ("b", SHAPES[::-1]), ("c", SHAPES + SHAPES)):
        tune_into(tmp_path / name, order)
    assert len({(tmp_path / name).read_bytes() for name in "abc"}) == 1


def test_a_shape_that_has_a_result_is_not_measured_again(tmp_path: Path) -> None:
    place = tmp_path / "gemm_relu.tune.json"
    tune_into(place, SHAPES[:1])
    _, machines = tune_into(place, SHAPES)
    assert [bool(machine.races) for machine in machines] == [True]
    _, machines = tune_into(place, SHAPES, limits=Limits(again=True))
    assert [bool(machine.races) for machine in machines] == [True, True]


def test_results_of_another_version_of_the_file_are_dropped(tmp_path: Path) -> None:
    place = tmp_path / "gemm_relu.tune.json"
    record.add(place, FILE, entry(5))
    found, _ = tune_into(place, SHAPES[:1])
    assert [dict(each.sizes)["M"] for each in found.entries] == [16]


def test_the_users_cache_saves_measurements(tmp_path: Path) -> None:
    store = Store(tmp_path / "cache" / "tuned.sqlite3")
    first, _ = tune_into(tmp_path / "a", store=store)
    second, machines = tune_into(tmp_path / "b", store=store)
    assert second == first
    assert not machines


def test_a_damaged_cache_is_one_warning(tmp_path: Path) -> None:
    path, said = tmp_path / "tuned.sqlite3", []
    path.write_bytes(b"no database" * 500)
    store = Store(path, said.append)
    key = key_of(FILE, ("card", "clocks", "tools"), ())
    store.put(key, entry(1))
    assert store.get(key) is None
    assert len(said) == 1 and "is not used" in said[0]


def test_a_cache_keeps_entries(tmp_path: Path) -> None:
    store, key = Store(tmp_path / "tuned.sqlite3"), key_of(FILE, ("card", "clocks", "tools"), (("M", 1),))
    store.put(key, entry(1))
    store.put(key, entry(1, us=11.0))
    assert Store(tmp_path / "tuned.sqlite3").get(key) == entry(1, us=11.0)
    assert store.get(key_of(FILE, ("card", "clocks", "other tools"), (("M", 1),))) is None
    assert store.get(key_of(FILE, ("card", "clocks", "tools"), (("M", 1),), ("cute",))) is None


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": 1}', '{"format": 2, "kernel": "k", "entries": [{}]}'])
def test_a_file_that_is_none_of_ours(tmp_path: Path, text: str) -> None:
    place = tmp_path / "k.tune.json"
    place.write_text(text, encoding="utf-8")
    with pytest.raises(Tile2CuError) as caught:
        record.read(place)
    assert caught.value.code == "T2C-C021"


WRITERS = """
import os
import sys
from pathlib import Path
from tests.unit.tuning.test_record import FILE, entry
from tile2cu.tuning import record
for n in range(6):
    if (process := os.fork()) == 0:
        for m in range(1000 * n, 1000 * n + 200):
            record.add(Path(sys.argv[1]), FILE, entry(m))
            os.write(1, b"%d\\n" % m)
        os._exit(0)
    os.write(1, b"process %d\\n" % process)
for n in range(6):
    os.wait()
"""


@pytest.mark.nightly
def test_processes_that_are_killed_lose_nothing_that_was_written(tmp_path: Path) -> None:
    """Six write to one file, and are killed at random: it is whole at every moment, and has all that they said."""
    place, drawn = tmp_path / "k.tune.json", random.Random(0)
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-c", WRITERS, str(place)]  # which forks: each that imported anew would take 0.5 s
    processes: list[int] = []
    said: set[int] = set()

    def hear(line: str) -> None:
        *is_process, number = line.split()
        processes.append(int(number)) if is_process else said.add(int(number))

    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        while len(processes) < 6 or len({m // 1000 for m in said}) < 6:
            hear(running.stdout.readline())
        for process in processes:
            time.sleep(drawn.uniform(0, 0.1))
            assert record.read(place) is not None
            with suppress(ProcessLookupError):  # one that has written all of its entries
                os.kill(process, signal.SIGKILL)
        for line in running.stdout:
            hear(line)
    found = record.read(place)
    assert found is not None
    assert said <= {dict(each.sizes)["M"] for each in found.entries}
    record.add(place, FILE, entry(7))  # no lock is left behind


def test_what_was_measured_is_chosen(tmp_path: Path) -> None:
    path = tmp_path / "gemm_relu.py"
    path.write_text((EXAMPLES / "gemm_relu.py").read_text(encoding="utf-8"), encoding="utf-8")
    kernel = Tunable(path=path, text=path.read_text(encoding="utf-8"), kernel=None, target=SM90A, bindings=())
    tune_shapes([kernel], SHAPES, FakeGpu(), place=record.place_of(path, "gemm_relu"))
    choice = kernel.choice(SHAPES[0])
    assert isinstance(choice, Choice) and choice.how == "measured"
    assert dict(choice.setting)["block_N"] >= 128 and str(choice).count("measured on Fake GPU") == 1
    assert kernel.choice({"M": 17, "N": 4096, "K": 4096}).how == "predicted"  # between measured sizes
    path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    changed = Tunable(path=path, text=path.read_text(encoding="utf-8"), kernel=None, target=SM90A, bindings=())
    assert changed.choice(SHAPES[0]).how == "predicted"
