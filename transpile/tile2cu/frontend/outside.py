"""What the front end may ask of the world outside the user's file: the files beside it, and facts of the device."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tile2cu.frontend import host
from tile2cu.frontend.context import Bindings, Context
from tile2cu.frontend.imports import Reader, reader_beside
from tile2cu.frontend.limits import Budget
from tile2cu.frontend.machine import Machine
from tile2cu.frontend.parse import SourceFile, sha256
from tile2cu.frontend.values import Arguments, Function


@dataclass(frozen=True)
class Outside:
    """The files beside the user's file, and the device."""

    read: Reader
    machine: Machine

    def context(
        self,
        source: SourceFile,
        budget: Budget,
        bindings: Bindings,
        call_function: Callable[[Context, Function, Arguments], object],
    ) -> Context:
        """A Context that knows them."""
        return Context(source, budget, bindings, call_function, self.machine, self.read, host.run_host)

    def recording(self, read: dict[str, str]) -> "Outside":
        """The same, noting in `read` the hash of each file that is read, by its name."""

        def noted(name: str) -> str | None:
            text = self.read(name)
            if text is not None:
                read[name] = sha256(text)
            return text

        return replace(self, read=noted)


def outside(
    path: Path | None,
    read: Reader | None = None,
    capability: tuple[int, int] | None = None,
    multiprocessors: int | None = None,
    warp_size: int | None = None,
) -> Outside:
    """The files beside `path`, unless `read` gives them, and the device; an A100 where nothing is said."""
    default = Machine()
    machine = Machine(
        capability or default.capability,
        multiprocessors or default.multiprocessors,
        warp_size or default.warp_size,
    )
    return Outside(read or reader_beside(path), machine)
