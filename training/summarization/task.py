"""The task of short questions, as recipes run it."""

from __future__ import annotations

from models.encoder.capabilities import Need, is_encoder_decoder
from models.releases.manifest import Release
from training.common.program import check_base
from training.recipes.recipe import RecipeError
from training.recipes.stages import Place, Task
from training.summarization.network import MAX_PIECES
from training.summarization.release import extracting, refreshed, writing
from training.summarization.settings import Settings


def check(settings: Settings) -> None:
    """Raises typer.BadParameter for a base that the method cannot use."""
    check_base(settings.base, Need(pieces=MAX_PIECES, encoder_decoder=settings.method == "decoder"))
    if settings.method == "decoder" and not is_encoder_decoder(settings.base):
        raise RecipeError(f"{settings.base} cannot be used: an encoder-decoder is needed, such as BART")


def train(settings: Settings, place: Place) -> Release:
    return (writing if settings.method == "decoder" else extracting)(settings, place)


TASK = Task(Settings, check, train, refresh=refreshed)
