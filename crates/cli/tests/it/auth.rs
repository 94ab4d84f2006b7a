//! `llm-do auth`: stored keys, where they go, and who never sees them.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use llm_do_testing::{MockProvider, MockResponse};
use serde_json::json;

use crate::providers::says;
use crate::support::{Ran, Sandbox};

const KEY: &str = "sk-stored-canary-77aa12";

fn agent(model: &str) -> Sandbox {
    Sandbox::new().file("main.agent", &format!("---\nname: main\nmodel: {model}\n---\nAnswer.\n"))
}

fn store(sandbox: &Sandbox) -> PathBuf {
    sandbox.home().join(".local/share/llm-do/credentials.toml")
}

fn login(sandbox: &Sandbox, provider: &str) -> Ran {
    sandbox.run_with(&["auth", "login", provider, "--stdin"], format!("{KEY}\n").as_bytes())
}

/// Runs the binary beside a server; the variables say where it is. Returns the keys that the server was sent.
fn beside(
    sandbox: &Sandbox,
    response: MockResponse,
    variable: &str,
    arguments: &[&str],
) -> (Ran, Vec<String>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let provider = runtime.block_on(MockProvider::start(vec![response]));
    let mut command = sandbox.command(arguments);
    command.env_remove("OPENAI_API_KEY").env(variable, format!("{}/v1", provider.base_url()));
    let ran = Ran::from(command.output().unwrap());
    let keys = provider.requests().iter().map(|request| request.header("authorization").to_owned()).collect();
    (ran, keys)
}

#[test]
fn a_stored_key_is_used_listed_and_forgotten() {
    let sandbox = agent("openai-chat:small");
    let stored = login(&sandbox, "openai-chat").ended(0).said("");
    assert!(
        stored.stderr.contains("stored the key of openai in ~/.local/share/llm-do/credentials.toml"),
        "{stored:#?}"
    );
    let path = store(&sandbox);
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));

    let (ran, keys) = beside(&sandbox, says("There."), "OPENAI_BASE_URL", &["run", ".", "hi"]);
    ran.ended(0).said("There.\n");
    assert_eq!(keys, [format!("Bearer {KEY}")]);

    let listed = sandbox.run(&["auth", "list"]).ended(0);
    assert_eq!(listed.stdout, "openai  ...aa12  stored\n");
    let mut command = sandbox.command(&["auth", "list", "--output", "json"]);
    let ran: Ran = command.env("OPENAI_API_KEY", "sk-environment-9999").output().unwrap().into();
    assert_eq!(ran.json()["keys"][0]["ends_with"], "9999");
    assert!(sandbox.run(&["models"]).stdout.contains("key stored"));

    sandbox.run(&["auth", "logout", "openai"]).ended(0);
    sandbox.run(&["auth", "logout", "openai"]).ended(2).told("no key of openai is stored");
    let ran = sandbox.run(&["auth", "list"]).ended(0);
    assert!(ran.stdout.starts_with("no key is set or stored"), "{ran:#?}");
    let (ran, _) = beside(&sandbox, says("There."), "OPENAI_BASE_URL", &["run", ".", "hi"]);
    ran.ended(3).told("store the key with `llm-do auth login openai`");
}

#[test]
fn every_variable_takes_precedence_over_the_store() {
    let sandbox = agent("openai-chat:small");
    login(&sandbox, "openai").ended(0);
    let sandbox = sandbox.file(".env", "OPENAI_API_KEY=sk-of-the-project\n");
    // The project's own key goes to the user's address; the stored one is not needed.
    let (ran, keys) = beside(&sandbox, says("There."), "OPENAI_BASE_URL", &["run", ".", "hi"]);
    ran.ended(0);
    assert_eq!(keys, ["Bearer sk-of-the-project"]);
}

#[test]
fn a_stored_key_is_masked_and_goes_to_no_address_of_a_project() {
    let sandbox = agent("openai-chat:small");
    login(&sandbox, "openai").ended(0);
    let echo =
        MockResponse::json(401, &json!({"error": {"message": format!("bad key {KEY}"), "type": "error"}}));
    let (ran, _) = beside(&sandbox, echo, "OPENAI_BASE_URL", &["run", ".", "hi", "-vvv"]);
    let ran = ran.ended(3);
    assert!(ran.stderr.contains("bad key [removed]") && !ran.stderr.contains(KEY), "{ran:#?}");

    let manifest = "version: 1\nentry: {agent: main}\nagent_files: [main.agent]\n\
        providers: {acme: {api: openai-chat, base_url: 'http://127.0.0.1:9', api_key_env: OPENAI_API_KEY}}\n";
    let sandbox = sandbox
        .file("project.yaml", manifest)
        .file("main.agent", "---\nname: main\nmodel: acme:small\n---\nAnswer.\n");
    let mut command = sandbox.command(&["run", ".", "hi"]);
    let ran: Ran = command.env_remove("OPENAI_API_KEY").output().unwrap().into();
    ran.ended(3).told("`OPENAI_API_KEY` is not set");
}

