//! Projects with toolsets: settings, rules, namespaces, services.

use serde_json::{Value, json};

use crate::support::{Ran, Sandbox};

/// Two agents with the same toolset, each with settings of its own.
fn two_roots() -> Sandbox {
    Sandbox::new()
        .file(
            "project.yaml",
            "version: 1\nmodel: test:echo\nentry: {agent: main}\nagent_files: ['*.agent']\n\
             toolsets:\n  docs: {toolset: filesystem_project_ro, settings: {root: docs, prefix: docs_}}\n  \
             drafts: {toolset: filesystem_project, settings: {root: drafts, prefix: drafts_}}\n",
        )
        .file("main.agent", "---\nname: main\ntoolsets: [docs, drafts]\n---\nx")
        .file("docs/a.txt", "in docs")
        .file("drafts/b.txt", "in drafts")
}

fn called(sandbox: &Sandbox, name: &str, input: &Value, more: &[&str]) -> crate::support::Ran {
    let input = input.to_string();
    let arguments = ["call", ".", name, "--input-json", &input];
    sandbox.run(&arguments.iter().chain(more).copied().collect::<Vec<_>>())
}

#[test]
fn an_agent_narrows_a_toolset_of_the_manifest_wherever_the_project_is_named_from() {
    let reader = "---\nname: reader\ntoolsets:\n  - drafts: {read_only: true}\n---\nx";
    let sandbox = two_roots().file("reader.agent", reader);
    sandbox.run(&["check", "."]).ended(0);
    let read = called(&sandbox, "drafts_read_file", &json!({"path": "b.txt"}), &["--as", "reader"]).ended(0);
    assert_eq!(read.json()["content"], "in drafts");
    let wide = "---\nname: reader\ntoolsets:\n  - drafts: {root: .}\n---\nx";
    let sandbox = two_roots().file("reader.agent", wide);
    sandbox.run(&["check", "."]).ended(2).told("lies outside");
}

#[test]
fn named_toolsets_have_roots_and_prefixes_of_their_own() {
    let sandbox = two_roots();
    let read = called(&sandbox, "docs_read_file", &json!({"path": "a.txt"}), &[]).ended(0);
    assert_eq!(read.json()["content"], "in docs");
    called(&sandbox, "docs_read_file", &json!({"path": "../drafts/b.txt"}), &[])
        .ended(1)
        .told("leads out of the root");
    called(&sandbox, "docs_write_file", &json!({"path": "x", "content": ""}), &[])
        .ended(2)
        .told("there is no tool");
    let listed = sandbox.run(&["list", ".", "--output", "json"]).ended(0).json();
    let names: Vec<&str> =
        listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"docs_read_file") && names.contains(&"drafts_write_file"), "{names:?}");
}

#[test]
fn a_gated_call_is_denied_without_a_person_and_made_with_approval() {
    let sandbox = two_roots();
    let input = json!({"path": "c.txt", "content": "new"});
    let denied = called(&sandbox, "drafts_write_file", &input, &["--output", "json"]).ended(5);
    assert_eq!(denied.json()["status"], "denied");
    assert!(!sandbox.path("drafts/c.txt").exists());
    let dry =
        called(&sandbox, "drafts_write_file", &input, &["--dry-run", "--output", "json", "--approve", "all"]);
    assert_eq!(dry.ended(0).json()["decision"], "allow");
    assert!(!sandbox.path("drafts/c.txt").exists(), "a dry run runs nothing");
    let asks =
        called(&sandbox, "drafts_write_file", &input, &["--dry-run", "--output", "json"]).ended(5).json();
    assert_eq!(asks["decision"], "ask");
    assert!(asks["preview"].as_str().unwrap().contains("+new"), "{asks}");
    called(&sandbox, "drafts_write_file", &input, &["--approve", "all"]).ended(0);
    assert_eq!(std::fs::read_to_string(sandbox.path("drafts/c.txt")).unwrap(), "new");
}

