//! `llm-do config`, and what a configuration changes about runs.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::{Ran, Sandbox};

/// An agent that names no model.
fn unnamed() -> Sandbox {
    Sandbox::new().file("main.agent", "---\nname: main\n---\nEcho.\n")
}

fn mode(path: &std::path::Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn a_default_model_is_used_by_agents_that_name_none_and_comes_last() {
    let sandbox = unnamed().config("model = \"test:echo\"\n");
    sandbox.run(&["run", ".", "hi"]).ended(0).said("hi\n");
    // Whatever else names a model takes precedence, and this one does not exist.
    let other = unnamed().config("model = \"test:echo\"\n");
    let ran: Ran =
        other.command(&["run", ".", "hi"]).env("LLM_DO_MODEL", "nosuch:x").output().unwrap().into();
    ran.ended(2).told("nosuch");
    other.run(&["run", ".", "hi", "--model", "nosuch:x"]).ended(2).told("nosuch");
    let manifest = "version: 1\nentry: {agent: main}\nagent_files: [main.agent]\nmodel: test\n";
    let manifest = unnamed().file("project.yaml", manifest).config("model = \"test:echo\"\n");
    assert_ne!(manifest.run(&["run", ".", "hi"]).ended(0).stdout, "hi\n");
    let own = Sandbox::new().file("main.agent", "---\nname: main\nmodel: test\n---\nEcho.\n");
    assert_ne!(own.config("model = \"test:echo\"\n").run(&["run", ".", "hi"]).ended(0).stdout, "hi\n");
}

#[test]
fn an_alias_is_a_model_wherever_one_is_named() {
    let config = "[aliases]\nfast = \"test:echo\"\nslow = \"openai:gpt-5\"\n";
    for (agent, manifest, arguments) in [
        ("model: fast\n", "", &[][..]),
        ("", "model: fast\n", &[]),
        ("", "", &["--model", "fast"]),
        ("", "", &["--set", "agents.main.model=fast"]),
        ("model: openai:x\n", "", &["-m", "fast"]),
    ] {
        let sandbox = Sandbox::new()
            .file("main.agent", &format!("---\nname: main\n{agent}---\nEcho.\n"))
            .file(
                "project.yaml",
                &format!("version: 1\nentry: {{agent: main}}\nagent_files: [main.agent]\n{manifest}"),
            )
            .config(config);
        let arguments = [&["run", ".", "hi"], arguments].concat();
        sandbox.run(&arguments).ended(0).said("hi\n");
    }
    let sandbox = unnamed().config(&format!("model = \"fast\"\n{config}"));
    sandbox.run(&["run", ".", "hi"]).ended(0).said("hi\n");
    let ran: Ran = sandbox.command(&["run", ".", "hi"]).env("LLM_DO_MODEL", "fast").output().unwrap().into();
    ran.ended(0).said("hi\n");
    let shown = sandbox.run(&["models", "--model", "slow"]).ended(0);
    assert!(shown.stdout.starts_with("openai:gpt-5\n"), "{shown:#?}");
    assert!(sandbox.run(&["models"]).stdout.contains("aliases\n  fast  test:echo\n"));
    sandbox.run(&["run", ".", "hi", "-m", "fats"]).ended(2).told("did you mean `fast`?");
}

#[test]
fn what_is_wrong_is_said_with_its_position_and_what_was_meant() {
    for (config, message, position, hint) in [
        ("model = \"test\"\nmodle = 1\n", "unknown key `modle`", ":2:1", "did you mean `model`?"),
        ("[approvals]\nmoed = \"prompt\"\n", "unknown key `moed`", ":2:1", "did you mean `mode`?"),
        (
            "[approvals]\nmode = \"never\"\n",
            "`never` is not one of `prompt`, `reject_all`, `approve_all`",
            ":2:8",
            "",
        ),
        ("model = 5\n", "expected a string, got integer `5`", ":1:9", ""),
        ("model = \"test\n", "", ":1:", ""),
        ("model = \"opnai:x\"\n", "the provider `opnai`", ":1:1", "did you mean `openai`?"),
        (
            "[aliases]\na = \"test\"\nb = \"a\"\n",
            "names another alias",
            ":3:1",
            "write the model itself: `test`",
        ),
        ("[aliases]\nopenai = \"test\"\n", "is the name of a provider", ":2:1", ""),
        (
            "[providers.box]\nbase_url = \"nonsense\"\napi = \"opanai\"\n",
            "`api` is `opanai`",
            ":3:1",
            "`openai`",
        ),
        ("[providers.box]\nbase_url = \"ftp://x\"\n", "is not an HTTP address", ":2:1", ""),
        (
            "[providers.box]\nbase_url = \"http://x\"\nheaders = { Authorization = \"Bearer canary\" }\n",
            "`Authorization` may not be set here",
            ":3:1",
            "`api_key_env`",
        ),
        ("[models.\"a[\"]\n", "is not a glob", ":1:", ""),
        (
            "[models.\"box:*\"]\ncontext_window = 8192\n",
            "unknown key `context_window`",
            ":2:1",
            "did you mean `profile.context_window`?",
        ),
        (
            "[secret_files]\nallow = [\"../x\"]\n",
            "`../x` leads out of the project",
            ":2:1",
            "`tests/fixtures/**`",
        ),
        ("[secret_files]\nallwo = []\n", "unknown key `allwo`", ":2:1", "did you mean `allow`?"),
        ("[models.\"*\"]\nprice = { input = -1, output = 0 }\n", "is not a number of dollars", ":2:1", ""),
        ("[providers.openai]\nbase_url = \"http://x\"\napi = \"openai\"\n", "it is built in", ":3:1", ""),
        (
            "[providers.box]\nbase_url = \"http://x\"\napi_key_env = \"sk-canary-1\"\n",
            "not the key itself",
            ":3:1",
            "auth login box",
        ),
    ] {
        let ran = unnamed().config(config).run(&["run", ".", "hi"]).ended(2);
        assert!(
            ran.stderr.contains(&format!("at ~/.config/llm-do/config.toml{position}")),
            "{config}: {ran:#?}"
        );
        assert!(ran.stderr.contains(message) && ran.stderr.contains(hint), "{config}: {ran:#?}");
        assert!(!ran.stderr.contains("canary"), "{ran:#?}");
    }
}

#[test]
fn settings_are_changed_with_everything_else_kept_and_nothing_invalid_written() {
    let text = "# mine\nmodel = \"test\" # why\n\n[aliases]\n# quick one\nfast = \"test:echo\"\n";
    let sandbox = unnamed().config(text);
    sandbox.run(&["config", "set", "model", "fast"]).ended(0).said("").told_nothing();
    sandbox.run(&["config", "set", "aliases.slow", "openai:gpt-5"]).ended(0);
    sandbox.run(&["config", "set", "providers.box.base_url", "http://box.lan:9000/v1"]).ended(0);
    sandbox.run(&["config", "set", "models.\"box:*\".price", "{ input = 0, output = 0.5 }"]).ended(0);
    sandbox.run(&["config", "set", "models.\"box:*\".profile.images", "false"]).ended(0);
    let written = std::fs::read_to_string(sandbox.config_path()).unwrap();
    assert!(written.starts_with("# mine\nmodel = \"fast\" # why\n\n[aliases]\n# quick one\nfast = \"test:echo\"\nslow = \"openai:gpt-5\"\n"), "{written}");
    for (arguments, message) in [
        (&["config", "set", "modle", "x"][..], "did you mean `model`?"),
        (&["config", "set", "model", "nosuch:x"], "`nosuch`, which does not exist"),
        (&["config", "set", "approvals.mode", "maybe"], "`maybe`"),
        (&["config", "set", "model.x", "1"], "cannot have keys below it"),
        (&["config", "set", "a..b", "1"], "is not a key"),
        (&["config", "unset", "aliases.fast"], "the model `fast` is neither an alias nor `provider:model`"),
        (&["config", "set", "model", "slwo"], "did you mean the alias `slow`?"),
        (&["config", "unset", "trust.content"], "`trust.content` is not set"),
        (&["config", "unset", "models.\"box:*\".price.input"], "the key `input` is missing in this table"),
    ] {
        let before = std::fs::read_to_string(sandbox.config_path()).unwrap();
        sandbox.run(arguments).ended(2).told(message);
        assert_eq!(std::fs::read_to_string(sandbox.config_path()).unwrap(), before, "{arguments:?}");
    }
    // A table that becomes empty goes with its last key.
    sandbox.run(&["config", "unset", "providers.box.base_url"]).ended(0);
    assert!(!std::fs::read_to_string(sandbox.config_path()).unwrap().contains("providers"));
    assert_eq!(sandbox.run(&["config", "get", "model"]).ended(0).stdout, "fast\n");
    assert_eq!(
        sandbox.run(&["config", "get", "models.\"box:*\".price"]).ended(0).stdout,
        "{ input = 0, output = 0.5 }\n"
    );
    assert_eq!(sandbox.run(&["config", "get", "trust.content"]).ended(0).stdout, "notice\n");
    sandbox.run(&["config", "get", "aliases.none"]).ended(1).said("").told("`aliases.none` is not set");
}

#[test]
fn a_new_file_is_the_users_alone() {
    let sandbox = unnamed();
    assert_eq!(sandbox.run(&["config", "get", "model"]).ended(1).stdout, "");
    sandbox.run(&["config", "set", "model", "test:echo"]).ended(0);
    let path = sandbox.config_path();
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    assert_eq!(sandbox.run(&["config", "path"]).stdout, format!("{}\n", path.display()));
    sandbox.run(&["config", "unset", "model"]).ended(0);
    assert_eq!(std::fs::read_to_string(path).unwrap().trim(), "");
}

#[test]
fn settings_are_shown_with_their_origin() {
    let sandbox = unnamed().config("# mine\n[aliases]\nfast = \"test:echo\"\n");
    let mut command = sandbox.command(&["config"]);
    let ran: Ran = command.env("LLM_DO_MODEL", "test").output().unwrap().into();
    let shown = ran.ended(0).stdout;
    let lines: Vec<Vec<&str>> = shown
        .lines()
        .map(|line| line.split("  ").filter(|part| !part.is_empty()).map(str::trim).collect())
        .collect();
    assert_eq!(lines[0], ["model", "test", "LLM_DO_MODEL (environment)"]);
    assert_eq!(lines[1], ["approvals.mode", "prompt", "default"]);
    assert_eq!(lines[2], ["trust.content", "notice", "default"]);
    assert_eq!(lines[3], ["aliases.fast", "test:echo", "~/.config/llm-do/config.toml:3"]);
    let value = sandbox.run(&["config", "--output", "json"]).ended(0).json();
    assert_eq!(value["settings"][0], json!({"key": "model", "value": Value::Null, "origin": "default"}));
}

#[test]
fn an_editor_changes_the_file_and_its_mistakes_are_named() {
    let sandbox = unnamed();
    let edit = |script: &str| -> Ran {
        let editor = sandbox.path("editor");
        std::fs::write(&editor, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o755)).unwrap();
        sandbox.command(&["config", "edit"]).env("EDITOR", &editor).output().unwrap().into()
    };
    edit("grep -q 'Your configuration' \"$1\" && echo 'model = \"test:echo\"' > \"$1\"")
        .ended(0)
        .told_nothing();
    sandbox.run(&["run", ".", "hi"]).ended(0).said("hi\n");
    edit("echo 'modle = 1' > \"$1\"").ended(2).told("unknown key `modle`").told("did you mean `model`?");
    edit("exit 3").ended(2).told("did not end well");
    // A broken file can still be edited, found and repaired.
    sandbox.run(&["config"]).ended(2);
    sandbox.run(&["config", "path"]).ended(0);
    sandbox.run(&["config", "unset", "modle"]).ended(0);
    sandbox.run(&["config"]).ended(0);
}

