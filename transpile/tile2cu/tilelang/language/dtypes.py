"""`tilelang.language.dtypes`: element types by torch's."""

from collections.abc import Iterator, Mapping
from typing import Any

from tile2cu.core.dtype import BY_NAME
from tile2cu.tilelang.symbols import DType as dtype

__all__ = ["_TORCH_DTYPE_TO_STR", "dtype"]


class _NamesOfTorch(Mapping[Any, str]):
    """The names of torch's types; torch is imported when one is asked for."""

    def _found(self) -> dict[Any, str]:
        import torch

        return {getattr(torch, name): name for name in map(str, BY_NAME.values()) if hasattr(torch, name)}

    def __getitem__(self, key: Any) -> str:
        return self._found()[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._found())

    def __len__(self) -> int:
        return len(self._found())


_TORCH_DTYPE_TO_STR = _NamesOfTorch()
