"""The five models: pure Python in and out, used alike by the stream, by evaluation and by training."""
