//! Valid projects in all languages, with every key that this version accepts.

use serde_json::{Value, json};

use super::mutate::Files;

/// One project for each language of manifests.
pub(crate) fn projects() -> Vec<Files> {
    let agents = [
        ("agents/main.agent", agent(&header())),
        ("agents/helper.agent", HELPER.to_owned()),
        ("agents/worker.agent", WORKER.to_owned()),
    ];
    let manifest = serde_json::to_string_pretty(&manifest()).unwrap();
    [("project.json", manifest.as_str()), ("project.yaml", YAML), ("project.toml", TOML)]
        .iter()
        .map(|(name, text)| {
            let files = agents.iter().map(|(name, text)| (*name, text.as_str()));
            let all = std::iter::once((*name, *text)).chain(files);
            all.map(|(name, text)| (name.to_owned(), text.into())).collect()
        })
        .collect()
}

/// An agent file with a header.
pub(crate) fn agent(header: &Value) -> String {
    format!("---\n{header}\n---\nWork on {{{{ topic }}}}.\n")
}

/// A manifest with every section.
pub(crate) fn manifest() -> Value {
    json!({
        "version": 1,
        "model": "test:echo",
        "entry": {"agent": "main", "args": {"topic": "Rust", "words": 3}},
        "agent_files": ["agents/main.agent", "agents/h*.agent", "agents/{worker,w}.agent"],
        "python_files": [],
        "python": "python3",
        "allow_cli_input": false,
        "generated_agents_dir": "generated",
        "mcp_servers": {
            "search": {"command": "server", "args": ["--fast"], "env": {"A": "b"}, "cwd": ".", "prefix": "s_"},
            "remote": {"url": "https://example.org/mcp", "headers": {"X-Key": "value"}}
        },
        "providers": {"local": {"api": "openai", "base_url": "http://localhost:8080", "api_key_env": "KEY"}},
        "toolsets": {"files": {"toolset": "filesystem_project", "settings": {"rules": []}}},
        "runtime": {
            "approval_mode": "prompt",
            "max_depth": 5,
            "limits": {"turns": 20, "tool_calls": 100, "tokens": 100000, "cost": 1.5, "time": 60.0},
            "return_permission_errors": true,
            "agent_calls_require_approval": true,
            "agent_attachments_require_approval": true,
            "agent_approval_overrides": {
                "helper": {"calls_require_approval": false, "attachments_require_approval": true}
            },
            "auth_mode": "oauth_off"
        },
        "context": {"region": "eu", "deep": {"list": [1, null, "x"]}}
    })
}

/// A header with every key that needs no Python.
pub(crate) fn header() -> Value {
    json!({
        "name": "main",
        "description": "Does it: \"all\" of it.",
        "model": "anthropic:claude",
        "fallback_models": ["test:echo", "local:small"],
        "model_settings": {
            "temperature": 0.5,
            "top_p": 0.9,
            "max_tokens": 1000,
            "stop": ["END"],
            "seed": 7,
            "thinking": 2000,
            "effort": "low",
            "parallel_tool_calls": false,
            "tool_choice": {"tool": "helper"},
            "stream": false,
            "cache": true,
            "timeout": 30,
            "idle_timeout": 5,
            "extra_headers": {"x-title": "demo"},
            "extra_body": {"top_k": 3}
        },
        "toolsets": [
            "helper",
            {"files": {}},
            {"shell_readonly": {"rules": [{"pattern": "ls"}]}}
        ],
        "input_schema": {
            "type": "object",
            "properties": {"topic": {"type": "string"}, "words": {"type": "integer", "minimum": 1}},
            "required": ["topic"],
            "additionalProperties": false
        },
        "prompt": "{{ topic }}{% if words %} in {{ words }} words{% endif %}",
        "output_schema": {"type": "object", "properties": {"text": {"type": "string"}}},
        "server_side_tools": [{"tool_type": "web_search", "max_uses": 2, "allowed_domains": ["example.org"]}],
        "approval": {"helper": "pre_approved", "files.*": "ask", "*_danger": "blocked"},
        "access": "write",
        "limits": {"turns": 5, "cost": 0.25},
        "agents": ["helper", "w*"],
        "entry": true,
        "template": true,
        "locked": true,
        "programs": [{"name": "p", "file": "helper.agent", "description": "A program."}],
        "file_descriptors": {"limit": 9000, "page_size": 1000, "page_user_input": false},
        "preload": ["worker.agent"],
        "env_info": {"variables": ["date", "file_map"], "env_vars": {"shell": "SHELL"}, "motto": "Be brief."},
        "tuning": {"temperature": [0, 1], "max_tokens": [100, 4000], "models": ["anthropic:*"]},
        "tests": [{"input": "x", "expect": "y"}]
    })
}

const HELPER: &str = "---\n\
    # A comment, an anchor, texts of several lines.\n\
    name: helper\n\
    description: >-\n  Helps with\n  everything.\n\
    model: &model test:echo\n\
    fallback_models: [*model, openai/gpt]\n\
    prompt: |\n  {{ input }}\n  {% for file in attachments %}{{ file }}{% endfor %}\n\
    toolsets:\n  - worker\n  - files:\n  - filesystem_project_ro: {}\n\
    approval:\n  worker: ask\n  'files.read': pre_approved\n\
    env_info: true\n\
    ---\n\
    Help wherever you can – größtenteils 世界.\n\n---\n\nA rule stands above.\n";

const WORKER: &str = "---\r\n\
    name: worker\r\n\
    compatible_models: ['test:*', \"anthropic:*\"]\r\n\
    allow_workers: [helper]\r\n\
    toolsets:\r\n  helper:\r\n    _approval_config:\r\n      helper: {pre_approved: true}\r\n  shell_file_ops: {}\r\n\
    ---\r\n\
    Work.\r\n";

const YAML: &str = "\
version: 1
model: &model test:echo
entry:
  agent: main
  input: {topic: 'Rust', words: 3}
worker_files:
  - agents/main.agent
  - \"agents/h*.agent\"
  - agents/worker.agent
mcp_servers:
  search: {command: server, args: [--fast, '-v']}
providers:
  local:
    api: openai
    base_url: http://localhost:8080
toolsets:
  files:
    toolset: filesystem_project
    settings:
      rules: [] # none
runtime:
  approval_mode: approve_all
  max_depth: 0x5
  limits: {turns: 20, cost: 1.5e0, time: 60}
  worker_approval_overrides:
    helper:
      calls_require_approval: false
context:
  model: *model
  text: |
    several
    lines
";

const TOML: &str = "\
version = 1
model = 'test:echo'
agent_files = [\"agents/*.agent\"]
allow_cli_input = true

[entry]
agent = \"main\"
args = { topic = \"Rust\", words = 3 }

[mcp_servers.search]
command = \"server\"
args = [
  \"--fast\", # quick
]

[providers.local]
api = \"openai\"
base_url = \"http://localhost:8080\"

[toolsets.files]
toolset = \"filesystem_project\"
settings.rules = []

[runtime]
approval_mode = \"reject_all\"
max_depth = 5
limits.turns = 20
limits.cost = 1.5

[runtime.agent_approval_overrides]
\"helper\".calls_require_approval = false

[context]
day = 1979-05-27T07:32:00Z
text = '''
several
lines'''

[[context.table]]
x = 1

[[context.table]]
x = -inf
";
