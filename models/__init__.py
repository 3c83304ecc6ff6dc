"""The models: pure Python in and out, used in the same way by streaming, evaluation and training."""
