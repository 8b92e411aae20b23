"""Substitutes for targets: whichever a file names, it is the one that the text is for, and it answers as that does."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.values import Builtin, Instance, describe
from tile2cu.targets import Target


def _target(cx: Context, *named: object, **options: object) -> object:
    """`tvm.target.Target("cuda -arch=sm_90a")`."""
    return Instance("tvm.target.Target", {"kind": Instance("TargetKind", {"name": _kind(cx.target)})})


def _determine_target(cx: Context, target: object = "auto", return_object: object = False, **options: object) -> object:
    """`determine_target("auto")`: the target's kind, or the target."""
    return _target(cx) if return_object is True else _kind(cx.target)


def _compute_version(cx: Context, *named: object, **options: object) -> object:
    """`nvcc.get_target_compute_version(target)`: "9.0"."""
    return "{}.{}".format(*cx.target.capability)


def _parse_compute_version(cx: Context, version: object) -> object:
    """`nvcc.parse_compute_version("9.0")`: the two numbers."""
    major, dot, minor = str(version).partition(".")
    if not (dot and major.isdigit() and minor.isdigit()):
        raise Fault("T2C-F017", f"parse_compute_version() takes a version such as '9.0', not {describe(version)}")
    return int(major), int(minor)


def _kind(target: Target) -> str:
    return "hip" if target.is_amd else "cuda"


def _queries(module: str, answers: Mapping[str, Callable[[Target], bool]]) -> dict[str, object]:
    """Functions of a target that say whether it is of some kind."""

    def query(answer: Callable[[Target], bool]) -> Callable[..., object]:
        return lambda cx, target=None: answer(cx.target)

    return {name: Builtin(f"{module}.{name}", query(answer)) for name, answer in answers.items()}


def _is_nvidia(*majors: int) -> Callable[[Target], bool]:
    return lambda target: not target.is_amd and target.capability[0] in majors


_OF_CUDA: Mapping[str, Callable[[Target], bool]] = {
    "target_is_cuda": lambda target: not target.is_amd,
    "target_is_volta": lambda target: not target.is_amd and target.capability == (7, 0),
    "target_is_turing": lambda target: not target.is_amd and target.capability == (7, 5),
    "target_is_ampere": _is_nvidia(8),
    "target_is_hopper": _is_nvidia(9),
    "target_is_sm100": _is_nvidia(10, 11),
    "target_is_sm120": _is_nvidia(12),
}
_OF_ROCM: Mapping[str, Callable[[Target], bool]] = {
    "target_is_hip": lambda target: target.is_amd,
    "target_is_cdna": lambda target: target.is_amd,
    "target_is_gfx950": lambda target: target.is_amd and target.capability == (9, 5),
    "target_is_rdna": lambda target: False,
}
_DETERMINE: Mapping[str, object] = {"determine_target": Builtin("determine_target", _determine_target)}

MODULES: Mapping[str, Mapping[str, object]] = MappingProxyType(
    {
        "tilelang.contrib": {},
        "tilelang.contrib.nvcc": {
            "get_target_compute_version": Builtin("nvcc.get_target_compute_version", _compute_version),
            "parse_compute_version": Builtin("nvcc.parse_compute_version", _parse_compute_version),
        },
        "tvm.target": {"Target": Builtin("tvm.target.Target", _target)},
        "tilelang.backend": {},
        "tilelang.backend.target": _DETERMINE,
        "tilelang.utils.target": _queries("tilelang.utils.target", {**_OF_CUDA, **_OF_ROCM}) | dict(_DETERMINE),
        "tilelang.cuda.target": _queries("tilelang.cuda.target", _OF_CUDA),
        "tilelang.rocm": {},
        "tilelang.rocm.target": _queries("tilelang.rocm.target", _OF_ROCM),
    }
)
