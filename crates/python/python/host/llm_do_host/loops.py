"""The event loop of the host, made as late as possible: importing asyncio takes longer than loading a project."""

import sys

_loop = None


def host_loop():
    """Returns the loop of the host, made on first use."""
    global _loop
    if _loop is None:
        import asyncio

        _loop = asyncio.new_event_loop()
        asyncio.set_event_loop(_loop)
    return _loop


def run_now(begin):
    """Runs a coroutine to its end while the project is loaded.

    As long as nobody imported asyncio, nothing can wait for a loop, and the coroutine is run by hand. One that
    imports asyncio while it runs is begun again.
    """
    if "asyncio" in sys.modules:
        return host_loop().run_until_complete(begin())
    coroutine = begin()
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    except Exception:
        if "asyncio" not in sys.modules:
            raise
    coroutine.close()
    return host_loop().run_until_complete(begin())
