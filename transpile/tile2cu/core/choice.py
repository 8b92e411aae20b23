"""A configuration that was chosen for a kernel, with its reasons, as data."""

from typing import Literal, NamedTuple

from tile2cu.core.record import Record

TILES_RULE, TUNED_RULE = "schedule.tiles.model", "schedule.tiles.measured"
Setting = tuple[tuple[str, int], ...]  # values of a factory's parameters, by name


class Candidate(NamedTuple):
    """A kernel's file, by its path from that of the family's first, and a setting of its tile parameters."""

    file: str
    setting: Setting

    def __str__(self) -> str:
        return f"{self.file}: {named(self.setting)}"


class Choice(Record, frozen=True, kw_only=True):
    """The values of a kernel's tile parameters that a model or a measurement chose for `sizes`.

    Times are in microseconds a call, `how` predicted by the model of `card`, or measured on it. `because` states what
    bounds the kernel; `runner_up` is the second best, None where there is none; `default` are the file's own values,
    of no time where they were not measured.
    `others` are files of the same family, with the time of each one's best setting.
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
    how: Literal["predicted", "measured"] = "predicted"
    others: tuple[tuple[str, float], ...] = ()

    def __str__(self) -> str:
        """The values, the predicted time, what bounds it, and how the next best and the file's own values do."""
        on = "for" if self.how == "predicted" else "on"
        text = f"{named(self.setting)}; {self.us:.1f} us {self.how} {on} {self.card}, {self.because}"
        if self.runner_up is not None:
            differing = tuple(pair for pair in self.runner_up if pair not in self.setting)
            what = "next best" if self.runner_up_us >= self.us else "not worth a change"
            text += f"; {what}: {named(differing)}, {self.runner_up_us:.1f} us"
        if self.setting != self.default and self.default_us > 0:
            differing = tuple(pair for pair in self.default if pair not in self.setting)
            text += f"; the file's {named(differing)}: {self.default_us:.1f} us"
        text += "".join(f"; {file}: {us:.1f} us" for file, us in self.others)
        return text


class Unchosen(Record, frozen=True, kw_only=True):
    """Why a kernel that was to be chosen for keeps the values of its file."""

    because: str

    def __str__(self) -> str:
        return f"the file's own, since {self.because}"


def named(setting: Setting) -> str:
    """`block_M = 64, block_N = 128`."""
    return ", ".join(f"{name} = {value}" for name, value in setting)


def rule_of(choice: Choice | Unchosen) -> str:
    """The rule that a choice is by."""
    return TUNED_RULE if isinstance(choice, Choice) and choice.how == "measured" else TILES_RULE
