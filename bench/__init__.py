"""Speed and memory of the kernel, as ratios measured in one run: `make bench`."""
