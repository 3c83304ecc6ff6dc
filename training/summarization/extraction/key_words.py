"""Fits the logistic regression of key words; the target of a word is whether the short question has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from models.summarization.extraction.key_words import KeyWords, word_features, word_key
from models.summarization.extraction.message import Message
from models.summarization.medical_entities import word_keys
from training.summarization.data import Pair

#: Inverse strength of the regression's penalty, and number of folds of the cross-validation.
PENALTY, FOLDS = 0.003, 5


class Read(NamedTuple):
    """Training messages with their key words."""

    messages: list[Message]
    model: KeyWords
    """the regression over all messages; the key words of each message are by one that was fitted to others"""


class _Words(NamedTuple):
    """The words of a message that are judged."""

    features: Tensor
    targets: Tensor


def with_key_words(read: Sequence[Message], pairs: Sequence[Pair]) -> Read:
    """The messages of these pairs with key words by cross-validation. Raises ValueError where the
    short questions have no word, or all words, of their messages.
    """
    own = [_words(m, p) for m, p in zip(read, pairs, strict=True)]
    dimension = read[0].sums.shape[1] if read else 0
    model = KeyWords(_fit(own), dimension)
    folds = range(min(FOLDS, len(own)))
    fitted = [KeyWords(_fit([w for i, w in enumerate(own) if i % FOLDS != k]), dimension) for k in folds]
    return Read([keyed(m, fitted[i % FOLDS]) for i, m in enumerate(read)], model)


def keyed(message: Message, model: KeyWords) -> Message:
    """The message with the probabilities of its words by a regression."""
    return message._replace(keys=model.probabilities(message.text, message.words, message.vectors()))


def _words(message: Message, pair: Pair) -> _Words:
    judged, x = word_features(message.text, message.words, message.vectors())
    reference = set(word_keys(pair.summary))
    is_key = [word_key(message.text, message.words[i]) in reference for i in judged]
    return _Words(x, torch.tensor(is_key, dtype=torch.float64))


def _fit(words: Sequence[_Words]) -> Tensor:
    """(features,): the weights for features that are not standardised; the last feature is a constant 1."""
    x = torch.cat([w.features for w in words]).double().numpy()[:, :-1]
    y = torch.cat([w.targets for w in words]).numpy()
    if y.min() == y.max():
        raise ValueError("key words: too few short questions have a word of their message, or lack one")
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]  # noqa: PLC0415
    from sklearn.preprocessing import StandardScaler  # type: ignore[import-untyped]  # noqa: PLC0415

    scaler = StandardScaler().fit(x)
    found = LogisticRegression(C=PENALTY, max_iter=200).fit(scaler.transform(x), y)
    weights = found.coef_[0] / scaler.scale_
    return torch.tensor([*weights, found.intercept_[0] - scaler.mean_ @ weights]).float()
