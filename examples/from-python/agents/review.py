from llm_do.runtime import EntrySpec

from schemas import PitchInput


async def main(args: PitchInput, runtime):
    first = await runtime.call_agent("main", args)
    second = await runtime.call_agent("main", {"company": args.company, "deck": args.deck})
    return f"{first} {second}"


ENTRY = EntrySpec(name="review", main=main, schema_in=PitchInput)
