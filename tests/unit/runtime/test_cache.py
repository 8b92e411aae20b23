"""The build cache: one build among many processes, nothing stale, nothing half-built."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tile2cu_runtime import CompileError
from tile2cu_runtime import cache as caches
from tile2cu_runtime.cache import content_key, get_or_build, tree_key

RUNTIME = Path(caches.__file__).parents[1]


def write_built(temporary: Path, place: Path) -> None:
    (temporary / "built").write_text("whole", encoding="utf-8")


def script(body: str, *args: object) -> subprocess.Popen[str]:
    """A process that runs Python text with the runtime on its path."""
    environment = os.environ | {"PYTHONPATH": str(RUNTIME)}
    return subprocess.Popen(
        [sys.executable, "-c", body, *map(str, args)], env=environment, stdout=subprocess.PIPE, text=True
    )


def test_parts_of_a_key_are_delimited() -> None:
    keys = [content_key("ab", "c"), content_key("a", "bc"), content_key("abc"), content_key("abc", "")]
    assert len(set(keys)) == 4
    assert content_key("a", b"b") == content_key(b"a", "b")


def test_a_tree_key_follows_names_and_content(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.h").write_text("1", encoding="utf-8")
    keys = [tree_key(tmp_path)]
    (tmp_path / "sub" / "a.h").write_text("2", encoding="utf-8")
    keys.append(tree_key(tmp_path))
    (tmp_path / "sub" / "a.h").rename(tmp_path / "sub" / "b.h")
    keys.append(tree_key(tmp_path))
    assert len(set(keys)) == 3
    (tmp_path / "notes.txt").write_text("no header", encoding="utf-8")
    assert tree_key(tmp_path) == keys[2]


def test_builds_once(tmp_path: Path) -> None:
    first = get_or_build("things", "k", write_built, root=tmp_path)
    second = get_or_build("things", "k", write_built, root=tmp_path)
    assert (first.built, second.built) == (True, False)
    assert (first.folder / "built").read_text(encoding="utf-8") == "whole"


@pytest.mark.parametrize("damage", ["truncate", "remove file", "remove seal", "garble seal", "empty seal"])
def test_a_damaged_entry_is_built_again(tmp_path: Path, damage: str) -> None:
    folder = get_or_build("things", "k", write_built, root=tmp_path).folder
    match damage:
        case "truncate":
            (folder / "built").write_text("wh", encoding="utf-8")
        case "remove file":
            (folder / "built").unlink()
        case "remove seal":
            (folder / "sealed.json").unlink()
        case "garble seal":
            (folder / "sealed.json").write_text("[1]", encoding="utf-8")
        case "empty seal":
            (folder / "sealed.json").write_text("{}", encoding="utf-8")
            (folder / "built").unlink()
    again = get_or_build("things", "k", write_built, root=tmp_path)
    assert again.built and (again.folder / "built").read_text(encoding="utf-8") == "whole"


def test_a_failed_build_is_kept_and_named(tmp_path: Path) -> None:
    def fail(temporary: Path, place: Path) -> None:
        (temporary / "text.cu").write_text("wrong", encoding="utf-8")
        raise CompileError("T2C-R011", "no", command=f"cd {temporary} && g++", output=f"{temporary}/text.cu:1: error")

    with pytest.raises(CompileError) as raised:
        get_or_build("things", "k", fail, root=tmp_path)
    kept = Path(raised.value.kept)
    assert (kept / "text.cu").read_text(encoding="utf-8") == "wrong"
    assert raised.value.command == f"cd {kept} && g++"
    assert f"{kept}/text.cu:1: error" in str(raised.value)
    assert not (tmp_path / "things" / "k").exists()
    assert get_or_build("things", "k", write_built, root=tmp_path).built, "a failure is not remembered"


def test_other_errors_leave_nothing(tmp_path: Path) -> None:
    def fail(temporary: Path, place: Path) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get_or_build("things", "k", fail, root=tmp_path)
    assert [path.name for path in (tmp_path / "things").iterdir()] == ["k.lock"]


BUILD = """
import sys, time, pathlib
from tile2cu_runtime.cache import get_or_build
root, seconds = pathlib.Path(sys.argv[1]), float(sys.argv[2])
def build(temporary, place):
    with open(root / "log", "a") as log:
        log.write("build\\n")
    (temporary / "half").write_text("half")
    time.sleep(seconds)
    (temporary / "built").write_text("whole")
entry = get_or_build("things", "k", build, root=root)
print(entry.built, (entry.folder / "built").read_text())
"""


def test_four_cold_processes_build_once(tmp_path: Path) -> None:
    processes = [script(BUILD, tmp_path, 0.3) for _ in range(4)]
    answers = sorted(process.communicate(timeout=30)[0].strip() for process in processes)
    assert answers == ["False whole"] * 3 + ["True whole"]
    assert (tmp_path / "log").read_text(encoding="utf-8") == "build\n"


def test_a_killed_build_is_taken_over(tmp_path: Path) -> None:
    victim = script(BUILD, tmp_path, 60)
    deadline = time.monotonic() + 20
    while not list(tmp_path.glob("things/k.build-*/half")):
        assert time.monotonic() < deadline, "the build did not start"
        time.sleep(0.02)
    victim.send_signal(signal.SIGKILL)
    victim.communicate()
    entry = get_or_build("things", "k", write_built, root=tmp_path)
    assert entry.built and (entry.folder / "built").read_text(encoding="utf-8") == "whole"
    assert not list(tmp_path.glob("things/k.build-*")), "the killed build's folder was left behind"


LOAD = """
import random, sys, time, pathlib
from tile2cu_runtime.cache import get_or_build
root, chance = pathlib.Path(sys.argv[1]), random.Random(int(sys.argv[2]))
def build(temporary, place):
    for part in range(20):
        (temporary / f"part_{part}").write_text(str(part) * 1000)
        time.sleep(chance.random() * 0.01)
for _ in range(40):
    key = f"k{chance.randrange(3)}"
    folder = get_or_build("things", key, build, root=root).folder
    for part in range(20):
        assert (folder / f"part_{part}").read_text() == str(part) * 1000, (key, part)
"""


@pytest.mark.nightly
def test_loaders_that_are_killed_at_random_leave_whole_entries(tmp_path: Path) -> None:
    """Of 24 processes that build and read three entries, half are killed; the others find no half-built entry."""
    chance = random.Random(24)
    processes = [script(LOAD, tmp_path, seed) for seed in range(24)]
    victims = chance.sample(processes, 12)
    for victim in victims:
        time.sleep(chance.random() * 0.1)
        victim.kill()
    assert [each.wait(timeout=120) for each in processes if each not in victims] == [0] * 12
    for key in ("k0", "k1", "k2"):
        entry = get_or_build("things", key, write_built, root=tmp_path)
        assert not entry.built and len(list(entry.folder.glob("part_*"))) == 20
    assert not list(tmp_path.glob("things/*.build-*")), "a killed build's folder was left behind"


def test_a_copied_cache_is_as_good(tmp_path: Path) -> None:
    get_or_build("things", "k", write_built, root=tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    shutil.rmtree(tmp_path / "a")
    assert not get_or_build("things", "k", write_built, root=tmp_path / "b").built
