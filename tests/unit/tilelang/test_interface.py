"""tile2cu.tilelang has what its table says it has; names of the language are objects without a value."""

import importlib
from pathlib import Path

import pytest

from tile2cu.core.errors import Tile2CuError
from tile2cu.tilelang import language as T
from tile2cu.tilelang import notes
from tile2cu.tilelang.autotuner import AutoTuner
from tile2cu.tilelang.counterparts import PARTS, Status, counterpart, table
from tile2cu.tilelang.jit import JITImpl
from tile2cu.tilelang.kernel import JITKernel
from tile2cu.tilelang.options import PASS_CONFIGS, PassConfigKey, options_of
from tile2cu.tilelang.profiler import Profiler
from tile2cu.tilelang.symbols import DType, Symbol

ROOT = Path(__file__).resolve().parents[3]
_CLASSES = {"AutoTuner": AutoTuner, "JITKernel": JITKernel, "Profiler": Profiler, "JITImpl": JITImpl}
_SET_BY_INIT = ("prim_func",)


def found(name: str) -> object:
    """The object under TileLang's name, as a program that imports tile2cu.tilelang gets it."""
    first, *rest = name.split(".")
    if first in _CLASSES:
        return rest[0] in _SET_BY_INIT or getattr(_CLASSES[first], rest[0], None)
    value: object = importlib.import_module("tile2cu.tilelang")
    for at, part in enumerate(rest):
        try:
            value = getattr(value, part)
        except AttributeError:
            value = importlib.import_module(".".join(["tile2cu.tilelang", *rest[: at + 1]]))
    return value


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_the_table_is_true(part: object) -> None:
    name, status = part.name, part.status  # type: ignore[attr-defined]
    if name.startswith(("tvm", "tilelang.tvm")):
        return
    value = found(name)
    inert = value is None or isinstance(value, Symbol) or type(value).__name__ == "_Symbols"
    if status is Status.MISSING and part.note.startswith("but for "):  # type: ignore[attr-defined]
        assert isinstance(value.no_such_name, Symbol)
    elif status is Status.MISSING:
        assert inert or name == "tilelang.carver"
    else:
        assert not inert or "in kernels only" in part.note  # type: ignore[attr-defined]


def test_the_page_has_the_tables() -> None:
    page = (ROOT / "docs" / "migrating.md").read_text(encoding="utf-8").splitlines()
    lines = list(table())
    start = page.index(lines[0])
    assert page[start : start + len(lines)] == lines, "copy `python tools/migrating.py` between the marks"


def test_every_public_name_is_in_the_table() -> None:
    tilelang = importlib.import_module("tile2cu.tilelang")
    modules = ("contrib", "language", "math", "profiler", "tools", "transform", "utils", "__version__")
    missing = [name for name in tilelang.__all__ if name not in modules and counterpart(f"tilelang.{name}") is None]
    assert missing in ([], ["AutoTuner", "do_bench"])


def test_the_longest_part_counts() -> None:
    driver, template = counterpart("tilelang.carver.arch.driver.get_num_sms"), counterpart("tilelang.carver.template.M")
    assert driver is not None and driver.status is Status.SAME
    assert template is not None and template.name == "tilelang.carver"
    assert counterpart("numpy.array") is None


def test_types() -> None:
    assert T.float16 == "float16" and isinstance(T.float16, DType) and {T.float16: 1}["float16"] == 1
    assert (T.float16.bits, T.int8.itemsize, T.dtype("torch.bfloat16")) == (16, 1, "bfloat16")
    assert T.float32(3) == 3.0 and isinstance(T.int32(3.0), int)
    with pytest.raises(Tile2CuError, match="F018"):
        T.dtype("float17")


@pytest.mark.needs("torch")
def test_types_of_torch() -> None:
    import torch

    from tile2cu.tilelang.language.dtypes import _TORCH_DTYPE_TO_STR

    assert T.float16.as_torch() is torch.float16 and T.int4.as_torch() is torch.int8
    assert T.dtype(torch.float16) == T.float16
    assert _TORCH_DTYPE_TO_STR[torch.bfloat16] == "bfloat16"