/// One agent that may write freely, another that may not write at all.
fn opposite() -> Sandbox {
    Sandbox::new()
        .file("project.yaml", "version: 1\nmodel: test:echo\nentry: {agent: main}\nagent_files: ['*.agent']\n")
        .file(
            "main.agent",
            "---\nname: main\ntoolsets:\n  - filesystem_project: {root: open}\napproval: {write_file: pre_approved}\n---\nx",
        )
        .file(
            "careful.agent",
            "---\nname: careful\ntoolsets:\n  - filesystem_project: {root: closed}\napproval: {write_file: blocked}\n---\nx",
        )
        .file("open/a.txt", "open")
        .file("closed/a.txt", "closed")
}

#[test]
fn settings_and_rules_belong_to_one_agent_alone() {
    let sandbox = opposite();
    let path = json!({"path": "a.txt"});
    called(&sandbox, "read_file", &path, &[])
        .ended(2)
        .told("ambiguous")
        .told("in the name of the agent `careful`");
    for (agent, content) in [("main", "open"), ("careful", "closed")] {
        let read = called(&sandbox, "read_file", &path, &["--as", agent]).ended(0);
        assert_eq!(read.json()["content"], content);
    }
    let input = json!({"path": "b.txt", "content": "x"});
    called(&sandbox, "write_file", &input, &["--as", "main"]).ended(0);
    assert!(sandbox.path("open/b.txt").exists());
    let blocked = called(&sandbox, "write_file", &input, &["--as", "careful", "--approve", "all"]).ended(5);
    blocked.told("blocked: `write_file` may not run: a rule blocks it");
}

#[test]
fn the_older_mapping_form_is_read() {
    let agent = "---\nname: main\nmodel: test:echo\ntoolsets:\n  filesystem_project:\n    _approval_config:\n      \
        write_file: {pre_approved: true}\n  shell_readonly: {timeout: 5}\n---\nx";
    let sandbox = Sandbox::new().file("main.agent", agent);
    let input = json!({"path": "b.txt", "content": "x"});
    called(&sandbox, "write_file", &input, &["--as", "main"]).ended(0);
    let wrong = Sandbox::new().file("main.agent", &agent.replace("write_file:", "wirte_file:"));
    wrong.run(&["check", "."]).ended(2).told("names `wirte_file`, which the toolset does not have");
}

#[test]
fn the_gate_judges_single_commands() {
    let sandbox = Sandbox::new()
        .file("main.agent", "---\nname: main\nmodel: test:echo\ntoolsets: [shell_readonly]\n---\nx");
    for (command, decision, exit) in
        [("ls -la", "allow", 0), ("find . -delete", "ask", 5), ("curl x", "block", 5), ("ls > x", "block", 5)]
    {
        let verdict =
            called(&sandbox, "shell", &json!({"command": command}), &["--dry-run", "--output", "json"]);
        assert_eq!(verdict.ended(exit).json()["decision"], decision, "{command}");
    }
    let ran = called(&sandbox, "shell", &json!({"command": "ls | wc -l"}), &[]).ended(0);
    assert_eq!(ran.json()["stdout"].as_str().unwrap().trim(), "1");
}

#[test]
fn two_shells_stand_side_by_side_and_what_loosens_a_sandbox_is_shown_beforehand() {
    let header =
        "toolsets:\n  - shell_readonly\n  - shell_file_ops: {prefix: own_, network: true, writes: anywhere}";
    let sandbox =
        Sandbox::new().file("main.agent", &format!("---\nname: main\nmodel: test:echo\n{header}\n---\nx"));
    let reach = sandbox.run(&["check", ".", "--reach"]).ended(0).stdout;
    let line = |name: &str| reach.lines().find(|line| line.contains(name)).unwrap().to_owned();
    assert!(
        line("own_shell  (").contains("; `network: true`: programs may use the network; `writes: anywhere`")
    );
    assert!(!line("─ shell  (").contains("network"), "{reach}");
    let reach = sandbox.run(&["check", ".", "--reach", "--output", "json"]).ended(0).json();
    let calls = reach["reach"]["calls"].as_array().unwrap();
    let own = calls.iter().find(|call| call["name"] == "own_shell").unwrap();
    assert_eq!(own["notes"].as_array().unwrap().len(), 2, "{own}");
    for (tool, is_shown) in [("own_shell", true), ("shell", false)] {
        let flags = ["--as", "main", "--dry-run", "--output", "json"];
        let verdict = called(&sandbox, tool, &json!({"command": "ls /"}), &flags).ended(5).json();
        assert_eq!(verdict["decision"], "ask");
        assert_eq!(verdict["reason"].as_str().unwrap().contains("network"), is_shown, "{verdict}");
    }
}

