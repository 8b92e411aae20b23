"""Workers of a Ray cluster: an actor for each of its GPUs."""

import importlib
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from tile2cu.core.errors import Tile2CuError
from tile2cu.tuning.workers import Workers

LOCAL = "local"
Result = TypeVar("Result")


class Actor:
    """A worker that is an actor of Ray, to which `gpus` of its node belong."""

    def __init__(self, ray: Any, name: str, gpus: float) -> None:
        self.name = name
        self._ray, self._gpus = ray, gpus
        self._actor = self._started()

    def submit(self, call: Callable[[], Result]) -> "Future[Result]":
        future: Future[Result] = self._actor.run.remote(call).future()
        return future

    def died(self, error: BaseException) -> bool:
        return isinstance(error, self._ray.exceptions.RayActorError)

    def renew(self) -> None:
        self._actor = self._started()

    def close(self) -> None:
        self._ray.kill(self._actor)

    def _started(self) -> Any:
        return self._ray.remote(_Runner).options(num_gpus=self._gpus, num_cpus=0, max_restarts=0).remote()


class _Runner:
    """What an actor does."""

    def run(self, call: Callable[[], Result]) -> Result:
        return call()


def on_ray(address: str, actors: int | None = None) -> Workers:
    """An actor for each GPU of the cluster at an address; "local" starts one on this host.

    With `actors` so many that have no GPU, for devices that need none. Errors: T2C-C019 without Ray, T2C-C024 where the
    cluster does not answer or has no GPU.
    """
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError:
        help = "pip install 'tile2cu[ray]'"
        raise Tile2CuError("T2C-C019", "the Python package `ray` is not installed", help=help) from None
    try:
        ray.init(address=None if address == LOCAL else address, ignore_reinit_error=True, log_to_driver=False)
    except (ConnectionError, RuntimeError, ValueError) as error:
        help = 'name a cluster as HOST:PORT, "auto" for the one of this host, "local" to start one'
        raise Tile2CuError("T2C-C024", f"no Ray cluster answers at `{address}`: {error}", help=help) from error
    there = ray.cluster_resources()
    count = int(there.get("GPU", 0)) if actors is None else actors
    if not count:
        raise Tile2CuError("T2C-C024", f"the Ray cluster at `{address}` has no GPU", help="ray status lists its nodes")
    each = tuple(Actor(ray, f"actor {number}", 1 if actors is None else 0) for number in range(count))
    return Workers(each=each, builds=max(int(there.get("CPU", 1)) // count, 1))