#[test]
fn a_directory_that_a_project_could_have_written_is_ignored() {
    let sandbox =
        unnamed().config("model = \"test:echo\"\n").file(".cfg/llm-do/config.toml", "model = \"test\"\n");
    for (value, reason) in [
        (sandbox.path(".cfg").into_os_string(), "is inside the project or the working directory"),
        (".cfg".into(), "is not an absolute path"),
    ] {
        let mut command = sandbox.command(&["run", ".", "hi"]);
        let ran: Ran = command.env("XDG_CONFIG_HOME", &value).output().unwrap().into();
        ran.ended(0).said("hi\n").told("notice: XDG_CONFIG_HOME is ignored").told(reason);
        let mut command = sandbox.command(&["run", sandbox.root().to_str().unwrap(), "hi"]);
        let ran: Ran = command.env("XDG_CONFIG_HOME", &value).current_dir("/").output().unwrap().into();
        ran.ended(0).said("hi\n").told(reason);
    }
    let elsewhere = sandbox.home().join("elsewhere");
    std::fs::create_dir_all(elsewhere.join("llm-do")).unwrap();
    std::fs::write(elsewhere.join("llm-do/config.toml"), "model = \"nosuch:x\"\n").unwrap();
    let mut command = sandbox.command(&["run", ".", "hi"]);
    let ran: Ran = command.env("XDG_CONFIG_HOME", &elsewhere).output().unwrap().into();
    ran.ended(2).told("nosuch");
}

