//! `llm-do doctor`: what is set up, which servers are there, and which providers answer.

use llm_do_testing::{MockProvider, MockResponse};
use serde_json::{Value, json};

use crate::providers::{KEY, agent, asking, refuses, run_beside, says};
use crate::support::{Ran, Sandbox};

fn line<'t>(text: &'t str, start: &str) -> &'t str {
    text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("no `{start}` in:\n{text}"))
}

#[test]
fn the_doctor_tries_providers_and_models() {
    let models = MockResponse::json(200, &json!({"data": [{"id": "small"}, {"id": "large"}]}));
    let (ran, requests) = run_beside(&agent(), vec![models, says("OK")], &["doctor", "."]);
    let ran = ran.ended(0);
    assert_eq!(requests, 2);
    assert!(ran.stdout.contains("2 models") && ran.stdout.contains("said `OK`"), "{ran:#?}");

    let (ran, _) =
        run_beside(&agent(), vec![refuses(401, &format!("bad key {KEY}"))], &["doctor", "--output", "json"]);
    let ran = ran.ended(3);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(report["tried"][0]["ok"], false, "{report}");
    assert!(!ran.stdout.contains(KEY), "{ran:#?}");

    let other = MockResponse::json(200, &json!({"x": 1}));
    let (ran, _) = run_beside(&agent(), vec![other], &["doctor"]);
    assert!(ran.ended(3).stdout.contains("something else than a list of models"));
}

#[test]
fn the_doctor_tries_no_more_than_was_asked_for() {
    let (ran, requests) = run_beside(
        &agent(),
        vec![says("OK")],
        &["doctor", "--model", "openai-chat:small", "--output", "json"],
    );
    let report: Value = serde_json::from_str(&ran.ended(0).stdout).unwrap();
    let tried: Vec<&Value> = report["tried"].as_array().unwrap().iter().map(|tried| &tried["name"]).collect();
    assert_eq!((tried, requests), (vec![&json!("openai-chat:small")], 1));
    assert!(report["sandbox"]["active"].is_boolean() && report["sandbox"]["covers"].is_array(), "{report}");
}

#[test]
fn a_project_that_is_named_is_never_said_to_be_missing() {
    // An address without the key that is needed is not a provider to try.
    let none = asking(&Sandbox::new(), "http://127.0.0.1:9/v1", None, &["doctor"]).stdout;
    assert_eq!(
        line(&none, "none  provider"),
        "none  provider  no key is set or stored; `llm-do models` lists providers and their variables"
    );
    let echo = asking(&Sandbox::echo(), "http://127.0.0.1:9/v1", None, &["doctor", "."]).stdout;
    assert!(line(&echo, "none  provider").contains("the project names no model of a provider"), "{echo}");
    assert_eq!(line(&echo, "ok    project"), "ok    project   .: no powers, so there is nothing to trust");
    for text in [none, echo] {
        assert!(!text.contains("no project is named"), "{text}");
        assert!(text.contains("  sandbox   Landlock"), "{text}");
    }
}

#[test]
fn what_is_set_up_is_listed() {
    let bare = asking(&Sandbox::untrusted(), "http://127.0.0.1:9/v1", None, &["doctor"]).stdout;
    assert_eq!(
        line(&bare, "none  config"),
        "none  config    ~/.config/llm-do/config.toml; `llm-do config edit` makes it"
    );
    assert!(line(&bare, "none  keys").contains("`llm-do auth login PROVIDER`"), "{bare}");
    assert_eq!(
        line(&bare, "none  state"),
        "none  state     ~/state/llm-do; made when something is remembered"
    );

    let manifest = "version: 1\nentry: {agent: main}\nagent_files: [main.agent]\npython_files: [tools.py]\n\
        python: ./snake\n";
    let sandbox = Sandbox::untrusted()
        .file("p/project.yaml", manifest)
        .file("p/main.agent", "---\nname: main\nmodel: test:echo\n---\nEcho.\n")
        .file("p/tools.py", "")
        .file("p/snake", "#!/bin/sh\ntouch started\n")
        .config("model = \"test\"\n[aliases]\na = \"test\"\n");
    sandbox.run_with(&["auth", "login", "groq", "--stdin"], b"gsk-canary-0123456789").ended(0);
    let mut command = sandbox.command(&["doctor", "p"]);
    command
        .env_remove("OPENAI_API_KEY")
        .env("GROQ_BASE_URL", "http://127.0.0.1:9/v1")
        .env("LLM_DO_TRUST", "all");
    let ran = Ran::from(command.output().unwrap());
    let text = &ran.stdout;
    assert_eq!(line(text, "ok    config"), "ok    config    ~/.config/llm-do/config.toml (2 settings)");
    assert_eq!(line(text, "ok    keys"), "ok    keys      ~/.local/share/llm-do/credentials.toml (groq)");
    assert_eq!(line(text, "ok    python"), "ok    python    ./snake");
    assert_eq!(
        line(text, "none  project"),
        "none  project   p: not trusted, 1 power; `llm-do trust p` shows them"
    );
    assert!(line(text, "ok    trust").contains("LLM_DO_TRUST is `all`"), "{text}");
    // The stored key makes groq a provider to try, and nothing listens at that address.
    assert!(line(text, "fail  provider  groq").contains("nothing listens at 127.0.0.1:9"), "{text}");
    assert!(!text.contains("canary") && !sandbox.path("p/started").exists(), "{text}");
}

