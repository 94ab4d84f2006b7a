//! `llm-do models`: providers and their keys, what a model can do and costs.

use crate::support::{Ran, Sandbox};

/// Variables of whoever runs the tests.
const KEYS: [&str; 8] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "GROQ_API_KEY",
    "OLLAMA_HOST",
];

fn models(sandbox: &Sandbox, variables: &[(&str, &str)], arguments: &[&str]) -> Ran {
    let mut command = sandbox.command(&[&["models"], arguments].concat());
    for name in KEYS {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied()).output().unwrap().into()
}

/// A project with a provider and prices of its own, and a key in its `.env`.
fn project() -> Sandbox {
    Sandbox::new()
        .file(
            "project.yaml",
            "version: 1\nmodel: acme:big\nentry: {agent: main}\nagent_files: ['*.agent']\n\
             providers:\n  acme: {api: openai-chat, base_url: 'https://acme.example/v1', api_key_env: ACME_KEY}\n\
             models:\n  'acme:*': {price: {input: 1.5, output: 3, request: 0.01}, profile: {images: false, native_output: always}}\n",
        )
        .file("main.agent", "---\nname: main\nfallback_models: ['anthropic:claude-opus-4-5', test]\n---\nDo it.\n")
        .file(".env", "ACME_KEY=canary-of-the-project\nOPENAI_BASE_URL=https://elsewhere.example/v1\n")
}

/// The line about something, with single blanks.
fn line(ran: &Ran, name: &str) -> String {
    let mut lines = ran.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines
        .find(|line| line.starts_with(&format!("{name} ")))
        .unwrap_or_else(|| panic!("no {name} in {ran:#?}"))
}

#[test]
fn providers_are_listed_with_protocol_address_and_key() {
    let ran = models(&Sandbox::new(), &[("GEMINI_API_KEY", "canary")], &[]).ended(0);
    assert_eq!(
        line(&ran, "anthropic"),
        "anthropic anthropic https://api.anthropic.com ANTHROPIC_API_KEY not set"
    );
    assert!(line(&ran, "gemini").ends_with("GEMINI_API_KEY set (also google, google-gla)"), "{ran:#?}");
    assert!(line(&ran, "ollama").ends_with("no key needed"), "{ran:#?}");
    assert!(
        line(&ran, "azure").contains("AZURE_OPENAI_BASE_URL or AZURE_OPENAI_ENDPOINT not set"),
        "{ran:#?}"
    );
    assert!(ran.stdout.ends_with("offline\n  test, test:echo, script:FILE\n"), "{ran:#?}");
    assert!(!ran.stdout.contains("canary"), "{ran:#?}");
}

#[test]
fn a_project_adds_its_providers_keys_and_prices() {
    let ran = models(&project(), &[("OPENAI_API_KEY", "canary-of-the-user")], &["."]).ended(0);
    assert_eq!(line(&ran, "acme"), "acme openai-chat https://acme.example/v1 ACME_KEY set in .env");
    assert_eq!(line(&ran, "openai"), "openai openai https://api.openai.com/v1 OPENAI_API_KEY set");
    assert!(!ran.stdout.contains("canary"), "{ran:#?}");
    let (_, used) = ran.stdout.split_once("models of this project\n").unwrap();
    assert_eq!(
        used,
        "  acme:big                   $1.5 input, $3 output per million tokens; $0.01 per request\n  \
           anthropic:claude-opus-4-5  $5 input, $25 output, $0.5 cache read, $6.25 cache write per million tokens; $10 per thousand searches\n  \
           test                       free\n"
    );
}

