"""The style of CUTLASS's CuTe: layouts, tiled copies and tiled MMAs."""
