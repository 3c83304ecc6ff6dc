"""Settings, read once from the environment by the command line and passed on as an object."""

from streams.settings.pipeline import EMBEDDED, OAUTH, PipelineSettings
from streams.settings.results import ResultSettings
from streams.settings.secrets import SECRETS
from streams.settings.sources import SourceSettings

__all__ = ["EMBEDDED", "OAUTH", "SECRETS", "Settings"]


class Settings(SourceSettings, ResultSettings, PipelineSettings):
    """Each field is the environment variable of the same name in capitals with the prefix PV_."""