#[test]
fn one_model_is_shown_with_what_it_can_do_and_costs() {
    insta::assert_snapshot!(models(&Sandbox::new(), &[], &["--model", "google/gemini-2.5-pro"]).ended(0).stdout, @r"
    google/gemini-2.5-pro
      provider        gemini at https://generativelanguage.googleapis.com
      protocol        gemini
      key             GEMINI_API_KEY or GOOGLE_API_KEY not set
      schemas         enforced by the provider where no tools are on offer, else by a tool
      thinking        by a number of tokens; it cannot be switched off
      temperature     yes
      images          yes
      documents       yes
      context         1048576 tokens
      output          32000 tokens where nothing else is said
      own tools       web_search, web_fetch, code_execution
      price           $1.25 input, $10 output, $0.125 cache read per million tokens; $35 per thousand searches
      long prompts    cost more beyond 200000 tokens
    ");
    let ran = models(&Sandbox::new(), &[], &["--model", "openai:gpt-99"]).ended(0);
    assert!(line(&ran, "price").ends_with("unknown"), "{ran:#?}");
    let ran = models(&Sandbox::new(), &[], &["--model", "openai:gpt-5.1"]).ended(0);
    assert!(line(&ran, "thinking").ends_with("by `effort`: none, low, medium, high"), "{ran:#?}");
}

#[test]
fn a_project_overrules_what_a_model_can_do_and_costs() {
    let ran = models(&project(), &[], &[".", "--model", "acme:big", "--output", "json"]).ended(0);
    let shown = ran.json();
    assert_eq!(shown["profile"]["images"], false);
    assert_eq!(shown["profile"]["native_output"], "always");
    assert_eq!(shown["profile"]["thinking"], "unasked");
    assert_eq!(
        shown["price"],
        serde_json::json!({"input": 1.5, "output": 3.0, "search": 0.0, "request": 0.01})
    );
    assert_eq!(shown["provider"]["key"]["from"], "project");
}

#[test]
fn a_program_reads_providers_as_json() {
    let shown =
        models(&project(), &[("ANTHROPIC_API_KEY", "canary")], &[".", "--output", "json"]).ended(0).json();
    let providers = shown["providers"].as_array().unwrap();
    let of = |name: &str| providers.iter().find(|provider| provider["name"] == name).unwrap();
    assert_eq!(of("anthropic")["key"]["state"], "set");
    assert_eq!(of("anthropic")["key"]["from"], "environment");
    assert_eq!(of("groq")["key"]["state"], "not_set");
    assert_eq!(of("vllm")["key"]["state"], "not_needed");
    assert_eq!(of("acme")["declared"], true);
    assert_eq!(shown["models"][0]["model"], "acme:big");
    assert!(!shown.to_string().contains("canary"));
}

#[test]
fn what_names_no_model_is_refused_with_a_hint() {
    let sandbox = Sandbox::new();
    models(&sandbox, &[], &["--model", "opnai:gpt-5"]).ended(2).told("did you mean `openai:gpt-5`?");
    models(&sandbox, &[], &["--model", "o3"]).ended(2).told("did you mean `openai:o3` or `azure:o3`?");
    models(&sandbox, &[], &["--model", "openai"]).ended(2).told("write `openai:MODEL`");
    models(&sandbox, &[], &["--set", "model=test"]).ended(2).told("name one");
    models(&sandbox, &[], &["nowhere"]).ended(2).told("there is no project at `nowhere`");
}

#[test]
fn an_address_with_a_password_is_not_shown_whole() {
    let variables = [("OPENAI_BASE_URL", "https://me:canary@proxy.example/v1")];
    let ran = models(&Sandbox::new(), &variables, &[]).ended(0);
    assert!(line(&ran, "openai").contains("https://…@proxy.example/v1"), "{ran:#?}");
    assert!(!ran.stdout.contains("canary"), "{ran:#?}");
}

#[test]
fn a_name_without_a_provider_is_completed_if_one_provider_has_it() {
    let shown = models(&Sandbox::new(), &[], &["--model", "gpt-5"]).ended(0);
    let shown = shown.told("notice: the model `gpt-5` is `openai:gpt-5`\n");
    assert!(shown.stdout.starts_with("openai:gpt-5\n"), "{shown:#?}");
    assert_eq!(shown.stderr.matches("notice").count(), 1, "{shown:#?}");
}

#[test]
fn names_are_completed_alike_in_every_command() {
    let sandbox = Sandbox::echo();
    let ambiguous = "did you mean `openai:o3` or `azure:o3`?";
    for arguments in [
        &["run", ".", "hi", "--model", "o3"][..],
        &["chat", ".", "hi", "--model", "o3"],
        &["call", ".", "main", "--input-json", "\"hi\"", "--model", "o3"],
        &["models", "--model", "o3"],
        &["doctor", "--model", "o3"],
    ] {
        sandbox.run(arguments).ended(2).said("").told(ambiguous);
    }
    let mut command = sandbox.command(&["run", ".", "hi", "--model", "gpt-5"]);
    let ran: Ran = command.env_remove("OPENAI_API_KEY").output().unwrap().into();
    ran.ended(3).told("notice: the model `gpt-5` is `openai:gpt-5`").told("OPENAI_API_KEY");
    let file = Sandbox::new().file("main.agent", "---\nname: main\nmodel: gpt-5\n---\nHi.\n");
    file.run(&["check"])
        .ended(2)
        .told("names the model `gpt-5` without a provider")
        .told("did you mean `openai:gpt-5`?");
}

#[test]
fn the_model_of_the_environment_is_only_a_default() {
    let run = |sandbox: &Sandbox| -> Ran {
        let mut command = sandbox.command(&["run", ".", "hi", "-v"]);
        command.env("LLM_DO_MODEL", "test:echo").output().unwrap().into()
    };
    let own = Sandbox::scripted("- say: from the script\n");
    run(&own).ended(0).said("from the script\n").told("with script:script.yaml");
    let none = Sandbox::new().file("main.agent", "---\nname: main\n---\nEcho.\n");
    run(&none).ended(0).said("hi\n").told("with test:echo");
    let flag = own.run(&["run", ".", "hi", "-v", "--model", "test:echo"]);
    flag.ended(0).said("hi\n").told("with test:echo");
}

#[test]
fn known_models_are_listed_with_prices_and_context_sizes() {
    let sandbox = Sandbox::new();
    let all = models(&sandbox, &[], &["--list"]).ended(0);
    assert!(line(&all, "openai:gpt-5").ends_with("$1.25 $10 400k"), "{}", line(&all, "openai:gpt-5"));
    assert!(line(&all, "model").ends_with("input output context"));
    let one = models(&sandbox, &[], &["--list", "anthropic", "--output", "json"]).ended(0).json();
    let listed = one["models"].as_array().unwrap();
    assert!(
        listed.len() > 10
            && listed.iter().all(|model| {
                model["model"].as_str().unwrap().starts_with("anthropic:")
                    && model["price"]["input"].is_number()
            })
    );
    assert_eq!(
        models(&sandbox, &[], &["--list", "google"]).ended(0).stdout.lines().next(),
        models(&sandbox, &[], &["--list", "gemini"]).ended(0).stdout.lines().next()
    );
    assert!(
        models(&sandbox, &[], &["--list", "ollama"])
            .ended(0)
            .stdout
            .contains("no models of `ollama` are known")
    );
    models(&sandbox, &[], &["--list", "opnai"]).ended(2).told("did you mean `openai`?");
    models(&sandbox, &[], &["--list", "--model", "gpt-5"]).ended(2);
}
