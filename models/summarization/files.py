"""Names of the files of a release by which its parts are known; a part without its file is not imported."""

from __future__ import annotations

#: The decoder over an encoder; the weights that training changed of an encoder-decoder of the hub.
DECODER, CHANGED = "decoder.safetensors", "changed.safetensors"
#: The first of the rankers of the extractor.
FOCUS_RANKER = "focus_ranker.tsv"
#: Words of the training summaries as `word_keys`.
WORDS = "words.tsv"
