"""Stand-ins for targets: whichever a file names, it is the one that the text is for, and it answers as that does."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.machine import Machine
from tile2cu.frontend.values import Builtin, Instance, describe


def _target(cx: Context, *named: object, **options: object) -> object:
    """`tvm.target.Target("cuda -arch=sm_90a")`."""
    return Instance("tvm.target.Target", {"kind": Instance("TargetKind", {"name": _kind(cx.machine)})})


def _determine_target(cx: Context, target: object = "auto", return_object: object = False, **options: object) -> object:
    """`determine_target("auto")`: the target's kind, or the target."""
    return _target(cx) if return_object is True else _kind(cx.machine)


def _compute_version(cx: Context, *named: object, **options: object) -> object:
    """`nvcc.get_target_compute_version(target)`: "9.0"."""
    return "{}.{}".format(*cx.machine.capability)


def _parse_compute_version(cx: Context, version: object) -> object:
    """`nvcc.parse_compute_version("9.0")`: the two numbers."""
    major, dot, minor = str(version).partition(".")
    if not (dot and major.isdigit() and minor.isdigit()):
        raise Fault("T2C-F017", f"parse_compute_version() takes a version such as '9.0', not {describe(version)}")
    return int(major), int(minor)


def _kind(machine: Machine) -> str:
    return "hip" if machine.is_amd else "cuda"


def _queries(module: str, answers: Mapping[str, Callable[[Machine], bool]]) -> dict[str, object]:
    """Functions of a target that say whether it is of some kind."""

    def query(answer: Callable[[Machine], bool]) -> Callable[..., object]:
        return lambda cx, target=None: answer(cx.machine)

    return {name: Builtin(f"{module}.{name}", query(answer)) for name, answer in answers.items()}


def _is_nvidia(*majors: int) -> Callable[[Machine], bool]:
    return lambda machine: not machine.is_amd and machine.capability[0] in majors


_OF_CUDA: Mapping[str, Callable[[Machine], bool]] = {
    "target_is_cuda": lambda machine: not machine.is_amd,
    "target_is_volta": lambda machine: not machine.is_amd and machine.capability == (7, 0),
    "target_is_turing": lambda machine: not machine.is_amd and machine.capability == (7, 5),
    "target_is_ampere": _is_nvidia(8),
    "target_is_hopper": _is_nvidia(9),
    "target_is_sm100": _is_nvidia(10, 11),
    "target_is_sm120": _is_nvidia(12),
}
_OF_ROCM: Mapping[str, Callable[[Machine], bool]] = {
    "target_is_hip": lambda machine: machine.is_amd,
    "target_is_cdna": lambda machine: machine.is_amd,
    "target_is_gfx950": lambda machine: machine.is_amd and machine.capability == (9, 5),
    "target_is_rdna": lambda machine: False,
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
