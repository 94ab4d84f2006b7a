"""A host that speaks OpenAI's chat protocol."""


class OpenAICompatibleProvider:
    """The address and key of a host; give it to OpenAIChatModel in a model factory.

    It is a description only: llm-do itself talks to the host.
    """

    def __init__(self, base_url, api_key="unused", name="openai-compatible"):
        if not base_url:
            raise ValueError("base_url must not be empty")
        self.base_url = base_url
        self.api_key = api_key
        self.name = name

    @property
    def client(self):
        """The address and key, where pydantic_ai's models look for them."""
        return self

    def model_profile(self, _model_name):
        """Says nothing about single models, as pydantic_ai's providers may."""
        return None
