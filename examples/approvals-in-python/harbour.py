# Four ways for a toolset to say what needs permission. The gate itself is llm-do's: it asks, remembers and denies, and
# rules of the agent file and of the command line (`--approve`) go on from what is said here.

from pydantic_ai.toolsets import FunctionToolset

from llm_do import ApprovalResult
from llm_do.toolsets.approval import set_toolset_approval_config

# By name: one tool runs freely, one asks, one is never run.
quay = FunctionToolset()


@quay.tool_plain
def free_berths() -> list[int]:
    """Lists the berths that are free."""
    return [3, 7]


@quay.tool_plain
def assign_berth(ship: str, berth: int) -> str:
    """Gives a berth to a ship."""
    return f"{ship} lies at berth {berth}"


@quay.tool_plain
def open_dock_gate() -> str:
    """Opens the gate of the dry dock."""
    raise AssertionError("the gate is closed for good")


set_toolset_approval_config(
    quay,
    {
        "free_berths": {"pre_approved": True},
        "assign_berth": {"pre_approved": False},
        "open_dock_gate": {"blocked": True},
    },
)


# By its arguments: a method judges each call before it is made.
class Till(FunctionToolset):
    """Money for repairs."""

    def needs_approval(self, name, args, ctx, config):
        """Lets small sums pass, asks for others, and blocks what the till does not hold."""
        if args["amount"] > 1000:
            return ApprovalResult.blocked("the till never holds more than 1000")
        return ApprovalResult.needs_approval() if args["amount"] > 50 else ApprovalResult.pre_approved()

    def get_approval_description(self, name, args, ctx):
        """Returns what the person who is asked reads."""
        return f"pay {args['amount']} for {args['what']}"


till = Till()


@till.tool_plain
def pay(amount: int, what: str) -> str:
    """Pays for something out of the till."""
    return f"paid {amount} for {what}"
