//! `llm-do check`: every problem in one pass, and the reach.

use llm_do_testing::needs;
use serde_json::json;

use crate::support::Sandbox;

fn broken() -> Sandbox {
    Sandbox::new()
        .file(
            "project.yaml",
            "version: 1\nentry:\n  agent: mian\nagent_files: [main.agent, helper.agent, gone.agent]\nruntime:\n  max_dept: 3\n",
        )
        .file("main.agent", "---\nname: main\nmodel: tst:echo\ntoolset: [helper]\n---\nx")
        .file("helper.agent", "---\nname: helper\nmodel: nosuch:model\ntoolsets: [mian]\n---\nx")
}

#[test]
fn all_problems_are_said_at_once_with_place_and_hint() {
    let ran = broken().run(&["check", "."]).ended(2).said("");
    insta::assert_snapshot!(ran.stderr, @r"
    error: `runtime`: unknown key `max_dept`
      at project.yaml, line 6, column 3
       |
     6 |   max_dept: 3
       |   ^^^^^^^^
    hint: did you mean `max_depth`?

    error: `agent_files`: `gone.agent` was not found
      at project.yaml, line 4, column 41
       |
     4 | agent_files: [main.agent, helper.agent, gone.agent]
       |                                         ^^^^^^^^^^^

    error: unknown key `toolset`
      at main.agent, line 4, column 1
       |
     4 | toolset: [helper]
       | ^^^^^^^
    hint: did you mean `toolsets`?

    error: agent `helper` names the model `nosuch:model`, but there is no provider `nosuch`
      at helper.agent, line 3, column 8
       |
     3 | model: nosuch:model
       |        ^^^^^^^^^^^^
    hint: known: test, script, anthropic, openai, openai-chat, gemini, google, google-gla, ollama, openrouter, groq, deepseek, mistral, xai, together, fireworks, azure, lmstudio, llamacpp, vllm; declare others under `providers`

    error: agent `helper`: there is no toolset or agent `mian`
      at helper.agent, line 4, column 12
       |
     4 | toolsets: [mian]
       |            ^^^^^
    hint: did you mean `main`?
    ");
}

#[test]
fn problems_come_as_json_too() {
    let value = broken().run(&["check", ".", "--output", "json"]).ended(2).json();
    assert_eq!(value["ok"], false);
    let diagnostics = value["diagnostics"].as_array().unwrap();
    let first = &diagnostics[0];
    assert_eq!(first["severity"], "error");
    for key in ["message", "file", "line", "column"] {
        assert!(first.get(key).is_some(), "{key} is not in {first}");
    }
}

#[test]
fn a_good_project_is_ok() {
    Sandbox::asking().run(&["check", "."]).ended(0).said("ok: 2 agents, entry `main`\n").told_nothing();
    let value = Sandbox::asking().run(&["check", ".", "--output", "json"]).ended(0).json();
    assert_eq!(value, json!({"ok": true, "diagnostics": [], "powers": []}));
}

fn recursive() -> Sandbox {
    Sandbox::asking().file(
        "helper.agent",
        "---\nname: helper\nmodel: test:echo\naccess: read\ntoolsets: [helper, main]\n---\nx",
    )
}

#[test]
fn the_reach_shows_paths_approvals_depth_and_recursion() {
    insta::assert_snapshot!(recursive().run(&["check", ".", "--reach"]).ended(0).stdout, @r"
    main  (agent, depth 1, admin access, script:script.yaml, recursive)
    └─ helper  (agent, depth 2, read access, test:echo, recursive): asks first by the policy for agents
       ├─ helper  (agent, again): asks first by the policy for agents
       └─ main  (agent, again): asks first by the policy for agents

    agents: 2, at most 5 deep (limit 5)
    tools: 0 run freely, 0 ask first, 0 are blocked
    ");
}

#[test]
fn the_reach_is_data_and_a_graph_too() {
    let value = recursive().run(&["check", ".", "--reach", "--output", "json"]).ended(0).json();
    assert_eq!(value["reach"]["worst_depth"], 5);
    let calls = value["reach"]["calls"].as_array().unwrap();
    let call = calls.iter().find(|call| call["path"] == "main > helper").unwrap();
    assert_eq!((&call["approval"], &call["decided_by"]), (&json!("ask"), &json!("policy")));
    let graph = recursive().run(&["check", ".", "--reach", "--output", "mermaid"]).ended(0).stdout;
    assert!(graph.starts_with("flowchart TD\n") && graph.contains("agent0 -->"), "{graph}");
    recursive().run(&["check", ".", "--output", "mermaid"]).ended(2).told("add `--reach`");
}

#[test]
fn the_reach_says_where_conversations_and_keys_go() {
    let sandbox =
        Sandbox::new().file("main.agent", "---\nname: main\nfallback_models: [spare:x]\n---\nx").file(
            "project.yaml",
            "version: 1\nentry: {agent: main}\nagent_files: [main.agent]\nmodel: acme:large\nproviders:\n  \
             acme: {api: openai-chat, base_url: 'https://llm.acme.example/v1', api_key_env: ACME_KEY}\n  \
             spare: {api: ollama, base_url: 'http://localhost:1'}\n  \
             unused: {api: openai, base_url: 'https://other.example', api_key_env: OTHER}\n",
        );
    insta::assert_snapshot!(sandbox.run(&["check", ".", "--reach"]).ended(0).stdout, @r"
    main  (agent, depth 1, admin access)

    agents: 1, at most 1 deep (limit 5)
    tools: 0 run freely, 0 ask first, 0 are blocked
    provider acme: https://llm.acme.example/v1 is sent the value of ACME_KEY, asked by main
    provider spare: http://localhost:1 is sent no key, asked by main
    provider unused: https://other.example is sent the value of OTHER, no agent names its models
    ");
    let value = sandbox.run(&["check", ".", "--reach", "--output", "json"]).ended(0).json();
    let acme = json!({
        "name": "acme", "base_url": "https://llm.acme.example/v1", "api_key_env": "ACME_KEY", "agents": ["main"]
    });
    assert_eq!(value["reach"]["providers"][0], acme);
    let graph = sandbox.run(&["check", ".", "--reach", "--output", "mermaid"]).ended(0).stdout;
    assert!(graph.contains("agent0 ==>|\"is sent the value of ACME_KEY\"| provider0"), "{graph}");
}

#[test]
fn offline_models_are_checked_too() {
    Sandbox::scripted("this is [ no script")
        .run(&["check", "."])
        .ended(2)
        .told("script.yaml")
        .told("a list of replies");
    let agent =
        |model: &str| Sandbox::new().file("main.agent", &format!("---\nname: main\nmodel: {model}\n---\nx"));
    agent("script:gone.yaml").run(&["check", "."]).ended(2).told("`gone.yaml` was not found in `/");
    agent("script:/etc/hostname").run(&["check", "."]).ended(2).told("outside the project");
    agent("test:eco").run(&["check", "."]).ended(2).told("did you mean `test:echo`?");
    Sandbox::echo()
        .run(&["run", ".", "x", "--model", "script:gone.yaml"])
        .ended(2)
        .told("was not found in `/");
}

#[test]
fn what_a_run_would_refuse_is_found_before_it() {
    let manifest = |rest: &str| {
        Sandbox::asking().file(
            "project.yaml",
            &format!("version: 1\nagent_files: ['*.agent']\nentry: {{agent: main}}\n{rest}\n"),
        )
    };
    let overrides = "runtime: {agent_approval_overrides: {helpr: {calls_require_approval: true}}}";
    manifest(overrides).run(&["check", "."]).ended(2).told("did you mean `helper`?");
    manifest("worker_files: [x.agent]").run(&["check", "."]).ended(2).told("written twice");
    let agents = manifest("").file("helper.agent", "---\nname: helper\nagents: [mian]\n---\nx");
    // It may be created later, so this is not an error.
    agents.run(&["check", "."]).ended(0).told("`agents` names `mian`").told("did you mean `main`?");
    let text = manifest("").file("helper.agent", "---\nname: helper\ninput_schema: {type: string}\n---\nx");
    text.run(&["check", "."]).ended(2).told("must be of type `object`");
    let args = Sandbox::new()
        .file("project.yaml", "version: 1\nagent_files: [main.agent]\nentry: {agent: main, args: {topci: x}}\n")
        .file("main.agent", "---\nname: main\ninput_schema: {type: object, properties: {topic: {type: string}}, required: [topic]}\n---\nx");
    args.run(&["check", "."]).ended(2).told("`entry.args` does not fit the input of `main`").told("topic");
}

#[test]
fn the_reach_agrees_with_the_gate() {
    let reach = |sandbox: &Sandbox| sandbox.run(&["check", ".", "--reach"]).ended(0).stdout;
    let narrowed =
        recursive().file("main.agent", "---\nname: main\nagents: [helper]\ntoolsets: [helper, main]\n---\nx");
    assert!(!reach(&narrowed).contains("main  (agent, again): asks first\n"), "{}", reach(&narrowed));
    assert_eq!(reach(&narrowed).matches("main  (agent").count(), 2, "{}", reach(&narrowed));
    let search = |rule: &str| {
        let header = format!("---\nname: main\nserver_side_tools: [{{tool_type: web_search}}]\n{rule}---\nx");
        reach(&Sandbox::new().file("main.agent", &header))
    };
    assert!(search("").contains("web_search  (at the provider): runs freely"));
    assert!(
        search("approval: {'web_*': blocked}\n").contains("web_search  (at the provider): blocked by a rule")
    );
    let files = Sandbox::asking().file(
        "project.yaml",
        "version: 1\nentry: {agent: main}\nagent_files: ['*.agent']\nruntime: {agent_attachments_require_approval: true}\n",
    );
    assert!(reach(&files).contains("runs freely, asks with attachments"), "{}", reach(&files));
    // A rule that loosens does not count where everything that asks is rejected.
    let strict = Sandbox::asking()
        .file("main.agent", "---\nname: main\nmodel: script:script.yaml\ntoolsets: [helper]\napproval: {helper: pre_approved}\n---\nx")
        .file(
            "project.yaml",
            "version: 1\nentry: {agent: main}\nagent_files: ['*.agent']\nruntime: {agent_calls_require_approval: true, approval_mode: reject_all}\n",
        );
    assert!(reach(&strict).contains("helper  (agent): blocked by the approval mode"), "{}", reach(&strict));
    strict.run(&["run", ".", "x", "-v"]).ended(0).told("denied: `helper` must ask");
}

#[cfg(unix)]
#[test]
fn a_pipe_instead_of_a_script_is_an_error_at_once() {
    let sandbox = Sandbox::new().file("main.agent", "---\nname: main\nmodel: script:pipe\n---\nx\n");
    let pipe = sandbox.root().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let begun = std::time::Instant::now();
    sandbox.run(&["check", "."]).told("`./pipe`").told("it is not a regular file");
    assert!(begun.elapsed() < std::time::Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[test]
fn a_python_file_that_is_not_listed_is_named_where_a_tool_is_missing() {
    let agent = "---\nname: main\nmodel: test\ntools: [count_words]\n---\nCount.\n";
    let code = "def count_words(text: str) -> int:\n    return 1\n";
    let alone = Sandbox::new().file("main.agent", agent).file("tools.py", code);
    for path in [".", "main.agent"] {
        let ran =
            alone.run(&["check", path]).ended(2).told("names the tool `count_words`, which does not exist");
        ran.told("`tools.py` defines it").told("project.yaml").told("`python_files: [tools.py]`");
    }
    let manifest = "version: 1\nentry: {agent: main}\nagent_files: ['*.agent']\n";
    let listed =
        Sandbox::new().file("main.agent", agent).file("tools.py", code).file("project.yaml", manifest);
    listed.run(&["check"]).ended(2).told("add the key `python_files: [tools.py]` to `project.yaml`");
    // Without such a file, only tools are offered as tools.
    let ran = Sandbox::new().file("main.agent", agent).run(&["check"]).ended(2);
    assert!(ran.stderr.contains("read_file") && !ran.stderr.contains("filesystem_cwd"), "{ran:?}");
}

#[test]
fn a_mistyped_python_file_and_a_function_outside_tools_are_named() {
    let project = |listed: &str, tool: &str| {
        Sandbox::new()
            .file(
                "project.yaml",
                &format!(
                    "version: 1\nentry: {{agent: main}}\nagent_files: ['*.agent']\npython_files: [{listed}]\n"
                ),
            )
            .file("main.agent", &format!("---\nname: main\nmodel: test:echo\ntools: [{tool}]\n---\nCount.\n"))
            .file(
                "tools.py",
                "def count(text: str) -> int:\n    'Counts.'\n    return 1\n\n\
                 def double(text: str) -> str:\n    'Doubles.'\n    return text * 2\n\nTOOLS = [count]\n",
            )
    };
    let mistyped = project("tolls.py", "count").run(&["check", "."]).ended(2);
    let mistyped = mistyped.told("`python_files`: `tolls.py` was not found");
    mistyped.told("did you mean `tools.py`?");
    let missing = project("tools.py", "double").run(&["check", ".", "--run-code"]).ended(2);
    missing.told("hint: `tools.py` defines `double`; add it to `TOOLS` there");
}

/// An untrusted project whose Python file defines the function `scale`, with its own keys, header and end of the file.
fn with_code(manifest: &str, header: &str, code: &str) -> Sandbox {
    let manifest = format!("version: 1\nagent_files: [chef.agent]\npython_files: [tools.py]\n{manifest}\n");
    Sandbox::untrusted()
        .file("project.yaml", &manifest)
        .file("chef.agent", &format!("---\nname: chef\nmodel: test:echo\n{header}\n---\nCook.\n"))
        .file("tools.py", &format!("def scale(x: int) -> int:\n    return x * 2\n{code}\n"))
}

#[test]
fn a_misspelled_entry_is_found_although_code_was_not_run() {
    // The code mentions no agent, so it defines none.
    let sandbox = with_code("entry: {agent: cheff}", "", "TOOLS = [scale]");
    let refused = sandbox.run(&["check"]).ended(2);
    refused.told("`entry` names the agent `cheff`, which does not exist").told("hint: did you mean `chef`?");
    // Here it may.
    let sandbox = with_code("entry: {agent: cheff}", "", "from llm_do import AgentSpec");
    let ran =
        sandbox.run(&["check"]).ended(0).told("not verified: the agent `cheff` must be defined by code");
    ran.told("hint: did you mean the agent `chef`?");
}

#[test]
fn what_only_code_can_define_is_named_with_near_names() {
    let sandbox =
        with_code("entry: {agent: chef}", "tools: [scael, scale]\ntoolsets: [chfe]", "TOOLS = [scale]");
    let ran = sandbox.run(&["check"]).ended(0);
    for line in [
        "notice: `tools.py` was not run, so what it defines is unknown",
        "hint: `llm-do check . --run-code` runs it once; `llm-do trust . --own` lets `check` and `list` run it",
        "not verified: the tool `scael` must be defined by code",
        "hint: did you mean the Python name `scale`?",
        "not verified: the tool `scale` must be defined by code",
        "not verified: the toolset `chfe` must be defined by code",
        "hint: did you mean the agent `chef`?",
    ] {
        assert!(ran.stderr.contains(line), "`{line}` is not in {}", ran.stderr);
    }
    assert_eq!(ran.stderr.matches("did you mean").count(), 2, "{}", ran.stderr);
}

#[needs(python)]
#[test]
fn a_function_that_tools_does_not_list_is_found() {
    for code in ["TOOLS = []", ""] {
        let sandbox = with_code("entry: {agent: chef}", "tools: [scale]", code);
        sandbox
            .run(&["check", "--run-code"])
            .ended(2)
            .told("hint: `tools.py` defines `scale`; add it to `TOOLS` there: `TOOLS = [scale]`");
    }
}

#[test]
fn a_second_manifest_is_not_ignored_silently() {
    let json = r#"{"version": 1, "entry": {"agent": "main"}, "agent_files": ["main.agent"]}"#;
    let sandbox = Sandbox::echo()
        .file("project.json", json)
        .file("project.yaml", "version: 1\nentry: {agent: main}\nagent_files: [main.agent]\n");
    for arguments in [&["check"][..], &["run", ".", "hi"]] {
        let ran = sandbox
            .run(arguments)
            .ended(0)
            .told("notice: `project.json` is used, and `project.yaml` is ignored");
        ran.told("hint: remove one, or name the one that you mean");
    }
    sandbox.run(&["check", "project.yaml"]).ended(0).told_nothing();
}

#[test]
fn hints_show_what_to_write() {
    let manifest = "version: 1\nentry: {agent: chef}\nagent_files: [chef.agent]\n";
    let agent = "---\nname: chef\nmodel: test:echo\n---\nCook.\n";
    let hint = |manifest: &str, agent: &str, arguments: &[&str]| {
        let sandbox = Sandbox::new().file("project.yaml", manifest).file("chef.agent", agent);
        let ran = sandbox.run(&[&["check"], arguments].concat()).ended(2);
        let hints: Vec<&str> = ran.stderr.lines().filter_map(|line| line.strip_prefix("hint: ")).collect();
        hints.join("|")
    };
    for (written, instead, expected) in [
        ("version: 1\n", "", "write `version: 1`"),
        ("{agent: chef}", "chef", "write `entry: {agent: chef}`"),
        ("{agent: chef}", "tools.py:main", "write `entry: {function: \"tools.py:main\"}`"),
        ("[chef.agent]", "chef.agent", "write `agent_files: [chef.agent]`"),
        ("version: 1\n", "version: 1\nmax_dept: 3\n", "did you mean `runtime.max_depth`?"),
    ] {
        assert_eq!(hint(&manifest.replace(written, instead), agent, &[]), expected, "{instead}");
    }
    for (line, expected) in [
        ("temprature: 0.2", "did you mean `model_settings.temperature`?"),
        ("temperature: 0.2", "did you mean `model_settings.temperature`?"),
        ("toolset: [x]", "did you mean `toolsets`?"),
        ("agents: other", "write `agents: [other]`"),
    ] {
        let agent = agent.replace("name: chef\n", &format!("name: chef\n{line}\n"));
        assert_eq!(hint(manifest, &agent, &[]), expected, "{line}");
    }
    for (set, expected) in [
        ("entry=chef", r#"a value is JSON, or else text: write `--set 'entry={"agent":"chef"}'`"#),
        ("entry={agent: chef}", r#"a value is JSON, or else text: write `--set 'entry={"agent":"chef"}'`"#),
        (
            "agent_files=[chef.agent]",
            r#"a value is JSON, or else text: write `--set 'agent_files=["chef.agent"]'`"#,
        ),
        (
            "toolsets.k={toolset: shell}",
            r#"a value is JSON, or else text: write `--set 'toolsets.k={"toolset":"shell"}'`"#,
        ),
    ] {
        assert_eq!(hint(manifest, agent, &["--set", set]), expected, "{set}");
    }
}

#[test]
fn a_comma_at_the_end_of_json_is_named() {
    for text in ["{\"version\": 1,}", "{\"agent_files\": [\"a\", ]}"] {
        let sandbox = Sandbox::new().file("project.json", text);
        sandbox.run(&["check"]).ended(2).told("not valid JSON: nothing follows the last comma; remove it");
    }
    let other = Sandbox::new().file("project.json", "{\"agent_files\": [1, x]}").run(&["check"]).ended(2);
    assert!(!other.stderr.contains("comma;"), "{other:?}");
}
