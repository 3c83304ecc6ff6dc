"""Names of the files of a release by which its parts are known; a part without its file is not imported."""

from __future__ import annotations

#: The decoder over an encoder; the weights that training changed of an encoder-decoder of the hub.
DECODER, CHANGED = "decoder.safetensors", "changed.safetensors"
#: Rankers of the extractor and of the editor.
FOCUS_RANKER, EDIT_RANKER = "focus_ranker.tsv", "edit_ranker.tsv"
#: Words of the training summaries as `word_keys`.
WORDS = "words.tsv"
