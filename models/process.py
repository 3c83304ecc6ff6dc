"""What a process that computes with the models sets before it imports torch or NumPy.

No import does so: each entry point calls `prepare`. These are `streams/__main__.py` (its child processes
inherit the variables), the programs of `training` and `benchmarks`, and the tests. Whoever uses the models as
a library may call it too; without it the answers are the same within the tolerance of a release.
"""

from __future__ import annotations

import os
import sys

from models.memory import share_arenas
from models.startup_message import announce_slow_imports

SETTINGS = {
    # MKL's strict mode: the bits of a row of a matrix product do not depend on the number of rows, on Intel
    # for any product, on AMD for products of four rows or more (those of one to three rows differ). A record
    # that is delivered again in another batch then gets the same bits; where it does not, its scores are
    # equal to 1e-4. The mode costs no time.
    "MKL_CBWR": "AUTO,STRICT",
    # oneDNN caches a compiled kernel, with its memory, for each shape of a 16-bit product: 1,024 by default,
    # of which a few dozen are in use at a time. Five stages in one process then peak at 1.8 GB instead of 2.1
    # GB, at the same speed.
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "64",
    # On Hopper and Blackwell, PyTorch gives attention in 16 bits to cuDNN first, which makes a plan for each
    # new shape, in each thread anew: nearly every pass has one. Tagging was ten times slower than in 32 bits
    # (gpu_stages_h100.json). With this PyTorch's own kernels are first, as on other GPUs.
    "TORCH_CUDNN_SDPA_DEPRIORITIZED": "1",
    # NumPy's products run in the inference threads, of which there is one for each processor. If NumPy
    # started threads too, they would wait for each other: the relation stage took 1.3 to 2 times the
    # processor time.
    "OPENBLAS_NUM_THREADS": "1",
    # The tokenizer's thread pool deadlocks after a fork, and one sentence is too short to share out.
    "TOKENIZERS_PARALLELISM": "false",
}


def prepare() -> None:
    """Sets the variables that the environment does not have, and the allocator; before there are threads."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    share_arenas()


def prepare_program() -> None:
    """Calls `prepare` and announces slow imports where Python is looking for the program of `python -m`; for
    the `__init__` of the program's package.
    """
    if sys.argv[:1] == ["-m"]:
        announce_slow_imports()
        prepare()
