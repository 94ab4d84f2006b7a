//! Tests of providers, keys and addresses.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

fn environment(own: &[(&str, &str)], project: &[(&str, &str)]) -> Environment {
    let owned = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    owned(own).into_iter().collect::<Environment>().with_project(owned(project))
}

fn endpoint(name: &str, environment: &Environment) -> Result<Endpoint, ModelError> {
    Endpoint::built_in(built_in(name).unwrap(), environment, true)
}

fn refusal(result: Result<Endpoint, ModelError>) -> String {
    result.err().unwrap().to_string()
}

#[test]
fn a_missing_key_is_named() {
    let message = refusal(endpoint("google", &Environment::empty()));
    assert!(message.contains("`GEMINI_API_KEY` or `GOOGLE_API_KEY` is not set"), "{message}");
    assert!(endpoint("ollama", &Environment::empty()).is_ok());
    assert!(refusal(endpoint("azure", &Environment::empty())).contains("AZURE_OPENAI_ENDPOINT"));
}

#[test]
fn a_key_is_sensitive_and_sits_in_the_header_of_its_protocol() {
    let keys = environment(&[("ANTHROPIC_API_KEY", "sk-canary"), ("XAI_API_KEY", " x \n")], &[]);
    let anthropic = endpoint("anthropic", &keys).unwrap();
    assert_eq!(anthropic.headers["x-api-key"], "sk-canary");
    assert!(!format!("{:?}", anthropic.headers).contains("canary"));
    assert_eq!(endpoint("xai", &keys).unwrap().headers["authorization"], "Bearer x");
}

#[test]
fn addresses_are_completed_as_people_write_them() {
    let address = |name: &str, variable: &str, value: &str| {
        let environment =
            environment(&[(variable, value), ("OPENAI_API_KEY", "k"), ("AZURE_OPENAI_API_KEY", "k")], &[]);
        endpoint(name, &environment).unwrap().base_url
    };
    assert_eq!(address("ollama", "OLLAMA_HOST", "0.0.0.0"), "http://127.0.0.1:11434");
    assert_eq!(address("ollama", "OLLAMA_HOST", "box:1234"), "http://box:1234");
    assert_eq!(address("ollama", "OLLAMA_HOST", "http://box/under/"), "http://box:11434/under");
    assert_eq!(address("ollama", "OLLAMA_HOST", "https-box"), "http://https-box:11434");
    assert_eq!(address("ollama", "OLLAMA_HOST", "https://box.example/x"), "https://box.example/x");
    assert_eq!(address("ollama", "OLLAMA_HOST", "[::1]"), "http://[::1]:11434");
    assert_eq!(address("openai", "OPENAI_BASE_URL", "http://localhost:1/v1/"), "http://localhost:1/v1");
    assert_eq!(
        address("azure", "AZURE_OPENAI_ENDPOINT", "https://a.example/"),
        "https://a.example/openai/v1"
    );
}

#[test]
fn an_address_with_more_than_a_place_is_refused_and_its_password_is_not_shown() {
    for (written, text) in [
        ("https://me:canary@a.example/v1", "holds a user or a password"),
        ("canary@a.example", "holds a user or a password"),
        ("https://a.example/v1?key=canary", "has a query or a fragment"),
        ("https://me:canary@a.example/#canary", "has a query or a fragment"),
        ("http:/me:canary@a.example", "is not an HTTP address"),
        ("ftp://a.example", "is not an HTTP address: `ftp://a.example`"),
    ] {
        let variables = environment(&[("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", written)], &[]);
        let message = refusal(endpoint("openai", &variables));
        assert!(message.contains(text) && !message.contains("canary"), "{written}: {message}");
    }
    let variables =
        environment(&[("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", "https://a.example/@cf")], &[]);
    assert_eq!(endpoint("openai", &variables).unwrap().base_url, "https://a.example/@cf");
}

#[test]
fn the_users_key_never_goes_where_a_project_points() {
    let stolen = environment(&[("OPENAI_API_KEY", "mine")], &[("OPENAI_BASE_URL", "https://evil.example")]);
    assert!(refusal(endpoint("openai", &stolen)).contains("not sent to an address that the project chose"));
    let own = environment(&[], &[("OPENAI_BASE_URL", "https://a.example"), ("OPENAI_API_KEY", "theirs")]);
    assert_eq!(endpoint("openai", &own).unwrap().base_url, "https://a.example");
    let users = environment(&[("OPENAI_API_KEY", "mine"), ("OPENAI_BASE_URL", "https://mine.example")], &[]);
    assert!(endpoint("openai", &users).is_ok());
}

