"""A host that speaks OpenAI's chat protocol."""

try:
    from pydantic_ai.providers.openai import OpenAIProvider
except ImportError:  # pydantic_ai is installed, but not the client that its provider needs

    class OpenAIProvider:
        """An address and a key."""

        def __init__(self, base_url=None, api_key=None):
            self.base_url = base_url
            self.api_key = api_key


class OpenAICompatibleProvider(OpenAIProvider):
    """The address and key of a host; give it to OpenAIChatModel in a model factory.

    It is a description only: llm-do itself talks to the host.
    """

    def __init__(self, base_url, api_key="unused", name="openai-compatible"):
        if not base_url:
            raise ValueError("base_url must not be empty")
        super().__init__(base_url=base_url, api_key=api_key)
        self._given_name = name

    @property
    def name(self):
        """The name of the host."""
        return self._given_name
