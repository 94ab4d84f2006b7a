"""Calls the functions of tools: coroutines at once, plain functions in a thread."""

run_in_thread = None
"""Set by the host: an async function of (function, positional, keywords) that runs it in a thread."""


async def call(function, is_async, positional, keywords):
    """Calls a function and awaits what it returns, if that can be awaited."""
    if is_async:
        return await function(*positional, **keywords)
    result = await in_thread(function, positional, keywords)
    return await result if hasattr(result, "__await__") else result


async def in_thread(function, positional, keywords):
    """Runs a plain function in a thread, with the context variables of the caller."""
    if run_in_thread is not None:
        return await run_in_thread(function, positional, keywords)
    import asyncio

    return await asyncio.to_thread(function, *positional, **keywords)


async def with_time_limit(calling, seconds):
    """Awaits a call; one that takes too long is given back to the model."""
    import asyncio

    from .exceptions import ModelRetry

    try:
        return await asyncio.wait_for(calling, seconds)
    except asyncio.TimeoutError:
        raise ModelRetry("Timed out after %s seconds." % seconds) from None