#[test]
fn a_broken_configuration_or_project_is_one_row_among_others() {
    let sandbox = Sandbox::untrusted()
        .config("modl = \"test\"\n")
        .file("project.yaml", "version: 1\nentree: {agent: main}\n")
        .file("main.agent", "---\nname: main\nmodel: test:echo\n---\nEcho.\n");
    for (arguments, shown) in
        [(&["doctor"][..], "."), (&["doctor", "."], "."), (&["doctor", "project.yaml"], "project.yaml")]
    {
        let ran = asking(&sandbox, "http://127.0.0.1:9/v1", None, arguments).ended(3);
        let text = &ran.stdout;
        assert_eq!(
            line(text, "fail  config"),
            "fail  config    ~/.config/llm-do/config.toml:1:1: unknown key `modl`; `llm-do config edit` opens it; \
             the defaults are used"
        );
        assert_eq!(
            line(text, "fail  project"),
            format!("fail  project   {shown}: it cannot be loaded; `llm-do check {shown}` says why")
        );
        assert!(text.contains("none  keys") && text.contains("  sandbox   Landlock"), "{text}");
        ran.told("unknown key `entree`");
    }
}

#[test]
fn without_a_path_the_project_of_the_current_directory_has_the_same_rows() {
    let manifest = "version: 1\nentry: {agent: main}\nagent_files: [main.agent]\npython_files: [tools.py]\n";
    let sandbox = Sandbox::untrusted()
        .file("project.yaml", manifest)
        .file("main.agent", "---\nname: main\nmodel: test:echo\n---\nEcho.\n")
        .file("tools.py", "");
    let named = asking(&sandbox, "http://127.0.0.1:9/v1", None, &["doctor", "."]).stdout;
    assert!(line(&named, "none  project").contains(".: not trusted, 1 power"), "{named}");
    assert_eq!(asking(&sandbox, "http://127.0.0.1:9/v1", None, &["doctor"]).stdout, named);
}

/// Runs the doctor beside a server of models on this machine.
fn beside_server(models: &[&str], variable: &str, path: &str) -> (Ran, String) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let listed: Vec<Value> = models.iter().map(|name| json!({"id": name, "name": name})).collect();
    let list = MockResponse::json(200, &json!({"data": listed, "models": listed}));
    let server = runtime.block_on(MockProvider::start(vec![list]));
    let address = format!("{}{path}", server.base_url());
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&["doctor"]);
    command.env_remove("OPENAI_API_KEY").env(variable, &address);
    (command.output().unwrap().into(), address)
}

#[test]
fn servers_on_this_machine_are_found_with_their_models() {
    let (ran, address) = beside_server(&["qwen3:4b", "llama3.2"], "OLLAMA_HOST", "");
    let shown = line(&ran.stdout, "ok    server    ollama");
    let parts: Vec<&str> = shown.split("  ").filter(|part| !part.is_empty()).map(str::trim).collect();
    assert_eq!(parts, ["ok", "server", "ollama", &address, "2 models: qwen3:4b, llama3.2"]);

    // An address that the user set, and where nothing is, is a failure; a usual port is not.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&["doctor", "--output", "json"]);
    command.env_remove("OPENAI_API_KEY").env("LMSTUDIO_BASE_URL", format!("http://{free}/v1"));
    let ran = Ran::from(command.output().unwrap()).ended(3);
    let servers = ran.json()["servers"].as_array().unwrap().clone();
    let names: Vec<&str> = servers.iter().filter_map(|server| server["name"].as_str()).collect();
    assert_eq!(names, ["ollama", "lmstudio", "llamacpp"]);
    assert_eq!(
        (&servers[1]["state"], &servers[1]["result"]),
        (&json!("fail"), &json!("nothing listens there"))
    );
    assert_ne!(servers[0]["state"], "fail");
}

#[test]
fn the_guide_shows_what_the_doctor_prints() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/local-models.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let (ran, address) = beside_server(&["smollm2"], "LLAMACPP_BASE_URL", "/v1");
    let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = line(&ran.stdout, "ok    server    llamacpp").replace(&address, "http://127.0.0.1:43211/v1");
    assert!(squeeze(&guide).contains(&squeeze(&shown)), "{shown}");

    let (ran, _) =
        run_beside(&Sandbox::new(), vec![says("Hello")], &["doctor", "--model", "openai-chat:small"]);
    let model = line(&ran.stdout, "ok    model").replace("openai-chat:small", "llamacpp:smollm2");
    let shape = |text: &str| squeeze(text).split_whitespace().take(3).collect::<Vec<_>>().join(" ");
    assert!(guide.lines().any(|line| shape(line) == shape(&model) && line.contains(" s  said `")), "{model}");
    let first = ran.stdout.lines().next().unwrap();
    assert!(first.starts_with("ok    model"), "only what was asked for: {first}");
}
