"""Where models are: an address and a key."""


class Provider:
    """A service that answers for models."""

    def __init__(self, base_url=None, api_key=None, name=None):
        self._base_url = base_url
        self._api_key = api_key
        self._name = name

    @property
    def name(self):
        """Returns the name of the service."""
        return self._name

    @property
    def base_url(self):
        """Returns the address of the service."""
        return self._base_url

    @property
    def api_key(self):
        """Returns the key for the service, if one was given."""
        return self._api_key
