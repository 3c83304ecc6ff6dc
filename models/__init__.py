"""The models: pure Python in and out, used in the same way by streaming, evaluation and training."""

import os

from models.memory import share_arenas

# MKL's strict mode, which must be set before torch is imported: the bits of a row of a matrix product do not
# depend on the number of rows, on Intel for any product, on AMD for products of four rows or more (those of
# one to three rows differ). A record that is delivered again in another batch then gets the same bits; where
# it does not, its scores are equal to 1e-4. The mode costs no time.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")

# oneDNN caches a compiled kernel, with its memory, for each shape of a 16-bit product: 1,024 by default, of
# which a few dozen are in use at a time. Five stages in one process then peak at 1.8 GB instead of 2.1 GB, at
# the same speed.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")

# On Hopper and Blackwell, PyTorch gives attention in 16 bits to cuDNN first, which makes a plan for each new
# shape, in each thread anew: nearly every pass has one. Tagging was ten times slower than in 32 bits
# (gpu_stages_h100.json). Now PyTorch's own kernels are first, as on other GPUs.
os.environ.setdefault("TORCH_CUDNN_SDPA_DEPRIORITIZED", "1")

# NumPy's products run in the inference threads, of which there is one for each processor. If NumPy started
# threads too, they would wait for each other: the relation stage took 1.3 to 2 times the processor time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Before any library starts threads.
share_arenas()
