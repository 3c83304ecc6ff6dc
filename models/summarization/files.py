"""Names of the files of a release by which its parts are known; a part without its file is not imported."""

from __future__ import annotations

#: The weights that training changed of an encoder-decoder.
CHANGED = "changed.safetensors"
#: The first of the rankers of the extractor.
FOCUS_RANKER = "focus_ranker.tsv"
