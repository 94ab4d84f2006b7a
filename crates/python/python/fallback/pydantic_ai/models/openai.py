"""Models behind an interface like OpenAI's."""

from . import Model


class OpenAIChatModel(Model):
    """A model with chat completions; `provider` is an `OpenAIProvider` or the name of a provider."""

    def __init__(
        self, model_name, *, provider="openai", profile=None, settings=None, system_prompt_role=None
    ):
        super().__init__(model_name, provider=provider, profile=profile, settings=settings)
        self.system_prompt_role = system_prompt_role


class OpenAIModel(OpenAIChatModel):
    """The older name of `OpenAIChatModel`."""


class OpenAIResponsesModel(OpenAIChatModel):
    """A model with OpenAI's responses interface."""
