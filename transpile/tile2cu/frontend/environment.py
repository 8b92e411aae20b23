"""`os.environ`: a text does not depend on who emits it, so no variable is set and each has its default."""

from collections.abc import Mapping
from types import MappingProxyType

from tile2cu.frontend.context import Context
from tile2cu.frontend.values import Builtin, Instance


def _default(cx: Context, name: object, default: object = None) -> object:
    """`os.environ.get(name, default)`."""
    return default


_GET: Mapping[str, object] = {"get": Builtin("os.environ.get", _default)}
OS: Mapping[str, object] = MappingProxyType(
    {"environ": Instance("os.environ", dict(_GET)), "getenv": Builtin("os.getenv", _default)}
)
