"""The user's names in C++: kept, unless C++ or the emitted file needs them itself."""

from collections.abc import Iterable

_CPP_KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t class compl const
const_cast constexpr continue decltype default delete do double dynamic_cast else enum explicit export extern false
float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private
protected public register reinterpret_cast return short signed sizeof static static_assert static_cast struct switch
template this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t
while xor xor_eq
"""
_KEYWORDS = frozenset(_CPP_KEYWORDS.split())
_OUR_NAMES = (
    "tl std main half kernel load store Shared shared Alignment chosen grid stream threads pipeline full barriers "
    "prologue_full waves_per_simd_by_registers "
    "workspace workspace_bytes tensors device status random least_blocks loads_a_turn written_slots"
)
_OURS = frozenset(_OUR_NAMES.split())
_CUDA = frozenset(("threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize", "dim3", "min", "max", "exp", "log"))
# Those that the emitted file's global namespace has already.
_GLOBAL_NAMES = "tl std main half tl_status Shared dim3 threadIdx blockIdx blockDim gridDim warpSize"
_GLOBAL = frozenset(_GLOBAL_NAMES.split())


def can_be_c_function(name: str) -> bool:
    """Whether the launcher of a kernel can have that name."""
    return name not in _KEYWORDS | _GLOBAL


class Names:
    """C++ names for the names of one program. The same input gives the same names."""

    def __init__(self, used: Iterable[str], kept: Iterable[str] = (), reserved: Iterable[str] = ()) -> None:
        """`used` are all names of the program; `kept` those that may stand although we use them ourselves, `reserved`
        more that we use ourselves."""
        self._taken = set(used)
        self._reserved = (_KEYWORDS | _OURS | _CUDA | set(reserved)) - set(kept)
        self._given: dict[str, str] = {}

    def __call__(self, name: str) -> str:
        """The C++ name of a user's name."""
        if name not in self._given:
            self._given[name] = self.fresh(name) if name in self._reserved or name.startswith("__") else name
        return self._given[name]

    def fresh(self, wish: str) -> str:
        """A name that nothing has yet: `wish`, or `wish_1`, `wish_2`, ..."""
        wish = wish.lstrip("_") or "value"
        name, number = wish, 0
        while name in self._taken or name in self._reserved:
            number += 1
            name = f"{wish}_{number}"
        self._taken.add(name)
        return name
