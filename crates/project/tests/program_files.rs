//! Program files of LLMProc, read as agents: every documented key, right and wrong.

#![expect(clippy::unwrap_used, reason = "a broken set-up must stop the test")]

mod parts;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use llm_do_core::{Access, AgentSpec};
use llm_do_project::{LoadedProject, Severity, load, load_changed};
use serde_json::json;

use parts::Folder;
use parts::standard::Standard;

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
    assert_eq!(count, 3);
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
    assert_eq!((descriptors.limit, descriptors.page_size, descriptors.input_limit), (6000, 3000, 9000));
    assert!(descriptors.enabled && descriptors.references && !descriptors.page_user_input);
    assert_eq!(main.access, Access::Admin);
}

#[test]
fn tools_are_those_of_the_catalogue_under_the_names_of_the_program() {
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
        "`anthropic_vertex` is reached as `anthropic`",
        "`model.project_id` has no effect",
        "`model.region` has no effect",
        "`parameters.top_k` is not sent",
        "`parameters.frequency_penalty` is not sent",
        "the fact `python_version` is unknown",
        "`commands` of `env_info` are never run",
        "`env_info.level` is no text",
        "`list_dir` is the tool `list_files`",
        "the tool `spawn` has no parameter `program_name` here",
        "`access: read` has no effect: the tool `read_file` needs write access",
        "MCP servers are not available yet: `tools.mcp`",
        "MCP servers are not available yet: `mcp`",
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
    assert!(
        said.contains("`colour` is unknown") && said.contains("`model.displayname` is unknown"),
        "{said}"
    );
    let settings = serde_json::to_value(&spec(&project, "small-program_v2").settings).unwrap();
    assert_eq!(settings, json!({"thinking": false}));
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
        ("outside", "[prompt]\nsystem_prompt_file = \"../x.md\"\n", "lies outside the project"),
        ("temperature", "[parameters]\ntemperature = \"hot\"\n", "temperature"),
        ("tokens", "[parameters]\nmax_tokens = 1\nmax_completion_tokens = 1\n", "written twice"),
        ("stops", "[parameters]\nstop = \"a\"\nstop_sequences = [\"b\"]\n", "written twice"),
        ("effort", "[parameters]\nreasoning_effort = \"huge\"\n", "effort"),
        ("thinking", "[parameters]\nthinking = {type = \"sometimes\"}\n", "thinking"),
        ("headers", "[parameters]\nextra_headers = 3\n", "extra_headers"),
        ("key", "[parameters]\nextra_headers = {\"x-api-key\" = \"1\"}\n", "keys come from the environment"),
        ("preload", "[preload]\nfiles = [\"gone.txt\"]\n", "`gone.txt` was not found"),
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
        let folder = Folder::new(&format!("program-{id}"));
        let has_model = text.contains("[model]");
        let text = if has_model { text.to_owned() } else { format!("{model}{text}") };
        folder.write("program.toml", text);
        let result = load(folder.path().join("program.toml"), &Standard);
        let said = result.err().map(|said| said.to_string()).unwrap_or_default();
        assert!(said.contains(words) && said.contains("program.toml, line "), "{id}: {said}");
    }
}

#[test]
fn a_file_with_an_entry_is_a_manifest_and_one_with_a_model_is_a_program() {
    let folder = Folder::new("kinds");
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