#[test]
fn only_a_regular_file_that_nobody_else_can_write_is_read() {
    let sandbox = unnamed().config("model = \"test:echo\"\n");
    let path = sandbox.config_path();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    sandbox.run(&["run", ".", "hi"]).ended(2).told("others can write to it").told("chmod go-w");
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    sandbox.run(&["run", ".", "hi"]).ended(2).told("it is not a regular file");
    std::fs::remove_dir(&path).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    sandbox.run(&["run", ".", "hi"]).ended(2).told("it is not a regular file");
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "#".repeat(1024 * 1024 + 1)).unwrap();
    sandbox.run(&["run", ".", "hi"]).ended(2).told("larger than 1048576 bytes");
    // A link to such a file is one of the user's doing, and stays a link when the file is changed.
    std::fs::remove_file(&path).unwrap();
    let target = sandbox.home().join("dotfiles.toml");
    std::fs::write(&target, "model = \"test\"\n").unwrap();
    std::os::unix::fs::symlink(&target, &path).unwrap();
    sandbox.run(&["config", "set", "model", "test:echo"]).ended(0);
    assert!(path.symlink_metadata().unwrap().is_symlink());
    sandbox.run(&["run", ".", "hi"]).ended(0).said("hi\n");
}

#[test]
fn a_project_is_stricter_than_the_user_and_never_looser() {
    let with = |project: &str, user: &str| {
        let sandbox = Sandbox::asking();
        let manifest = std::fs::read_to_string(sandbox.path("project.yaml")).unwrap();
        let manifest = manifest.replace("runtime: {", &format!("runtime: {{{project}"));
        sandbox.file("project.yaml", &manifest).config(user)
    };
    let user = |mode: &str| format!("[approvals]\nmode = \"{mode}\"\n");
    let approved = with("", &user("approve_all")).run(&["run", ".", "x", "-v"]).ended(0);
    assert!(approved.stderr.contains("-> may I"), "{approved:#?}");
    assert_eq!(
        approved.stderr.matches("notice: calls that must ask are approved: `approvals.mode`").count(),
        1
    );
    with("approval_mode: reject_all, ", &user("approve_all")).run(&["run", ".", "x", "-v"]).told("denied");
    with("approval_mode: approve_all, ", &user("reject_all")).run(&["run", ".", "x", "-v"]).told("denied");
    with("approval_mode: approve_all, ", &user("prompt")).run(&["run", ".", "x"]).ended(5);
    with("", &user("reject_all")).run(&["run", ".", "x", "--approve", "all", "-v"]).ended(0).told("-> may I");
}