#[test]
fn what_is_wrong_with_toolsets_is_said_at_its_place() {
    let cases = [
        ("toolsets: [filesystem_projct]", "did you mean `filesystem_project`"),
        ("toolsets:\n  - filesystem_project: {readonly: true}", "unknown field `readonly`"),
        ("toolsets:\n  - main: {x: 1}", "`main` is an agent, and agents take no settings"),
        ("toolsets: [filesystem_cwd, filesystem_project]", "lists two tools with the name `read_file`"),
        ("toolsets: [filesystem_project, filesystem_project]", "duplicate entry `filesystem_project`"),
        ("toolsets: [filesystem_project]\napproval: {wirte_file: ask}", "did you mean `write_file`?"),
        ("toolsets: [filesystem_project]\napproval: {'[': ask}", "cannot be read"),
        ("server_side_tools: [{tool_type: web_serach}]", "did you mean `web_search`?"),
        ("toolsets:\n  - filesystem_project: {root: /etc}", "lies outside"),
        ("toolsets:\n  - shell_readonly: {root: ..}", "lies outside"),
        ("toolsets: [shell_readonly, shell_file_ops]", "give one toolset a `prefix`"),
        ("toolsets:\n  - shell_readonly: {network: true}", "a read-only toolset cannot have `network: true`"),
        ("toolsets:\n  - shell_readonly: {sandbox: off}", "a read-only toolset cannot have `sandbox: off`"),
        (
            "toolsets:\n  - shell_file_ops: {writes: everywhere}",
            "expected one of `nowhere`, `root`, `anywhere`",
        ),
        ("limits: {turns: 99999999999}", "limits.turns"),
        ("limits: {turns: 0}", "limits.turns"),
        ("server_side_tools: [{tool_type: web_search, max_use: 3}]", "did you mean `max_uses`?"),
        ("compatible_models: ['[']", "is not a glob"),
        ("template: true\ndescription: x", "uses `nme`"),
    ];
    for (header, words) in cases {
        let sandbox = Sandbox::new()
            .file("main.agent", &format!("---\nname: main\n{header}\n---\nHello {{{{ nme }}}}."));
        let ran = sandbox.run(&["check", "."]).ended(2).told(words).told("main.agent");
        assert!(ran.stderr.contains("line"), "{header}: {ran:?}");
    }
}

#[test]
fn servers_and_providers_are_checked_before_anything_is_started() {
    let manifest = |rest: &str| {
        Sandbox::echo().file(
            "project.yaml",
            &format!("version: 1\nentry: {{agent: main}}\nagent_files: [main.agent]\n{rest}\n"),
        )
    };
    for (rest, words) in [
        (
            "mcp_servers: {a: {command: no-such-program-here}}",
            "the program `no-such-program-here` was not found",
        ),
        ("mcp_servers: {a: {}}", "needs a `command` to start, or a `url`"),
        ("mcp_servers: {a: {command: sh, url: 'http://x'}}", "cannot be used together"),
        ("mcp_servers: {a: {url: 'ftp://x'}}", "is not an HTTP address"),
        ("mcp_servers: {a: {comand: sh}}", "did you mean `command`?"),
        ("providers: {acme: {api: opnai-chat, base_url: 'http://x'}}", "did you mean `openai-chat`?"),
        ("providers: {acme: {api: openai-chat, base_url: x}}", "expected an http address"),
        ("providers: {openai: {api: openai-chat, base_url: 'http://x'}}", "the name of a built-in provider"),
        ("runtime: {auth_mode: oauth_auto}", "not supported"),
        (
            "toolsets: {shell_readonly: {toolset: shell_readonly}}",
            "is already the name of a built-in toolset",
        ),
        ("toolsets: {main: {toolset: shell_readonly}}", "both a toolset and an agent"),
        ("toolsets: {x: {toolset: shell_redonly}}", "did you mean `shell_readonly`"),
        ("python_files: [main.agent]", "which is not a `.py` file"),
    ] {
        manifest(rest).run(&["check", "."]).ended(2).told(words).told("project.yaml");
    }
    manifest("mcp_servers: {a: {command: sh}}")
        .run(&["check", "."])
        .ended(0)
        .told("has no effect in this version");
    let own =
        manifest("model: acme:x\nproviders: {acme: {api: openai-chat, base_url: 'http://localhost:1'}}");
    own.run(&["check", "."]).ended(0).told_nothing();
}

