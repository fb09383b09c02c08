"""Accuracy, speed and memory beside peers and bare loops, measured in one run: `make bench`."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[1]
PEERS = ROOT / ".venv-bench" / "bin" / "python"  # which `make bench` makes

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_threads] = "1"  # one thread for us and for our peers, before numpy reads them
