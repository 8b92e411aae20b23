"""The tl style: CUDA and HIP source over headers/tl."""
