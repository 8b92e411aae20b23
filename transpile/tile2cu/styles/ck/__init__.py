"""The style of Composable Kernel's ck_tile: tile windows, tile distributions, warp GEMMs."""