/// An environment with a store that has one key and counts how often it is asked.
fn with_store(environment: Environment, account: &'static str) -> (Environment, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let lookup = move |wanted: &str| {
        count.fetch_add(1, Ordering::Relaxed);
        Ok((wanted == account).then(|| "stored".to_owned()))
    };
    (environment.with_stored_keys(lookup), asked)
}

fn key(endpoint: &Endpoint) -> &str {
    &endpoint.secrets[0]
}

#[test]
fn the_store_is_asked_last_and_only_if_a_key_is_needed() {
    let (none, asked) = with_store(Environment::empty(), "openai");
    assert_eq!(key(&endpoint("openai-chat", &none).unwrap()), "stored");
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    let gemini = [("GOOGLE_API_KEY", "mine")];
    for variables in [environment(&gemini, &[]), environment(&[], &gemini)] {
        let (variables, asked) = with_store(variables, "gemini");
        assert_eq!(key(&endpoint("google", &variables).unwrap()), "mine");
        assert_eq!(asked.load(Ordering::Relaxed), 0, "a variable holds the key");
    }
    let message = refusal(endpoint("groq", &none));
    assert!(message.contains("store the key with `llm-do auth login groq`"), "{message}");
    let without_store = refusal(endpoint("groq", &Environment::empty()));
    assert!(!without_store.contains("auth login"), "{without_store}");
}

#[test]
fn a_stored_key_goes_to_no_address_that_a_project_chose() {
    let chosen = environment(&[], &[("OPENAI_BASE_URL", "https://evil.example")]);
    let (chosen, _) = with_store(chosen, "openai");
    assert!(refusal(endpoint("openai", &chosen)).contains("is not sent"));
    let declared = |is_users| DeclaredProvider {
        name: "box".into(),
        protocol: "openai-chat".into(),
        base_url: "https://box.example/v1".into(),
        key_env: Some("BOX_KEY".into()),
        headers: BTreeMap::new(),
        is_users,
    };
    let (stored, asked) = with_store(Environment::empty(), "box");
    let refused = refusal(Endpoint::declared(&declared(false), &stored, true));
    assert!(refused.contains("`BOX_KEY` is not set") && !refused.contains("auth login"), "{refused}");
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    assert_eq!(key(&Endpoint::declared(&declared(true), &stored, true).unwrap()), "stored");
    let theirs = DeclaredProvider { base_url: "https://evil.example".into(), ..declared(false) };
    assert!(theirs.borrows_from(&declared(true)) && !declared(false).borrows_from(&declared(true)));
}

#[test]
fn the_users_own_provider_may_get_any_key_of_the_user() {
    let proxy = DeclaredProvider {
        name: "proxy".into(),
        protocol: "openai".into(),
        base_url: "https://proxy.example".into(),
        key_env: Some("OPENAI_API_KEY".into()),
        headers: BTreeMap::new(),
        is_users: true,
    };
    let keys = environment(&[("OPENAI_API_KEY", "mine")], &[]);
    assert!(Endpoint::declared(&proxy, &keys, true).is_ok());
    let theirs = DeclaredProvider { is_users: false, ..proxy };
    assert!(Endpoint::declared(&theirs, &keys, true).is_err());
}

#[test]
fn a_declared_provider_may_not_borrow_the_key_of_another() {
    let acme = |base_url: &str, key: &str| DeclaredProvider {
        name: "acme".into(),
        protocol: "openai-chat".into(),
        base_url: base_url.into(),
        key_env: Some(key.into()),
        headers: BTreeMap::new(),
        is_users: false,
    };
    let keys = environment(&[("OPENAI_API_KEY", "mine"), ("ACME_KEY", "a")], &[]);
    assert!(Endpoint::declared(&acme("https://acme.example", "ACME_KEY"), &keys, true).is_ok());
    assert!(Endpoint::declared(&acme("https://api.openai.com/v1", "OPENAI_API_KEY"), &keys, true).is_ok());
    let message = refusal(Endpoint::declared(&acme("https://acme.example", "OPENAI_API_KEY"), &keys, true));
    assert!(message.contains("`OPENAI_API_KEY` is not sent"), "{message}");
    let message = refusal(Endpoint::declared(&acme("https://acme.example", "NO_KEY"), &keys, true));
    assert!(message.contains("`NO_KEY` is not set"), "{message}");
}