#[test]
fn a_program_that_llm_do_started_cannot_change_settings() {
    let sandbox = unnamed().config("model = \"test\"\n");
    for arguments in [
        &["config", "set", "approvals.mode", "approve_all"][..],
        &["config", "unset", "model"],
        &["config", "edit"],
    ] {
        let mut command = sandbox.command(arguments);
        let ran: Ran = command.env("LLM_DO_CHILD", "1").env("EDITOR", "true").output().unwrap().into();
        ran.ended(2).told("a program that llm-do started cannot change your configuration");
    }
    assert_eq!(std::fs::read_to_string(sandbox.config_path()).unwrap(), "model = \"test\"\n");
}

#[test]
fn a_project_cannot_redeclare_a_provider_of_the_user() {
    let manifest = "version: 1\nentry: {agent: main}\nagent_files: [main.agent]\nmodel: box:x\n\
        providers: {box: {api: openai-chat, base_url: 'http://evil.example'}}\n";
    let sandbox =
        unnamed().file("project.yaml", manifest).config("[providers.box]\nbase_url = \"http://box.lan\"\n");
    sandbox.run(&["check", "."]).ended(2);
    sandbox.run(&["run", ".", "hi"]).ended(2).told("or of one in your own configuration");
}

#[test]
fn a_table_is_printed_key_by_key() {
    let text = "[providers.box]\nbase_url = \"http://box.lan\"\nheaders = { x-team = \"a\" }\n";
    let sandbox = unnamed().config(text);
    let expected = "providers.box.base_url = \"http://box.lan\"\nproviders.box.headers.x-team = \"a\"\n";
    sandbox.run(&["config", "get", "providers"]).ended(0).said(expected);
    sandbox.run(&["config", "get", "providers.box"]).ended(0).said(expected);
    sandbox.run(&["config", "get", "providers.box.headers"]).ended(0).said("{ x-team = \"a\" }\n");
    sandbox.run(&["config", "get", "aliases"]).ended(1).told("`aliases` is not set");
}