#[test]
fn a_provider_of_the_user_has_a_key_of_its_own() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let provider = runtime.block_on(MockProvider::start(vec![says("Boxed.")]));
    let address = format!("{}/v1", provider.base_url());
    let sandbox = agent("box:small")
        .config(&format!("[providers.box]\nbase_url = \"{address}\"\napi_key_env = \"BOX_KEY\"\nheaders = {{ x-team = \"blue\" }}\n"));
    login(&sandbox, "box").ended(0);
    sandbox.run(&["run", ".", "hi"]).ended(0).said("Boxed.\n");
    let request = &provider.requests()[0];
    assert_eq!(
        (request.header("authorization"), request.header("x-team")),
        (&*format!("Bearer {KEY}"), "blue")
    );

    // A project that names the variable at another address gets nothing.
    let manifest = "version: 1\nentry: {agent: main}\nagent_files: [main.agent]\n\
        providers: {acme: {api: openai-chat, base_url: 'http://127.0.0.1:9', api_key_env: BOX_KEY}}\n";
    let thief = sandbox
        .file("project.yaml", manifest)
        .file("main.agent", "---\nname: main\nmodel: acme:small\n---\nAnswer.\n");
    let mut command = thief.command(&["run", ".", "hi"]);
    let ran: Ran = command.env("BOX_KEY", "sk-of-the-box").output().unwrap().into();
    ran.ended(3).told("belongs to your provider `box`");
}

#[test]
fn an_address_of_the_configuration_gets_the_key_of_a_built_in_provider() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let provider = runtime.block_on(MockProvider::start(vec![says("Proxied.")]));
    let sandbox = agent("openai-chat:small")
        .config(&format!("[providers.openai-chat]\nbase_url = \"{}/v1\"\n", provider.base_url()));
    login(&sandbox, "openai").ended(0);
    let mut command = sandbox.command(&["run", ".", "hi"]);
    let ran: Ran =
        command.env_remove("OPENAI_API_KEY").env_remove("OPENAI_BASE_URL").output().unwrap().into();
    ran.ended(0).said("Proxied.\n");
    let shown = sandbox.command(&["models"]).env_remove("OPENAI_BASE_URL").output().unwrap();
    assert!(String::from_utf8_lossy(&shown.stdout).contains("(address from your configuration)"));
}

#[test]
fn what_cannot_be_a_key_or_a_provider_is_refused() {
    let sandbox = agent("test");
    for wrong in ["", "   \n", "two words canary", "canary\nsecond line", "cänary"] {
        let ran = sandbox.run_with(&["auth", "login", "openai", "--stdin"], wrong.as_bytes()).ended(2);
        assert!(!ran.stderr.contains("canary"), "{ran:#?}");
    }
    assert!(!store(&sandbox).exists());
    sandbox.run(&["auth", "login", "opnai"]).ended(2).told("did you mean `openai`?");
    sandbox
        .run(&["auth", "login", "acme-corporation"])
        .ended(2)
        .told("config set providers.acme-corporation.base_url");
    sandbox.run(&["auth", "login", "openai"]).ended(2).told("the key cannot be typed without a terminal");
}

#[test]
fn a_store_that_others_can_read_is_not_used() {
    let sandbox = agent("openai-chat:small");
    login(&sandbox, "openai").ended(0);
    std::fs::set_permissions(store(&sandbox), std::fs::Permissions::from_mode(0o644)).unwrap();
    sandbox.run(&["auth", "list"]).ended(2).told("others can read it").told("chmod 600");
    let shown = sandbox.run(&["doctor"]).ended(3).stdout;
    assert!(shown.contains("fail  keys      your keys in"), "{shown}");
    let (ran, keys) = beside(&sandbox, says("There."), "OPENAI_BASE_URL", &["run", ".", "hi"]);
    ran.ended(3).told("others can read it");
    assert!(keys.is_empty());
    std::fs::write(store(&sandbox), format!("{KEY}\n")).unwrap();
    std::fs::set_permissions(store(&sandbox), std::fs::Permissions::from_mode(0o600)).unwrap();
    let ran = sandbox.run(&["auth", "list"]).ended(2).told("is not as `llm-do auth` writes it");
    assert!(!ran.stderr.contains(KEY), "{ran:#?}");
}

