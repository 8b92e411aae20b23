"""What the runtime raises: a code, what went wrong, notes, and how to get out."""

from __future__ import annotations


class Tile2CuRuntimeError(Exception):
    """A runtime problem. `code` is `T2C-R<3 digits>`.

    R0xx manifest, compilers, devices and options; R1xx the arguments of a call; R2xx the launch; R3xx findings of a
    checked run. `message` is lower case and without a full stop; `help` says how to get out.
    """

    def __init__(self, code: str, message: str, *, notes: tuple[str, ...] = (), help: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.notes = notes
        self.help = help

    def __str__(self) -> str:
        lines = [f"error[{self.code}]: {self.message}"]
        lines += ["  = note: " + note.replace("\n", "\n          ") for note in self.notes]
        if self.help:
            lines.append("  = help: " + self.help.replace("\n", "\n          "))
        return "\n".join(lines)


class ManifestError(Tile2CuRuntimeError, ValueError):
    """The manifest is missing, is no manifest, or says something that cannot be."""


class CompileError(Tile2CuRuntimeError):
    """A compiler is missing or has failed. `command` is what was run, `output` what it printed, `kept` the folder."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        command: str = "",
        output: str = "",
        kept: str = "",
        help: str = "",
    ) -> None:
        notes = tuple(
            note
            for note in (
                f"command: {command}" if command else "",
                f"the compiler said:\n{output.rstrip()}" if output.strip() else "",
                f"the files are kept in {kept}" if kept else "",
            )
            if note
        )
        super().__init__(code, message, notes=notes, help=help)
        self.command = command
        self.output = output
        self.kept = kept


class DeviceError(Tile2CuRuntimeError):
    """The machine has not the device that was asked for, or the kernel is not for it."""


class OptionError(Tile2CuRuntimeError, ValueError):
    """An option of `load_kernel` that does not exist, or that does not go with the others."""


class ArgumentError(Tile2CuRuntimeError, ValueError):
    """The arguments of a call do not fit the kernel; nothing was launched. `argument` is the name of the culprit."""

    def __init__(
        self, code: str, message: str, *, argument: str = "", notes: tuple[str, ...] = (), help: str = ""
    ) -> None:
        super().__init__(code, message, notes=notes, help=help)
        self.argument = argument


class SimulationError(Tile2CuRuntimeError):
    """A simulated launch ended early: an instruction that the simulator has not, or a fault that it cannot go past."""


class LaunchError(Tile2CuRuntimeError):
    """The launcher returned a status other than TL_OK. `status` is the number, `name` its name."""

    def __init__(self, code: str, message: str, *, status: int, name: str, notes: tuple[str, ...] = ()) -> None:
        super().__init__(code, message, notes=notes)
        self.status = status
        self.name = name


# The enumerators of headers/tl/status.h.
_STATUS_NAMES = {
    0: "TL_OK",
    1: "TL_INVALID_SIZE",
    2: "TL_MISALIGNED",
    3: "TL_NOT_SUPPORTED",
    4: "TL_WRONG_DEVICE",
    5: "TL_WORKSPACE_TOO_SMALL",
}
_LAUNCH_FAILED = 1000


def status_name(status: int) -> str:
    """The name of a launcher's status in headers/tl/status.h."""
    if status >= _LAUNCH_FAILED:
        return f"TL_LAUNCH_FAILED + {status - _LAUNCH_FAILED}"
    return _STATUS_NAMES.get(status, f"status {status}")
