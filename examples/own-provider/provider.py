# A provider of models that llm-do does not know, for any host that speaks OpenAI's chat protocol: `lighthouse:NAME` is
# then the name of a model. The factory only says where the model is and which key it takes: llm-do talks to it.
# Try it with a server on this machine: LIGHTHOUSE_URL=http://127.0.0.1:11434/v1 llm-do run examples/own-provider

import os

from pydantic_ai.models.openai import OpenAIChatModel

from llm_do.models import register_model_factory
from llm_do.providers import OpenAICompatibleProvider

SIZES = {"small": "lighthouse-7b", "large": "lighthouse-70b"}


def lighthouse(name: str) -> OpenAIChatModel:
    """Makes the model of a name; what is not a size is taken as it is."""
    address = os.environ.get("LIGHTHOUSE_URL", "http://127.0.0.1:8080/v1")
    key = os.environ.get("LIGHTHOUSE_KEY", "unused")
    provider = OpenAICompatibleProvider(base_url=address, api_key=key, name="lighthouse")
    return OpenAIChatModel(SIZES.get(name, name), provider=provider)


register_model_factory("lighthouse", lighthouse)