#[test]
fn a_program_that_llm_do_started_has_no_stored_keys() {
    let sandbox = agent("openai-chat:small");
    login(&sandbox, "openai").ended(0);
    for arguments in
        [&["auth", "list"][..], &["auth", "logout", "openai"], &["auth", "login", "openai", "--stdin"]]
    {
        let ran: Ran = sandbox.command(arguments).env("LLM_DO_CHILD", "1").output().unwrap().into();
        ran.ended(2).told("a program that llm-do started cannot use your stored keys");
    }
    let mut command = sandbox.command(&["run", ".", "hi"]);
    command
        .env("LLM_DO_CHILD", "1")
        .env_remove("OPENAI_API_KEY")
        .env("OPENAI_BASE_URL", "http://127.0.0.1:9/v1");
    let ran: Ran = command.output().unwrap().into();
    ran.ended(3).told("`OPENAI_API_KEY` is not set");
}

#[test]
fn no_tool_reads_or_writes_the_store_or_the_configuration() {
    let sandbox = Sandbox::new().config("model = \"test\"\n# canary\n");
    login(&sandbox, "openai").ended(0);
    // The whole home directory is the root of this project.
    let agent = "---\nname: main\nmodel: test\ntoolsets: [filesystem_project]\n---\nRead.\n";
    std::fs::write(sandbox.home().join("main.agent"), agent).unwrap();
    for file in [".local/share/llm-do/credentials.toml", ".config/llm-do/config.toml"] {
        let before = std::fs::read_to_string(sandbox.home().join(file)).unwrap();
        for (tool, input) in [
            ("read_file", json!({"path": file})),
            ("search_files", json!({"pattern": "canary"})),
            ("write_file", json!({"path": file, "content": "x"})),
        ] {
            let input = input.to_string();
            let flags = ["--as", "main", "--approve", "all", "--trust", "--input-json", &input];
            let ran = sandbox.run(&[&["call", "../home", tool][..], &flags].concat());
            assert!(!ran.stdout.contains("canary"), "{tool} {file}: {ran:#?}");
            let is_blocked = ran.stderr.contains("no tool reaches it");
            assert!(tool == "search_files" || is_blocked, "{tool} {file}: {ran:#?}");
        }
        assert_eq!(std::fs::read_to_string(sandbox.home().join(file)).unwrap(), before);
    }
}

#[test]
fn no_agent_begins_with_the_store_or_the_configuration() {
    let sandbox = Sandbox::new().config("model = \"test\"\n# canary\n");
    login(&sandbox, "openai").ended(0);
    std::os::unix::fs::symlink(".local/share/llm-do", sandbox.home().join("linked")).unwrap();
    let files =
        [".local/share/llm-do/credentials.toml", ".config/llm-do/config.toml", "linked/credentials.toml"];
    for file in files {
        let agent = format!("---\nname: main\nmodel: test:echo\npreload: [{file}]\n---\nRead.\n");
        std::fs::write(sandbox.home().join("main.agent"), agent).unwrap();
        let ran = sandbox
            .run(&["run", "../home", "hi", "-vvv", "--trust"])
            .ended(2)
            .told("belongs to llm-do itself");
        assert!(!ran.stderr.contains("canary"), "{file}: {ran:#?}");
    }
}

#[test]
fn keys_are_listed_and_forgotten_with_a_broken_configuration() {
    let sandbox = agent("openai-chat:small")
        .config("[providers.box]\nbase_url = \"http://x\"\napi_key_env = \"BOX_KEY\"\n");
    login(&sandbox, "openai").ended(0);
    login(&sandbox, "box").ended(0);
    let sandbox = sandbox.config("modl = \"x\"\n");
    let ran = sandbox.run(&["auth", "list"]).ended(0).told("warning: your configuration is not used");
    assert!(ran.stdout.contains("openai  ...aa12") && ran.stdout.contains("box "), "{ran:#?}");
    // The provider is not known any more, but its key is.
    sandbox.run(&["auth", "logout", "box"]).ended(0).told("forgot the key of box");
    sandbox.run(&["auth", "logout", "openai"]).ended(0);
    sandbox.run(&["auth", "logout", "openai"]).ended(2).told("no key of openai is stored");
    assert!(sandbox.run(&["config", "path"]).ended(0).stdout.ends_with("llm-do/config.toml\n"));
    login(&sandbox, "openai").ended(2).told("your configuration cannot be used");
}