#[test]
fn the_context_window_of_a_model_is_the_users_to_set() {
    let config = "[models.\"openai:gpt-5\"]\nprofile = { context_window = 4321 }\n";
    let sandbox = Sandbox::echo().config(config);
    let shown = sandbox.run(&["models", "--model", "openai:gpt-5"]).ended(0);
    assert!(shown.stdout.contains("4321 tokens"), "{shown:#?}");
    let listed = sandbox.run(&["models", "--list", "openai"]).ended(0);
    let line = listed.stdout.lines().find(|line| line.contains("openai:gpt-5 ")).unwrap();
    assert!(line.contains("4321") || line.contains("4k"), "{line}");
}

#[test]
fn a_wrong_default_model_matters_only_to_agents_that_name_none() {
    let run = |sandbox: &Sandbox| -> Ran {
        sandbox.command(&["run", ".", "hi"]).env("LLM_DO_MODEL", "nosuch:x").output().unwrap().into()
    };
    run(&Sandbox::echo()).ended(0).said("hi\n").told_nothing();
    run(&unnamed()).ended(2).told("nosuch");
}

#[test]
fn an_address_without_a_scheme_is_not_stored() {
    let sandbox = Sandbox::new();
    let refused = sandbox.run(&["config", "set", "providers.box.base_url", "foo"]).ended(2);
    refused.told("an address begins with `http://` or `https://`").told("hint: write `http://foo`");
    assert!(!sandbox.config_path().exists());
    sandbox.run(&["config", "set", "providers.box.base_url", "https://foo"]).ended(0);
}

#[test]
fn a_value_that_does_not_fit_is_explained_in_plain_terms() {
    let sandbox = Sandbox::new();
    let set = |key: &str, value: &str| sandbox.run(&["config", "set", key, value]).ended(2);
    let refused =
        set("approvals.mode", "promt").told("`promt` is not one of `prompt`, `reject_all`, `approve_all`");
    refused.told("hint: did you mean `prompt`?");
    set("models.x.price.input", "2").told("the key `output` is missing in this table");
    set("secret_files.allow", "3").told("expected a sequence, got integer `3`");
}