#[test]
fn several_entries_are_all_named() {
    let sandbox = Sandbox::new()
        .file("project.yaml", "version: 1\nentry: {}\nagent_files: ['*.agent']\n")
        .file("a.agent", "---\nname: a\nentry: true\n---\nx")
        .file("b.agent", "---\nname: b\nentry: true\n---\nx");
    sandbox.run(&["check", "."]).ended(2).told("several agents have `entry: true`: `a`, `b`");
    let both = Sandbox::echo()
        .file("project.yaml", "version: 1\nentry: {agent: main}\nagent_files: ['*.agent']\n")
        .file("b.agent", "---\nname: b\nentry: true\n---\nx");
    both.run(&["check", "."]).ended(2).told("`main`, but the agent `b` has `entry: true`");
}

#[test]
fn instructions_are_a_template_only_where_they_say_so() {
    let agent = |template: &str| {
        let header = format!("---\nname: main\nmodel: test:echo\n{template}---\nSay {{{{ input }}}}.");
        Sandbox::new().file("main.agent", &header)
    };
    let instructions = |sandbox: &Sandbox| {
        let ran = sandbox.run(&["run", ".", "it", "--output", "jsonl"]).ended(0);
        let request = ran.lines().into_iter().find(|event| event["type"] == "model_request").unwrap();
        request["instructions"].as_str().unwrap().to_owned()
    };
    assert_eq!(instructions(&agent("")), "Say {{ input }}.");
    assert_eq!(instructions(&agent("template: true\n")), "Say it.");
}

#[test]
fn the_flag_for_the_model_replaces_that_of_the_entry_agent_only() {
    let sandbox = Sandbox::new()
        .file("project.yaml", "version: 1\nentry: {agent: main}\nagent_files: ['*.agent']\n")
        .file("main.agent", "---\nname: main\nmodel: test:echo\ntoolsets: [child]\n---\nx\n")
        .file("child.agent", "---\nname: child\nmodel: test:echo\n---\nx\n");
    let ran = sandbox.run(&["run", ".", "hello", "-m", "test", "-v"]).ended(0);
    assert!(ran.stderr.contains("agents with a model of their own: child (test:echo)"), "{ran:#?}");
    assert!(ran.stderr.contains("with test, test:echo"), "{ran:#?}");
    assert!(ran.stderr.contains("agent child"), "the model `test` calls every tool: {ran:#?}");
    let command = |variable: &str| {
        let mut command = sandbox.command(&["run", ".", "hello", "-v"]);
        Ran::from(command.env("LLM_DO_MODEL", variable).output().unwrap()).ended(0)
    };
    assert_eq!(command("test").stdout, "hello\n", "the variable is only a default");
    let missing = sandbox.run(&["run", ".", "hello", "--model", "anthropic:claude-sonnet-4-5"]).ended(3);
    assert!(missing.stderr.contains("`ANTHROPIC_API_KEY` is not set"), "{missing:#?}");
}

#[test]
fn a_yaml_worker_of_the_python_program_runs_with_one_line_per_notice() {
    let worker = "name: reporter\nmodel: test:echo\ninstructions: You write reports.\n\
        sandboxes: {out: {root: out, mode: rw}}\ntool_rules: {sandbox.write: {approval_required: true}}\n";
    let sandbox = Sandbox::new().file("workers/reporter.yaml", worker).file("out/a.md", "a");
    let ran = sandbox.run(&["run", "workers/reporter.yaml", "hello"]).ended(0).said("hello\n");
    assert_eq!(
        ran.stderr,
        "notice: workers/reporter.yaml:1: a YAML worker is read as an agent file\n\
        notice: workers/reporter.yaml:4: `sandboxes` is read as the toolset `filesystem_project`\n\
        notice: workers/reporter.yaml:5: `tool_rules` is read as `approval`\n"
    );
    sandbox.run(&["run", ".", "hello"]).ended(0).said("hello\n");
    let listed = sandbox.run(&["list", "workers"]).ended(0);
    assert!(listed.stdout.contains("write_file"), "{listed:?}");
}
