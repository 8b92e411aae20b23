"""Exceptions of the runtime: code, message, notes, and help."""

from __future__ import annotations


class Error(Exception):
    """Base of all errors of tile2cu and of its runtime: `except tile2cu.Error`.

    Each has a `code`, a `message` in lower case, and a `help`, which may be empty; its string is the whole diagnostic.
    """

    code: str
    message: str
    help: str


class Tile2CuRuntimeError(Error):
    """A runtime error. `code` is `T2C-R<3 digits>`.

    R0xx manifest, compilers, devices and options; R1xx the arguments of a call; R2xx the launch; R3xx findings of a
    checked run. `message` is lower case without a full stop; `help` states the remedy.
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
    """The manifest is missing, malformed or inconsistent."""


class CompileError(Tile2CuRuntimeError):
    """A compiler is missing or has failed: `command`, its `output`, and the folder `kept`."""

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
    """The requested device is missing, or the kernel is for another one."""


class OptionError(Tile2CuRuntimeError, ValueError):
    """An unknown option of `load_kernel`, or options that exclude each other."""


class ArgumentError(Tile2CuRuntimeError, ValueError):
    """The arguments of a call do not fit the kernel; nothing was launched. `argument` names the first one found."""

    def __init__(
        self, code: str, message: str, *, argument: str = "", notes: tuple[str, ...] = (), help: str = ""
    ) -> None:
        super().__init__(code, message, notes=notes, help=help)
        self.argument = argument


class SimulationError(Tile2CuRuntimeError):
    """A simulated launch was aborted: an unsupported instruction, or an unrecoverable fault."""


class LaunchError(Tile2CuRuntimeError):
    """The launcher returned a status other than TL_OK: the number `status`, and its `name`."""

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
