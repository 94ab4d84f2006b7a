"""Models: what a project's model factory returns. llm-do itself talks to the service they name."""

from .._records import Fresh, record
from ..messages import ModelMessage, ModelResponse  # noqa: F401
from ..settings import ModelSettings  # noqa: F401


class Model:
    """A model by its name; its provider says where it is."""

    def __init__(self, model_name=None, *, provider=None, profile=None, settings=None):
        self._model_name = model_name
        self._provider = provider
        self.profile = profile
        self.settings = settings

    @property
    def model_name(self):
        """Returns the name that the service knows."""
        return self._model_name

    @property
    def provider(self):
        """Returns where the model is."""
        return self._provider

    @property
    def base_url(self):
        """Returns the address of the service, if it is known."""
        return getattr(self._provider, "base_url", None)

    @property
    def system(self):
        """Returns the name of the provider."""
        return getattr(self._provider, "name", None) or "unknown"

    def __repr__(self):
        return "%s(%r)" % (type(self).__name__, self._model_name)


KnownModelName = str


@record
class ModelRequestParameters:
    """What a request to a model says besides its messages; named in hints only."""

    function_tools: list = Fresh(list)
    output_mode: str = "text"
    output_tools: list = Fresh(list)
    allow_text_output: bool = True
