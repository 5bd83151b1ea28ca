"""What every route works with."""

import time
from dataclasses import dataclass, field

from outrider.server.engine_client import EngineClient
from outrider.server.faults import ApiError
from outrider.server.measures import Measures
from outrider.server.prompts import Prompts
from outrider.server.settings import Settings
from outrider.server.told import Words


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Engine, prompts, settings and measures of one server.

    Attributes:
        started: seconds since the epoch.
    """

    client: EngineClient
    prompts: Prompts
    settings: Settings
    measures: Measures
    started: int = field(default_factory=lambda: int(time.time()))

    @property
    def words(self) -> Words:
        """Token ids as words."""
        return Words(self.prompts.tokenizer)

    def check_model(self, name: str | None) -> None:
        """Refuse another model than ours.

        Raises:
            ApiError: 404.
        """
        if name is not None and name != self.settings.name:
            message = f"The model {name[:200]!a} is not served here: expected {self.settings.name!r}."
            raise ApiError(404, message, kind="not_found_error", param="model", code="model_not_found")
