"""OpenAI, or a service with the same interface."""

import os

from . import Provider

OPENAI = "https://api.openai.com/v1"


class OpenAIProvider(Provider):
    """A service with OpenAI's interface; address and key default to the usual variables."""

    def __init__(self, base_url=None, api_key=None, openai_client=None, http_client=None):
        address = (
            base_url
            or getattr(openai_client, "base_url", None)
            or os.environ.get("OPENAI_BASE_URL")
            or OPENAI
        )
        key = api_key or getattr(openai_client, "api_key", None) or os.environ.get("OPENAI_API_KEY")
        super().__init__(str(address), key, "openai")
        self.openai_client = openai_client
        self.http_client = http_client
