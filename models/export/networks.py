"""The network of a release as models of transformers, and as modules with one output for ONNX."""

from __future__ import annotations

import copy
from typing import Any, cast

import torch
from tokenizers import AddedToken, Regex, normalizers
from torch import Tensor, nn

from models.encoder.model import Encoder, encoder_of
from models.encoder.weights import ADAPTER
from models.idiom import LAST, TOKENS, Marker, with_pooling
from models.ner.decoding import CONTINUATION, tags_of
from models.ner.model import HEAD
from models.ner.tagging import NEVER
from models.normalization.context_refining import DCR, ISOLATED
from models.releases.manifest import Release, ReleaseError
from models.releases.tensors import read_tensors


class ExportError(ReleaseError):
    """A release that cannot be written in the form or to the place that is asked for."""


class Vectors(nn.Module):
    """Unit vectors of texts: the mean over the pieces of each, special tokens included."""

    def __init__(self, encoder: Encoder, pooling: str = LAST) -> None:
        super().__init__()
        self.model = with_pooling(encoder, pooling).model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """(texts, pieces) to (texts, dimension)."""
        hidden = self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        inside = attention_mask.unsqueeze(-1).to(hidden.dtype)
        return nn.functional.normalize((hidden * inside).sum(1) / inside.sum(1), dim=-1)


class Tags(nn.Module):
    """The logits of the tags of each piece."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """(texts, pieces) to (texts, pieces, tags)."""
        return cast(Tensor, self.model(input_ids=input_ids, attention_mask=attention_mask).logits)


def exported_encoder(release: Release) -> Encoder:
    """The encoder of a release as one of transformers, whose tokenizer cuts texts at its window; that of a
    coder is S_isolated. The tokenizer of one that knows idioms puts their tokens into a text.

    Raises ExportError where its base has no fast tokenizer, and what `encoder_of` raises.
    """
    files = release.manifest.files
    shared = encoder_of(release, packed=False, adapter=ISOLATED if DCR in files else ADAPTER)
    if not shared.tokenizer.is_fast:
        raise ExportError(f"{release.version}: the tokenizer of its base has no file of its own")
    encoder = Encoder(shared.model, copy.deepcopy(shared.tokenizer), shared.max_pieces)
    encoder.tokenizer.model_max_length = encoder.max_pieces
    if TOKENS in files:
        encoder.model = copy.deepcopy(shared.model)
        rows = read_tensors(release.file(TOKENS))["rows"]
        _put_in(encoder, Marker(release.manifest.configuration["expressions"]), rows)
    return encoder


def _put_in(encoder: Encoder, marker: Marker, rows: Tensor) -> None:
    """Puts the tokens of idioms into an encoder's model and tokenizer, in place: what `Marker.mark` does to a
    text becomes steps of the normalizer, after which the added tokens are found.
    """
    import transformers  # noqa: PLC0415  seconds to import

    plain, first = encoder.tokenizer, len(encoder.tokenizer)
    backend = plain.backend_tokenizer
    steps: list[Any] = [normalizers.Replace(Regex(f"(?i){p}"), token) for p, token in marker.patterns]
    steps += [backend.normalizer] if backend.normalizer else []
    backend.normalizer = normalizers.Sequence(steps)
    backend.add_tokens([AddedToken(token, normalized=True, special=False) for token in marker.tokens])
    # The classes of some families make a normalizer of their own; this one keeps that of the file.
    encoder.tokenizer = transformers.PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=backend,
        model_max_length=encoder.max_pieces,
        model_input_names=plain.model_input_names,
        **plain.special_tokens_map,
    )
    encoder.model.resize_token_embeddings(first + len(rows), mean_resizing=False)
    with torch.no_grad():
        encoder.model.get_input_embeddings().weight[first:] = rows.float()


def token_classifier(encoder: Encoder, release: Release) -> Any:
    """The tagger as a model for token classification of transformers: the classifier of the first piece of a
    word, for which the sub-word flag is 0, and in which no piece gets the tag X.

    Raises ExportError where transformers' classifier of this family is more than a linear layer.
    """
    import transformers  # noqa: PLC0415  seconds to import

    tags = tags_of(release.manifest.configuration["labels"])
    config = copy.deepcopy(encoder.model.config)
    config.id2label = dict(enumerate(tags))
    config.label2id = {tag: i for i, tag in enumerate(tags)}
    kind: Any = transformers.AutoModelForTokenClassification
    model = kind.from_config(config).eval()
    lacking = model.base_model.load_state_dict(encoder.model.state_dict(), strict=False).missing_keys
    stored = read_tensors(release.file(HEAD))
    weight, bias = stored["linear.weight"].float()[:, :-1].clone(), stored["linear.bias"].float().clone()
    weight[tags.index(CONTINUATION)], bias[tags.index(CONTINUATION)] = 0, NEVER
    is_linear = isinstance(getattr(model, "classifier", None), nn.Linear)
    if is_linear:
        model.classifier.load_state_dict({"weight": weight, "bias": bias})
    if lacking or not is_linear or not _agree(model, encoder, weight, bias):
        raise ExportError(f"{release.version}: a {config.model_type} classifies tokens by further layers")
    return model


@torch.inference_mode()
def _agree(model: Any, encoder: Encoder, weight: Tensor, bias: Tensor) -> bool:
    """Whether a classifier's logits are those of its linear layer over the encoder's hidden states."""
    (sentence,) = encoder.split([["no", "pain", "now"]])
    ids = torch.tensor(encoder.with_special([sentence.pieces]))
    expected = nn.functional.linear(encoder.model(ids).last_hidden_state, weight, bias)
    return torch.allclose(model(ids).logits, expected, atol=1e-4)
