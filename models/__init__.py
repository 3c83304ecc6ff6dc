"""The five models: pure Python in and out, used alike by the stream, by evaluation and by training."""

import os

# A matrix product whose rows do not depend on how many rows there are: a record that is delivered again, in
# another batch, then gets the same bits. It costs nothing (benchmarks/encoder.py), and must be set before
# torch is imported.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")

# Every shape of a 16-bit product leaves a compiled kernel behind, with its memory: of the usual 1,024, a few
# dozen are in use at a time. Five stages in one process peak at 1.8 GB instead of 2.1, at the same speed.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
