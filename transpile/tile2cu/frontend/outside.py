"""What the front end may ask of the world outside the user's file: the files next to it, and facts of the device."""

from collections.abc import Callable, Mapping

from msgspec import field
from msgspec.structs import replace

from tile2cu.core.record import Record
from tile2cu.frontend import host
from tile2cu.frontend.context import Bindings, Context
from tile2cu.frontend.imports import Reader
from tile2cu.frontend.limits import Budget
from tile2cu.frontend.live import Live
from tile2cu.frontend.parse import SourceFile, sha256
from tile2cu.frontend.values import Arguments, Function
from tile2cu.targets import SM80, Target


class Outside(Record, frozen=True):
    """The files next to the user's file, the device, the variables of the environment that are given, and the program
    that calls the kernel, if one runs.
    """

    read: Reader
    target: Target = SM80
    environment: Mapping[str, str] = field(default_factory=dict)
    live: Live | None = None

    def context(
        self,
        source: SourceFile,
        budget: Budget,
        bindings: Bindings,
        call_function: Callable[[Context, Function, Arguments], object],
    ) -> Context:
        """A Context that knows them."""
        return Context(
            source,
            budget,
            bindings,
            call_function,
            self.target,
            self.environment,
            self.read,
            host.run_host,
            live=self.live,
        )

    def recording(self, read: dict[str, str]) -> "Outside":
        """The same, noting in `read` the hash of each file that is read, by its name."""

        def noted(name: str) -> str | None:
            text = self.read(name)
            if text is not None:
                read[name] = sha256(text)
            return text

        return replace(self, read=noted)
