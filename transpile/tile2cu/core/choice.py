"""A configuration that was chosen for a kernel, with its reasons, as data."""

from dataclasses import dataclass

Setting = tuple[tuple[str, int], ...]  # values of a factory's parameters, by name


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The values of a kernel's tile parameters that a model or a measurement chose for `sizes`.

    Times are in microseconds a call, predicted by the model of `card`. `because` states what bounds the kernel;
    `runner_up` is the second best of another setting, None where there is none; `default` are the file's own values.
    """

    setting: Setting
    us: float
    runner_up: Setting | None
    runner_up_us: float
    default: Setting
    default_us: float
    because: str
    card: str
    sizes: Setting = ()

    def __str__(self) -> str:
        return f"{named(self.setting)}: {self.us:.1f} us predicted; {self.because}"


def named(setting: Setting) -> str:
    """`block_M = 64, block_N = 128`."""
    return ", ".join(f"{name} = {value}" for name, value in setting)
