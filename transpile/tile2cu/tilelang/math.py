"""`tilelang.math`: integers of the host."""


def cdiv(a: int, b: int) -> int:
    """a / b, rounded up."""
    return -(-a // b)


ceildiv = cdiv


def next_power_of_2(value: int) -> int:
    """The smallest power of two that is not less than `value`."""
    return 1 << max(value - 1, 0).bit_length()
