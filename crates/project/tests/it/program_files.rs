//! Program files of LLMProc, read as agents: every documented key, right and wrong.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use llm_do_core::{Access, AgentSpec};
use llm_do_project::{LoadedProject, Severity, load, load_changed};
use llm_do_testing::TestDir;
use serde_json::json;

use crate::parts::standard::Standard;

fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs")
}

fn loaded(name: &str) -> LoadedProject {
    load(programs().join(name), &Standard).unwrap_or_else(|diagnostics| panic!("{name}: {diagnostics}"))
}

fn spec(project: &LoadedProject, name: &str) -> Arc<AgentSpec> {
    let outline = project.project.outline();
    outline.into_iter().filter_map(|outline| outline.agent).find(|spec| spec.name == name).unwrap()
}

#[test]
fn every_program_of_the_folder_loads_with_at_most_notices() {
    let mut count = 0;
    for entry in std::fs::read_dir(programs()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "toml" || ending == "yaml" || ending == "yml") {
            let project = loaded(path.file_name().unwrap().to_str().unwrap());
            assert!(project.notices.0.iter().all(|notice| notice.severity == Severity::Notice));
            count += 1;
        }
    }
    assert_eq!(count, 4);
}

#[test]
fn every_documented_key_becomes_what_means_the_same() {
    let project = loaded("everything.toml");
    let main = spec(&project, "everything");
    assert_eq!(project.entry, "everything");
    assert_eq!(&*main.instructions, "You know everything.");
    assert_eq!(main.model.as_ref().unwrap().name(), "anthropic:claude-sonnet-4");
    assert_eq!(main.limits.turns, Some(7));
    let settings = serde_json::to_value(&main.settings).unwrap();
    let expected = json!({
        "temperature": 0.2, "top_p": 0.9, "max_tokens": 4000, "stop": ["END"], "thinking": 2048, "cache": false,
        "extra_headers": {"x-title": "programs"}
    });
    assert_eq!(settings, expected);
    assert_eq!(project.args.as_ref().unwrap()["input"], "What is in the notes?");
    assert_eq!(project.demo, ["First this.", "Then that."]);
    let programs: Vec<_> =
        main.programs.iter().map(|p| [p.name.as_str(), &p.agent, &p.description]).collect();
    let expected =
        [["helper", "helper", ""], ["writer", "writer", "Writes well."], ["itself", "everything", ""]];
    assert_eq!(programs, expected);
    let descriptors = &main.descriptors;
    assert_eq!((descriptors.limit, descriptors.page_size, descriptors.input_limit), (6000, 3000, Some(9000)));
    assert!(descriptors.enabled && descriptors.references && !descriptors.page_user_input);
    assert_eq!(main.access, Access::Admin);
}

#[test]
fn tools_are_those_of_the_catalog_under_the_names_of_the_program() {
    let project = loaded("everything.toml");
    let outline = project.project.outline();
    let outline =
        outline.iter().find(|outline| outline.agent.as_ref().unwrap().name == "everything").unwrap();
    let mut names: Vec<&str> = outline.callables.iter().map(|callable| callable.name.as_str()).collect();
    names.sort_unstable();
    let expected =
        ["calculator", "cat", "fd_to_file", "fork", "goto", "list_dir", "read_fd", "spawn", "write_log"];
    assert_eq!(names, expected);
    let cat = outline.callables.iter().find(|callable| callable.name == "cat").unwrap();
    assert_eq!(cat.definition.input.source()["properties"]["path"]["description"], "which file");
}

