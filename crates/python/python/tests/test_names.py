"""The public names that projects import."""

import unittest

from support import HostCase

LLM_DO = """
    from llm_do import (ApprovalBlocked, ApprovalCallback, ApprovalDecision, ApprovalDenied, ApprovalError, ApprovalRequest,
        ApprovalResult, ApprovalToolset, InvalidCompatibleModelsError, ModelCompatibilityError, NoModelError, ModelInput,
        register_model_factory, resolve_model, AgentEntry, AgentSpec, CallContext, CallError, Entry, FunctionEntry, EntrySpec,
        Runtime, WorkerSpec, __version__)
    from llm_do.runtime import (CallScope, ModelType, EventCallback, RunApprovalPolicy, AgentApprovalPolicy,
        resolve_approval_callback, ToolDef, ToolsetDef, ToolsetSpec, WorkerSpec, WorkerArgs, WorkerRuntime, AgentArgs,
        PromptInput, PromptContent, PromptMessages, Attachment, get_display_text, Runtime, CallContext, AgentSpec, Entry)
    from llm_do.runtime.contracts import AgentSpec, FunctionEntry, ModelType
    from llm_do.runtime.context import CallContext as Same
    from llm_do.runtime.call import CallScope, CallFrame
    from llm_do.runtime.args import AgentArgs, get_display_text
    from llm_do.toolsets import FileSystemToolset, ReadOnlyFileSystemToolset, ShellToolset
    from llm_do.toolsets.filesystem import FileSystemToolset
    from llm_do.toolsets.shell import ShellToolset
    from llm_do.toolsets.approval import set_toolset_approval_config, get_toolset_approval_config
    from llm_do.toolsets.loader import ToolsetSpec
    import llm_do.toolsets.agent, llm_do.toolsets.builtins
    from llm_do.models import register_model_factory, resolve_model, select_model, NoModelError
    from llm_do.providers import OpenAICompatibleProvider
    from pydantic_ai_blocking_approval import ApprovalConfig, ApprovalResult as Result
    assert Result is ApprovalResult and Same is CallContext is WorkerRuntime
    """

# The layouts of older versions.
OLDER = """
    from llm_do import (call_worker, call_worker_async, create_worker, WorkerSpec, WorkerContext, WorkerCreationDefaults,
        ApprovalController, ApprovalDecision, approve_all_callback, strict_mode_callback)
    from llm_do.approval import ApprovalController as SameController
    from llm_do.runtime.shared import Runtime, RuntimeConfig
    from llm_do.runtime.call import CallConfig, CallFrame, CallScope
    from llm_do.runtime.deps import CallContext, ToolsProxy
    from llm_do.runtime.toolsets import ToolsetSpec
    from ctx import Context
    from entries import ToolEntry, WorkerEntry
    assert SameController is ApprovalController and Context is CallContext is WorkerContext
    assert approve_all_callback("x", {}, "").approved and not strict_mode_callback("x", {}, "").approved
    """

LLMPROC = """
    from llmproc import register_tool
    from llmproc.tools import register_tool
    from llmproc.tools.function_tools import register_tool
    from llmproc.common import ToolResult
    from llmproc.common.results import ToolResult
    from llmproc.common.access_control import AccessLevel
    from llmproc.common.context import RuntimeContext
    from llmproc.runtime.context import RuntimeContext
    from llmproc.program_exec import setup_runtime_context
    """


class Names(HostCase):
    def test_every_public_name_can_be_imported(self):
        self.loaded(LLM_DO)
        self.loaded(OLDER)
        self.loaded(LLMPROC)

    def test_what_belongs_to_llm_do_says_so(self):
        for text, word in [
            ("import llm_do\nllm_do.Runtime()", "llm-do run"),
            ("import llm_do\nllm_do.ApprovalToolset(None)", "needs_approval"),
            ("from llm_do.runtime import CallScope\nCallScope()", "call_agent"),
            ("from llm_do.runtime import RunApprovalPolicy\nRunApprovalPolicy(mode='x')", "approval_mode"),
            ("import llm_do\nllm_do.nothing", "no attribute 'nothing'"),
            ("import llm_do\nllm_do.register_model_factory('a:b', print)", "colon"),
            ("import llm_do\nfor _ in '12': llm_do.register_model_factory('a', print)", "registered already"),
            ("from llmproc import register_tool\nregister_tool(access='')", "access level"),
        ]:
            with self.subTest(word):
                (problem,) = self.refused(text)
                self.assertIn(word, problem["message"])
                self.assertEqual(problem["line"], 2)

    def test_names_win_over_packages_of_the_project(self):
        self.file("llm_do/__init__.py", "raise ValueError('the wrong package')")
        self.loaded("import llm_do\nllm_do.AgentSpec")


if __name__ == "__main__":
    unittest.main()