def test_functions_of_the_host_compute_numbers() -> None:
    assert (T.ceildiv(7, 2), T.max(1, 2), T.min(1, 2), T.floordiv(7, 2)) == (4, 2, 1, 3)
    assert isinstance(T.ceildiv(T.dynamic("n"), 2), Symbol)
    m, n = T.dynamic("m, n")
    assert repr(m) == "<m: read by tile2cu, not run>" and isinstance(m + n * 2, Symbol)


def test_names_of_the_language_exist_and_have_no_value() -> None:
    assert isinstance(T.Tensor((3, 4), T.float16), Symbol) and isinstance(T.Tensor[[3], T.float16], Symbol)
    assert T.GemmWarpPolicy.FullRow.tile2cu_name == "tilelang.language.GemmWarpPolicy.FullRow"
    for use in (bool, int, float, len, list):
        with pytest.raises(Tile2CuError, match="C031"):
            use(T.Tensor((3,)))
    with pytest.raises(AttributeError, match="no name 'gem'"):
        T.gem  # noqa: B018


def test_modules_without_a_counterpart_can_be_imported() -> None:
    from tile2cu.tilelang.layout import make_swizzled_layout  # type: ignore[import-not-found]

    with pytest.warns(notes.Note, match="no counterpart"):
        assert isinstance(make_swizzled_layout(3), Symbol)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("tile2cu.tilelang.lay_out")


def test_modules_whose_names_are_elsewhere() -> None:
    from tile2cu.tilelang.autotuner.capture import set_autotune_inputs  # type: ignore[import-not-found]
    from tile2cu.tilelang.jit.kernel import JITKernel as Kernel  # type: ignore[import-not-found]
    from tile2cu.tilelang.profiler.bench import do_bench  # type: ignore[import-not-found]

    tilelang = importlib.import_module("tile2cu.tilelang")
    assert Kernel is tilelang.JITKernel and do_bench is tilelang.do_bench
    assert set_autotune_inputs is tilelang.autotuner.set_autotune_inputs
    assert isinstance(tilelang.register_cuda_postproc, Symbol)
    with pytest.raises(AttributeError, match="docs/migrating.md"):
        _ = tilelang.no_such_name


def test_each_note_is_given_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes, "_said", set())
    with pytest.warns(notes.Note) as caught:
        for _ in range(2):
            options_of(verbose=True, pass_configs={PassConfigKey.TL_ENABLE_FAST_MATH: True, "tl.unknown": 1})
    assert len(caught) == 3
    assert all(each.filename == __file__ for each in caught), "at the program's line"


def test_pass_configs_are_named_as_tilelang_names_them() -> None:
    assert PassConfigKey.TL_DISABLE_THREAD_STORAGE_SYNC.value == "tl.disable_thread_storage_sync"
    assert options_of(pass_configs={"tl.disable_thread_storage_sync": True}).own_barriers
    assert set(PassConfigKey.__members__) == set(PASS_CONFIGS)


@pytest.mark.parametrize(
    ("target", "name"),
    [
        (None, "auto"),
        ("auto", "auto"),
        ("cuda", "auto"),
        ("cuda -arch=sm_90a", "cuda:sm_90a"),
        ("cuda -arch=sm_90", "cuda:sm_90a"),
        ({"kind": "cuda", "arch": "sm_80"}, "cuda:sm_80"),
        ({"kind": "hip", "mcpu": "gfx942"}, "hip:gfx942"),
        ("hip", "hip:gfx942"),
        ("cuda:sm_80", "cuda:sm_80"),
    ],
)
def test_targets(target: object, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILE2CU_TARGET", raising=False)
    assert options_of(target=target).target == name


def test_the_environment_has_the_target_and_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILE2CU_TARGET", "cuda:sm_90a")
    monkeypatch.setenv("TILE2CU_DEVICE", "cpu")
    assert (options_of().target, options_of().device) == ("cuda:sm_90a", "cpu")
    with pytest.raises(Tile2CuError, match="C031"):
        options_of(target="metal")


def test_functions_without_a_source_are_diagnosed() -> None:
    names: dict[str, object] = {}
    exec("def f(A): pass", names)
    from tile2cu import tilelang

    with pytest.raises(Tile2CuError, match="C030"):
        tilelang.jit(names["f"])
    with pytest.raises(Tile2CuError, match="C030"):
        T.prim_func(len)