#[test]
fn what_stands_before_the_instructions_is_what_the_program_says() {
    let project = loaded("everything.toml");
    let preamble = spec(&project, "everything").preamble.clone().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let text = runtime.block_on(preamble.text()).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("date: ")).collect();
    let expected = [
        "<env>",
        "working_directory: /somewhere",
        "team: The team of the program",
        "editor: vi\\nnano",
        "file_map:",
        "  system.md",
        "</env>",
        "",
        "<preload>",
        "<file path=\"notes.txt\">",
        "Milk and bread.",
        "</file>",
        "</preload>",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn what_has_no_effect_is_said() {
    let said = loaded("everything.toml").notices.to_string();
    for words in [
        "`anthropic_vertex` models are called through `anthropic`",
        "`model.project_id` has no effect",
        "`model.region` has no effect",
        "`parameters.top_k` is not sent",
        "`parameters.frequency_penalty` is not sent",
        "the fact `python_version` is unknown",
        "`commands` of `env_info` are never run",
        "`env_info.level` is not text",
        "`list_dir` is the tool `list_files`",
        "the tool `spawn` has no parameter `program_name` here",
        "`access: read` has no effect: the tool `read_file` needs write access",
        "MCP servers are not supported yet: `tools.mcp`",
        "MCP servers are not supported yet: `mcp`",
        "`demo.pause_between_prompts` has no effect",
        "`demo.display_name` has no effect",
        "files are relative to this file",
    ] {
        assert!(said.contains(words), "{words} is missing:\n{said}");
    }
}

#[test]
fn other_names_of_keys_mean_the_same() {
    let project = loaded("helper.yaml");
    let helper = spec(&project, "helper");
    assert_eq!(&*helper.instructions, "You help.");
    assert_eq!(project.args.as_ref().unwrap()["input"], "Help me.");
    let settings = serde_json::to_value(&helper.settings).unwrap();
    assert_eq!(settings, json!({"max_tokens": 1000, "effort": "low", "stop": ["END", "STOP"]}));
    assert!(!helper.descriptors.references);
    assert_eq!(project.project.agents().count(), 3);
}

#[test]
fn a_name_is_made_of_the_stem_and_unknown_keys_are_passed_over_with_what_was_meant() {
    let project = loaded("small-program.v2.yml");
    assert_eq!(project.entry, "small-program_v2");
    let said = project.notices.to_string();
    assert!(
        said.contains("`parameters.temprature` is unknown") && said.contains("did you mean `temperature`?")
    );
    assert!(said.contains("`color` is unknown") && said.contains("`model.displayname` is unknown"), "{said}");
    let settings = serde_json::to_value(&spec(&project, "small-program_v2").settings).unwrap();
    assert_eq!(settings, json!({"thinking": false}));
}

#[test]
fn plugins_are_sections_and_bring_their_tools_along() {
    let project = loaded("plugins.yaml");
    let outline = project.project.outline();
    let outline = outline.iter().find(|outline| outline.agent.as_ref().unwrap().name == "plugins").unwrap();
    let mut names: Vec<&str> = outline.callables.iter().map(|callable| callable.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["calculator", "fd_to_file", "goto", "note", "read_fd", "start"]);
    let main = outline.agent.as_ref().unwrap();
    let programs: Vec<_> =
        main.programs.iter().map(|p| [p.name.as_str(), &p.agent, &p.description]).collect();
    assert_eq!(programs, [["helper", "helper", "Helps out."]]);
    let descriptors = &main.descriptors;
    assert_eq!((descriptors.enabled, descriptors.limit, descriptors.references), (true, 6000, true));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let text = runtime.block_on(main.preamble.clone().unwrap().text()).unwrap();
    assert!(text.contains("\nshift: night\n") && text.contains("Milk and bread."));
}

#[test]
fn what_plugins_and_providers_cannot_do_here_is_said() {
    let said = loaded("plugins.yaml").notices.to_string();
    for words in [
        "`claude_code` models are called through `anthropic`",
        "`model.display_name` has no effect",
        "`preload` is ignored, because a plugin sets the same",
        "`preload`: `gone.txt` was not found, so the program runs without it",
        "`helper.toml` was not found, so `helper.yaml` is used instead",
        "`plugins.of_mine` is unknown and is ignored",
        "`tools.anthropic.web_search.user_location` is not sent",
        "`tools.openai` has no effect: the model belongs to another provider",
    ] {
        assert!(said.contains(words), "{words} is missing:\n{said}");
    }
}

#[test]
fn a_search_of_the_provider_is_one_of_its_tools() {
    let main = spec(&loaded("plugins.yaml"), "plugins");
    let tools = serde_json::to_value(&main.server_tools).unwrap();
    let expected = json!([{"tool_type": "web_search", "max_uses": 2, "allowed_domains": ["example.com"]}]);
    assert_eq!(tools, expected);
}

#[test]
fn a_plugin_that_is_turned_off_brings_no_tools() {
    let folder = TestDir::new();
    let text = "model: {name: echo, provider: test}\ntools: {builtin: null}\nplugins:\n  message_id: \
                {enable_goto: false}\n  file_descriptor: {enabled: false}\n  stderr: null\n";
    folder.write("quiet.yaml", text);
    let project = load(folder.path().join("quiet.yaml"), &Standard).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(project.notices.0.len(), 0, "{}", project.notices);
    assert!(project.project.outline().iter().all(|outline| outline.callables.is_empty()));
}

#[test]
fn older_spellings_of_names_and_settings_hold() {
    let folder = TestDir::new();
    let text = "[model]\nname = \"claude-haiku@20240307\"\nprovider = \"vertex\"\n\
                [parameters]\nthinking_budget = 2000\n\
                [tools]\nenabled = [\"read_file\", \"list_dir\", {name = \"calculator\", alias = \"sum\"}]\n\
                [tools.aliases]\ncat = \"read_file\"\nls = \"list_dir\"\ncalc = \"calculator\"\n\
                clock = \"time__now\"\n[mcp.tools]\ntime = [\"now\"]\n";
    folder.write("older.toml", text);
    let project = load(folder.path().join("older.toml"), &Standard).unwrap_or_else(|error| panic!("{error}"));
    let main = spec(&project, "older");
    assert_eq!(main.model.as_ref().unwrap().name(), "anthropic:claude-haiku-20240307");
    assert_eq!(serde_json::to_value(&main.settings).unwrap(), json!({"thinking": 2000}));
    let outline = project.project.outline();
    let callables = outline.iter().flat_map(|outline| &outline.callables);
    let mut names: Vec<&str> = callables.map(|callable| callable.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["cat", "ls", "sum"]);
    let said = project.notices.to_string();
    for words in ["`tools.aliases.calc` is ignored", "`tools.aliases.clock` is ignored", "`mcp.tools`"] {
        assert!(said.contains(words), "{words} is missing:\n{said}");
    }
}

#[test]
fn a_program_does_without_files_and_links_that_its_project_does_not_reach() {
    let folder = TestDir::new();
    folder.write("README.md", "Read me.");
    folder.write("other.toml", "[model]\nname = \"echo\"\nprovider = \"test\"\n");
    let program = "[model]\nname = \"echo\"\nprovider = \"test\"\n[preload]\nfiles = [\"../README.md\"]\n\
                   [linked_programs]\nother = \"../other.toml\"\n";
    folder.write("examples/near.toml", program);
    let path = folder.path().join("examples/near.toml");
    let project = load(&path, &Standard).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(project.root, folder.path().join("examples"));
    let near = spec(&project, "near");
    assert!(near.programs.is_empty() && near.preamble.is_none());
    let said = project.notices.to_string();
    assert!(
        said.contains("`../README.md` lies outside the project, so the program runs without it"),
        "{said}"
    );
    assert!(said.contains("`../other.toml` lies outside the project, so it is not linked"), "{said}");
}

#[test]
fn the_project_of_a_program_that_names_files_above_it_is_the_repository() {
    let program = "[model]\nname = \"echo\"\nprovider = \"test\"\n[prompt]\n\
                   system_prompt_file = \"../words/system.md\"\n[preload]\nfiles = [\"../README.md\"]\n\
                   [linked_programs]\nother = \"../other.toml\"\n";
    let folder = TestDir::new();
    folder.write("README.md", "Read me.");
    folder.write("words/system.md", "You reach far.");
    folder.write("other.toml", "[model]\nname = \"echo\"\nprovider = \"test\"\n");
    folder.write("examples/far.toml", program);
    let path = folder.path().join("examples/far.toml");
    let said = load(&path, &Standard).err().unwrap().to_string();
    assert!(said.contains("`../words/system.md` lies outside the project"), "{said}");

    folder.write(".git/HEAD", "ref: refs/heads/main\n");
    let project = load(&path, &Standard).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(project.root, folder.path());
    assert_eq!(&*spec(&project, "far").instructions, "You reach far.");
    assert_eq!(spec(&project, "far").programs[0].agent, "other");
    assert!(project.notices.to_string().contains("names files above its directory"), "{}", project.notices);

    let other = load(folder.path().join("other.toml"), &Standard).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((other.root.as_path(), other.notices.0.len()), (folder.path(), 0));
    folder.write("examples/.git/HEAD", "ref: refs/heads/main\n");
    assert!(load(&path, &Standard).is_err(), "a repository of its own ends there");
}

#[test]
fn wrong_values_are_refused_with_their_line() {
    let model = "[model]\nname = \"m\"\nprovider = \"test\"\n";
    for (id, text, words) in [
        ("no-name", "[model]\nprovider = \"test\"\n[prompt]\n", "`model.name` is missing"),
        ("no-provider", "[model]\nname = \"m\"\n", "`model.provider` is missing"),
        ("provider", "[model]\nname = \"m\"\nprovider = \"opneai\"\n", "opneai"),
        ("turns", "[model]\nname = \"m\"\nprovider = \"test\"\nmax_iterations = -3\n", "turns"),
        ("prompt", "prompt = 3\n[model]\nname = \"m\"\nprovider = \"test\"\n", "`prompt` must be a table"),
        ("system", "[prompt]\nsystem = 3\n", "`system` must be a text"),
        ("file", "[prompt]\nsystem_prompt_file = \"gone.md\"\n", "`gone.md` was not found"),
        ("secret", "[prompt]\nsystem_prompt_file = \".netrc\"\n", "`.netrc` is a secret file (stored login)"),
        ("outside", "[prompt]\nsystem_prompt_file = \"../x.md\"\n", "lies outside the project"),
        ("temperature", "[parameters]\ntemperature = \"hot\"\n", "temperature"),
        ("tokens", "[parameters]\nmax_tokens = 1\nmax_completion_tokens = 1\n", "written twice"),
        ("stops", "[parameters]\nstop = \"a\"\nstop_sequences = [\"b\"]\n", "written twice"),
        ("effort", "[parameters]\nreasoning_effort = \"huge\"\n", "effort"),
        ("thinking", "[parameters]\nthinking = {type = \"sometimes\"}\n", "thinking"),
        ("headers", "[parameters]\nextra_headers = 3\n", "extra_headers"),
        ("key", "[parameters]\nextra_headers = {\"x-api-key\" = \"1\"}\n", "keys come from the environment"),
        ("plugin", "[plugins]\nspawn = 3\n", "`plugins.spawn` must be a table"),
        ("its-tools", "[plugins.stderr]\ntools = 3\n", "`plugins.stderr.tools` must be a list"),
        ("its-tool", "[plugins.stderr]\ntools = [\"goto\"]\n", "the plugin `stderr` has no tool `goto`"),
        ("alias", "[tools]\naliases = {x = 3}\n", "`tools.aliases.x` must be the name of a tool"),
        ("older-mcp", "[mcp.tools]\nx = 3\n", "`mcp.tools.x` must be `all` or a list"),
        (
            "uses",
            "[model]\nname = \"m\"\nprovider = \"openai\"\n[tools.openai.web_search]\nenabled = true\nmax_uses = -1\n",
            "max_uses",
        ),
        ("relative", "[preload]\nfiles = []\nrelative_to = \"moon\"\n", "`program` or `cwd`"),
        ("secret", "[env_info]\nenv_vars = {x = \"API_KEY\"}\n", "looks like a key"),
        ("tool", "[tools]\nbuiltin = [\"calculater\"]\n", "did you mean `calculator`?"),
        ("tools", "[tools]\nbuiltin = \"calculator\"\n", "must be a list"),
        ("both", "[tools]\nbuiltin = []\nenabled = []\n", "written twice"),
        ("mcp", "[tools.mcp]\nx = 3\n", "`tools.mcp.x` must be `all` or a list"),
        ("servers", "[mcp]\nservers = {x = 3}\n", "`mcp.servers` must be a table"),
        ("link", "[linked_programs]\nx = 3\n", "must be a path, or a table with `path`"),
        ("link-gone", "[linked_programs]\nx = \"gone.toml\"\n", "`gone.toml` was not found"),
        ("fd", "[file_descriptor]\ndefault_page_size = 5\n", "minimum of 100"),
        ("demo", "[demo]\nprompts = [3]\n", "must be a list of texts"),
    ] {
        let folder = TestDir::new();
        let has_model = text.contains("[model]");
        let text = if has_model { text.to_owned() } else { format!("{model}{text}") };
        folder.write("program.toml", text);
        folder.write(".netrc", "machine example.com login ada");
        let result = load(folder.path().join("program.toml"), &Standard);
        let said = result.err().map(|said| said.to_string()).unwrap_or_default();
        assert!(said.contains(words) && said.contains("program.toml, line "), "{id}: {said}");
    }
}

#[test]
fn a_file_with_an_entry_is_a_manifest_and_one_with_a_model_is_a_program() {
    let folder = TestDir::new();
    folder.write("project.yaml", "version: 1\nentry: {agent: helper}\nagent_files: [helper.toml]\n");
    folder.write("helper.toml", "[model]\nname = \"echo\"\nprovider = \"test\"\n[prompt]\nuser = \"hi\"\n");
    for name in ["project.yaml", "helper.toml", ""] {
        let project = load(folder.path().join(name), &Standard).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((project.entry.as_str(), &project.args.unwrap()["input"]), ("helper", &json!("hi")));
    }
    let changes = ["agents.helper.description=Helps.".to_owned()];
    let project = load_changed(folder.path().join("helper.toml"), &changes, &Standard).ok().unwrap();
    assert_eq!(spec(&project, "helper").description, "Helps.");
}
