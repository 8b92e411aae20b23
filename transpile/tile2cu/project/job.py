"""A job: one source file, emitted one way into one folder."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import field, to_builtins

from tile2cu.core.dispatch import Dispatch
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.origin import EmitOptions
from tile2cu.core.record import Record

if TYPE_CHECKING:
    from tile2cu.emitter import Emitted

# What every job imports: before processes are forked, which would import it each for itself.
_EMITTER = ("jinja2", "tile2cu.api", "tile2cu.frontend.reading", "tile2cu.styles.tl.style")


class Job(Record, frozen=True, kw_only=True):
    """What to emit. `file` is read, the files go into `folder`; `kernel` None is all of the file.

    `target` is one, or several of one language with commas between: then each kernel is a dispatch by architecture.
    With a `dispatch` its entries say what is read, below the folder of `file`, and which targets there are.
    """

    file: Path
    folder: Path
    target: str
    kernel: str | None = None
    bindings: Mapping[str, object] = field(default_factory=dict)
    options: EmitOptions = EmitOptions()
    dispatch: Dispatch | None = None

    @property
    def key(self) -> str:
        """A name for the job: it is another when any part of it is."""
        parts = (str(self.file), str(self.folder), self.target, self.kernel, sorted(self.bindings.items()))
        rest = (to_builtins(self.options), to_builtins(self.dispatch))
        return hashlib.sha256(json.dumps((*parts, *rest)).encode()).hexdigest()[:32]

    @property
    def title(self) -> str:
        """For progress and messages."""
        return f"{self.file.name} for {self.target}"

    @property
    def targets(self) -> list[str]:
        """The names of all targets."""
        return self.target.split(", ")

    def emit(self) -> tuple["Emitted", ...]:
        """The kernels' files as text; nothing is written. Raises Tile2CuError."""
        from tile2cu.api import emit_text
        from tile2cu.targets import find

        if self.dispatch is not None:
            from tile2cu.project.dispatched import dispatched

            return dispatched(self.dispatch, self.file.parent, self.options)
        targets = [find(name) for name in self.targets]
        if len(targets) > 1:
            from tile2cu.project.dispatched import by_architecture

            return by_architecture(
                self.file, self.kernel, targets=targets, bindings=self.bindings, options=self.options
            )
        return emit_text(self.file, kernel=self.kernel, target=targets[0], bindings=self.bindings, options=self.options)


class Outcome(Record, frozen=True, kw_only=True):
    """What came of a job: the emitted kernels, or the diagnostic."""

    job: Job
    emitted: tuple["Emitted", ...] = ()
    error: Tile2CuError | None = None


class Selection(Record, frozen=True, kw_only=True):
    """The jobs that a call is about. `root` is the folder that keeps what tile2cu remembers of them."""

    root: Path
    jobs: tuple[Job, ...]
    listed: bool  # in a pyproject.toml: then nothing else is to lie in the folders


def emit_all(jobs: Sequence[Job], progress: Callable[[str], None] = lambda title: None) -> list[Outcome]:
    """Emits all jobs, in as many processes as pay, and gives their outcomes in the order of the jobs.

    Raises T2C-C013 when two of them would write one file.
    """
    found = {job.key: outcome for job, outcome in _outcomes(jobs, progress)}
    outcomes = [found[job.key] for job in jobs]
    _refuse_collisions(outcomes)
    return outcomes


def _refuse_collisions(outcomes: Sequence[Outcome]) -> None:
    writers: dict[Path, Job] = {}
    for outcome in outcomes:
        for path in (outcome.job.folder / name for one in outcome.emitted for name in one.files):
            other = writers.setdefault(path, outcome.job)
            if other is not outcome.job:
                raise Tile2CuError(
                    "T2C-C013",
                    f"{other.title} and {outcome.job.title} both write {path}",
                    help="give one of the entries another `output` or `name`",
                )


def _outcomes(jobs: Sequence[Job], progress: Callable[[str], None]) -> Iterator[tuple[Job, Outcome]]:
    if len(jobs) < 2:
        for job in jobs:
            yield job, _run(job)
            progress(job.title)
        return
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import get_start_method

    if get_start_method() == "fork":
        for name in _EMITTER:
            import_module(name)
    with ProcessPoolExecutor(max_workers=min(len(jobs), _cpus())) as pool:
        running = {pool.submit(_run, job): job for job in jobs}
        for done in as_completed(running):
            yield running[done], done.result()
            progress(running[done].title)


def _run(job: Job) -> Outcome:
    try:
        return Outcome(job=job, emitted=job.emit())
    except Tile2CuError as error:
        return Outcome(job=job, error=error)


def _cpus() -> int:
    import os

    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
