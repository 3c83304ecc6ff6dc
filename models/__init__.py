"""The five models: pure Python in and out, used alike by the stream, by evaluation and by training."""

import os

# A matrix product whose rows do not depend on how many rows there are: a record that is delivered again, in
# another batch, then gets the same bits. It costs nothing (benchmarks/encoder.py), and must be set before
# torch is imported.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")
