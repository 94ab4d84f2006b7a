//! The powers of a project: for each key that gives one, a project with only that key.

use std::path::Path;

use llm_do::approval::{Approval, ApprovalMode};
use llm_do::project::{LoadError, LoadedProject, StandardCatalog, TrustPolicy};
use llm_do_project::{load_changed, load_restricted};
use llm_do_testing::TestDir;
use llm_do_trust::{Power, PowerClass, Powers};

struct Folder(TestDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        Self(TestDir::with_files(files))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn load(&self, changes: &[&str]) -> LoadedProject {
        let changes: Vec<String> = changes.iter().map(|change| (*change).to_owned()).collect();
        let loaded = load_changed(self.path(), &changes, &StandardCatalog::new(self.path()));
        loaded.map_err(|problems| problems.to_string()).unwrap()
    }

    /// Loads the project without its powers. It fails if one of them would still take effect.
    fn load_restricted(&self, directory: &Path) -> LoadedProject {
        let loaded = load_restricted(self.path(), &[], &StandardCatalog::new(directory));
        loaded.map_err(|problems| problems.to_string()).unwrap()
    }
}

const MANIFEST: &str = "version: 1\nmodel: test\nagent_files: [main.agent]\nentry: {agent: main}\n";

/// The powers of a project with lines of a manifest and of the header of its one agent.
fn powers(manifest: &str, header: &str) -> Powers {
    project(manifest, header).load(&[]).powers.clone()
}

fn project(manifest: &str, header: &str) -> Folder {
    let agent = format!("---\nname: main\n{header}---\nHelp.\n");
    Folder::new(&[("project.yaml", &format!("{MANIFEST}{manifest}")), ("main.agent", &agent)])
}

fn only(powers: &Powers) -> (Power, String) {
    assert_eq!(powers.len(), 1, "{powers:?}");
    let declared = powers.iter().next().unwrap();
    assert_eq!(declared.locations.len(), 1, "{declared:?}");
    let location = &declared.locations[0];
    let file = location.file.file_name().unwrap().to_string_lossy().into_owned();
    (declared.power.clone(), format!("{file}:{}", location.line.unwrap()))
}

fn text(text: &str) -> String {
    text.to_owned()
}

#[test]
fn keys_of_the_manifest_that_give_powers() {
    let provider = "providers:\n  acme: {api: openai-chat, base_url: 'https://LLM.example.com/v1'}\n";
    let origin = text("https://llm.example.com");
    for (manifest, power, place) in [
        ("runtime:\n  approval_mode: approve_all\n", Power::ApproveAll {}, "project.yaml:6"),
        (provider, Power::Provider { origin: origin.clone() }, "project.yaml:6"),
        (
            "secret_files:\n  allow:\n    - tests/fixtures/**\n",
            Power::SecretFiles { glob: text("tests/fixtures/**") },
            "project.yaml:7",
        ),
        (
            "mcp_servers:\n  issues: {command: npx, args: [-y, server], cwd: sub}\n",
            Power::McpCommand { argv: vec![text("npx"), text("-y"), text("server")], cwd: Some(text("sub")) },
            "project.yaml:6",
        ),
        (
            "mcp_servers:\n  issues: {url: 'https://mcp.example.net/x'}\n",
            Power::McpServer { origin: text("https://mcp.example.net") },
            "project.yaml:6",
        ),
    ] {
        let folder = project(manifest, "");
        assert_eq!(only(&folder.load(&[]).powers), (power, text(place)), "{manifest}");
        assert!(folder.load_restricted(folder.path()).powers.is_empty(), "{manifest}");
    }
    let key = "providers:\n  acme: {api: openai-chat, base_url: 'https://llm.example.com/v1', api_key_env: GITHUB_TOKEN}\n";
    let found = powers(key, "").to_vec();
    assert!(found.contains(&Power::KeyTo { name: text("GITHUB_TOKEN"), origin }), "{found:?}");
    let key =
        "mcp_servers:\n  issues: {url: 'https://mcp.example.net/x', headers: {X-Team: 'a ${TEAM_ID}'}}\n";
    let found = powers(key, "").to_vec();
    let origin = text("https://mcp.example.net");
    assert!(found.contains(&Power::KeyTo { name: text("TEAM_ID"), origin }), "{found:?}");
}

#[test]
fn keys_of_an_agent_that_give_powers() {
    for (header, power, place) in [
        (
            "env_info:\n  env_vars: {db: DATABASE_URL}\n",
            Power::Variable { name: text("DATABASE_URL") },
            "main.agent:4",
        ),
        (
            "model_settings:\n  extra_body: {mcp_servers: [{url: 'http://x'}]}\n",
            Power::RequestField { name: text("the field `mcp_servers`") },
            "main.agent:4",
        ),
        (
            "model_settings:\n  extra_headers: {Anthropic-Beta: x}\n",
            Power::RequestField { name: text("the header `anthropic-beta`") },
            "main.agent:4",
        ),
        (
            "toolsets: [filesystem_project]\napproval: {write_file: pre_approved}\n",
            Power::PreApproved { agent: text("main"), tool: text("filesystem_project.write_file") },
            "main.agent:4",
        ),
        (
            "toolsets:\n  - shell_file_ops: {rules: [{program: sh, approval: pre_approved, allow_flags: ['*']}]}\n",
            Power::Command { program: text("sh"), subcommand: None, flags: vec![text("*")] },
            "main.agent:4",
        ),
        (
            "toolsets:\n  - filesystem_project: {root: ., allow_run_later: [docs/AGENTS.md]}\n",
            Power::RunLater { path: text("docs/AGENTS.md") },
            "main.agent:4",
        ),
        (
            "toolsets:\n  - shell_file_ops: {sandbox: off}\n",
            Power::Sandbox { what: text("commands outside the sandbox") },
            "main.agent:4",
        ),
        (
            "toolsets:\n  - shell_file_ops: {network: true}\n",
            Power::Sandbox { what: text("commands that use the network") },
            "main.agent:4",
        ),
        (
            "toolsets:\n  - shell_file_ops: {environment: {CI: 'yes'}}\n",
            Power::ShellVariable { name: text("CI"), value: text("yes") },
            "main.agent:4",
        ),
    ] {
        let folder = project("", header);
        assert_eq!(only(&folder.load(&[]).powers), (power, text(place)), "{header}");
        assert!(folder.load_restricted(folder.path()).powers.is_empty(), "{header}");
    }
}

#[test]
fn a_glob_names_every_tool_that_it_loosens() {
    let header = "toolsets: [filesystem_project, pocket_calculator]\napproval: {\"*\": pre_approved}\n";
    let found = powers("", header);
    let tools: Vec<String> = found.iter().map(|declared| declared.power.to_string()).collect();
    assert_eq!(found.len(), 2, "{tools:?}");
    assert!(tools.iter().all(|tool| tool.contains("write_file") || tool.contains("edit_file")), "{tools:?}");
    let older = "toolsets: {filesystem_project: {_approval_config: {write_file: {pre_approved: true}}}}\n";
    let (power, _) = only(&powers("", older));
    assert_eq!(
        power,
        Power::PreApproved { agent: text("main"), tool: text("filesystem_project.write_file") }
    );
    let alias = "toolsets: [filesystem_project]\ntools: [{name: write_file, alias: note}]\n\
                 approval: {note: pre_approved}\n";
    let (power, _) = only(&powers("", alias));
    assert_eq!(
        power,
        Power::PreApproved { agent: text("main"), tool: text("filesystem_project.write_file") }
    );
    let blocked = "toolsets: [filesystem_project]\napproval: {\"*\": pre_approved, \"*_file\": ask}\n";
    assert!(powers("", blocked).is_empty());
}

#[test]
fn what_narrows_or_reads_is_no_power() {
    for (manifest, header) in [
        ("", ""),
        ("runtime: {approval_mode: reject_all, max_depth: 2, limits: {cost: 1.0}}\n", ""),
        ("", "toolsets: [filesystem_project, shell_readonly]\n"),
        ("", "toolsets: [filesystem_project_ro]\napproval: {\"*\": pre_approved}\n"),
        ("", "toolsets: [shell_file_ops]\napproval: {\"*\": blocked}\n"),
        ("", "model_settings: {temperature: 0.2, extra_body: {top_k: 4, min_p: 0.1}}\n"),
        ("", "env_info: {variables: all, env_vars: {zone: TZ, tongue: LANG}}\n"),
        ("", "server_side_tools: [{tool_type: web_search}]\n"),
        ("toolsets: {docs: {toolset: filesystem_project_ro, settings: {root: .}}}\n", "toolsets: [docs]\n"),
    ] {
        assert_eq!(powers(manifest, header), Powers::default(), "{manifest}{header}");
    }
}

#[test]
fn a_search_of_the_provider_is_a_power_beside_tools_that_read() {
    let header = "server_side_tools: [{tool_type: web_fetch}]\ntoolsets: [filesystem_project_ro]\n";
    assert_eq!(only(&powers("", header)).0, Power::Outward { tool: text("web_fetch") });
}

#[test]
fn a_tool_of_the_provider_is_a_power_beside_files_that_are_told_without_a_tool() {
    for told in ["preload: [project.yaml]\n", "env_info: [file_map]\n", "toolsets: [filesystem_project_ro]\n"]
    {
        for tool in ["web_fetch", "web_search", "code_execution"] {
            let header = format!("server_side_tools: [{{tool_type: {tool}}}]\n{told}");
            assert_eq!(only(&powers("", &header)).0, Power::Outward { tool: text(tool) }, "{told}");
        }
    }
    assert!(powers("", "server_side_tools: [{tool_type: web_fetch}]\n").is_empty());
}

#[test]
fn a_map_of_all_files_of_the_temporary_directory_is_a_wider_root() {
    let temporary = std::env::temp_dir().canonicalize().unwrap();
    let agent = temporary.join(format!("map-{}.agent", std::process::id()));
    std::fs::write(&agent, "---\nname: main\nenv_info: [file_map]\n---\nHelp.\n").unwrap();
    let loaded = load_changed(&agent, &[], &StandardCatalog::new(&temporary));
    std::fs::remove_file(&agent).unwrap();
    let loaded = loaded.map_err(|problems| problems.to_string()).unwrap();
    let which = format!("all files below {}", temporary.display());
    assert_eq!(only(&loaded.powers).0, Power::Root { which });
}

#[test]
fn values_of_the_command_line_are_the_users_own() {
    let folder = project("", "toolsets: [filesystem_project]\n");
    let loaded =
        folder.load(&["runtime.approval_mode=approve_all", "agents.main.approval.write_file=pre_approved"]);
    assert_eq!(loaded.powers, Powers::default());
    assert_eq!(folder.load(&[r#"secret_files.allow=["a/**"]"#]).powers, Powers::default());
    let folder = project("runtime: {approval_mode: approve_all}\n", "");
    assert_eq!(folder.load(&["runtime.approval_mode=prompt"]).powers, Powers::default());
}

#[test]
fn a_working_directory_outside_the_project_is_a_wider_root() {
    let folder = project("", "toolsets: [filesystem_cwd_ro]\n");
    let elsewhere = tempfile::tempdir().unwrap();
    let loaded = load_changed(folder.path(), &[], &StandardCatalog::new(elsewhere.path()));
    let loaded = loaded.map_err(|problems| problems.to_string()).unwrap();
    let (power, _) = only(&loaded.powers);
    assert_eq!(power.class(), PowerClass::Reaches);
    assert!(folder.load(&[]).powers.is_empty());
}

#[test]
fn a_provider_key_in_dotenv_is_a_power() {
    let folder = project("", "");
    std::fs::write(folder.path().join(".env"), "TEAM=x\nOPENAI_API_KEY=sk-1\n").unwrap();
    let (power, place) = only(&folder.load(&[]).powers);
    assert_eq!((power, place), (Power::DotenvKey { name: text("OPENAI_API_KEY") }, text(".env:2")));
}

#[test]
fn code_is_one_power_with_its_interpreter() {
    let manifest = "python_files: [a.py, b.py]\npython_env: [OPENAI_API_KEY]\n";
    let folder = project(manifest, "tools: [count]\napproval: {count: pre_approved}\n");
    std::fs::write(
        folder.path().join("a.py"),
        "def count(text: str) -> int:\n    'Counts.'\n    return 1\nTOOLS = [count]\n",
    )
    .unwrap();
    std::fs::write(folder.path().join("b.py"), "").unwrap();
    let found = folder.load(&[]).powers.clone();
    let kinds: Vec<PowerClass> = found.iter().map(|declared| declared.class).collect();
    assert_eq!(kinds, [PowerClass::Runs, PowerClass::Sends, PowerClass::Allows], "{found:?}");
}

#[test]
fn agents_that_the_entry_does_not_reach_count_too() {
    let folder = project("", "entry: true\n");
    let other = "---\nname: other\ngenerated: true\ntoolsets: [filesystem_project]\napproval: {write_file: pre_approved}\n---\nHi.";
    std::fs::create_dir_all(folder.path().join("agents/generated")).unwrap();
    std::fs::write(folder.path().join("agents/generated/other.agent"), other).unwrap();
    let (power, _) = only(&folder.load(&[]).powers);
    assert_eq!(
        power,
        Power::PreApproved { agent: text("other"), tool: text("filesystem_project.write_file") }
    );
}

#[test]
fn a_restricted_project_asks_and_sends_as_if_it_declared_nothing() {
    let manifest = "runtime: {approval_mode: approve_all}\nproviders:\n  acme: {api: openai-chat, base_url: 'https://x.example'}\n\
                    toolsets:\n  commands: {toolset: shell_file_ops, settings: {sandbox: off, timeout: 5}}\n";
    let header = "toolsets: [filesystem_project, commands]\nserver_side_tools: [{tool_type: web_fetch}]\n\
                  approval: {\"*\": pre_approved, read_file: ask}\n\
                  model_settings: {extra_body: {top_k: 3, container: x}, extra_headers: {X-A: b}}\n";
    let folder = project(manifest, header);
    assert!(folder.load(&[]).powers.len() > 4);
    let loaded = folder.load_restricted(folder.path());
    assert_eq!(loaded.approval_mode(), ApprovalMode::Prompt);
    assert!(loaded.providers.is_empty());
    let outlines = loaded.project.outline();
    let main = outlines.iter().find(|outline| outline.agent.is_some()).unwrap();
    let spec = main.agent.as_ref().unwrap();
    let settings = spec.settings.clone();
    assert_eq!(settings.extra_body.keys().collect::<Vec<_>>(), ["top_k"]);
    assert!(settings.extra_headers.is_empty() && spec.server_tools.is_empty());
    let level = |name: &str| {
        let callable = main.callables.iter().find(|callable| callable.name == name).unwrap();
        loaded.approval_of(callable)
    };
    assert_eq!((level("write_file"), level("read_file")), (Approval::Ask, Approval::Ask));
}

#[test]
fn a_restricted_project_has_no_toolset_that_reaches_too_far() {
    let folder = project("", "toolsets: [filesystem_cwd_ro]\n");
    let elsewhere = tempfile::tempdir().unwrap();
    let loaded = folder.load_restricted(elsewhere.path());
    assert!(loaded.project.outline().iter().all(|outline| outline.callables.is_empty()));
}

#[test]
fn a_program_loads_a_project_with_powers_only_under_a_policy_that_allows_them() {
    let code = "import pathlib\npathlib.Path(__file__).with_name('MARK').write_text('x')\nTOOLS = []\n";
    let folder = project("python_files: [tools.py]\n", "");
    std::fs::write(folder.path().join("tools.py"), code).unwrap();
    let was_run = || folder.path().join("MARK").exists();
    let load = |policy: TrustPolicy| llm_do::loader(folder.path()).trust(policy).load();
    let Err(LoadError::Untrusted(powers)) = llm_do::load(folder.path()) else { panic!("it was loaded") };
    assert_eq!(only(&powers).0.class(), PowerClass::Runs);
    let text = LoadError::Untrusted(powers.clone()).to_string();
    assert!(text.contains("RUNS") && text.contains("TrustPolicy::Only"), "{text}");
    let others = folder.load(&["runtime.approval_mode=approve_all"]).powers;
    std::fs::remove_file(folder.path().join("MARK")).unwrap();
    assert!(load(TrustPolicy::Only(Powers::default())).is_err());
    assert!(load(TrustPolicy::Without).unwrap().powers.is_empty());
    assert!(!was_run());
    load(TrustPolicy::Only(others)).unwrap();
    assert!(was_run());
}

/// Lines of a manifest, of which a random project has some.
const MANIFEST_LINES: &[&str] = &[
    "secret_files: {allow: ['tests/**']}\n",
    "runtime: {approval_mode: approve_all}\n",
    "providers:\n  acme: {api: openai-chat, base_url: 'https://llm.example.com/v1', api_key_env: GITHUB_TOKEN}\n",
    "mcp_servers:\n  issues: {command: npx, args: [server]}\n  remote: {url: 'https://mcp.example.net/x'}\n",
    "toolsets: {commands: {toolset: shell_file_ops, settings: {network: true, environment: {CI: 'yes'}}}}\n",
    "python_env: [OPENAI_API_KEY]\n",
];

/// Lines of a header, of which a random project has some.
const HEADER_LINES: &[&str] = &[
    "env_info: {env_vars: {db: DATABASE_URL}}\n",
    "model_settings: {extra_body: {container: x, top_k: 3}, extra_headers: {X-A: b}}\n",
    "approval: {\"*\": pre_approved, read_file: ask}\n",
    "server_side_tools: [{tool_type: web_fetch}]\n",
    "tools: [{name: write_file, alias: note}, count]\n",
    "access: read\n",
];

/// The toolsets of a random project.
const TOOLSETS: &[&str] = &[
    "",
    "toolsets: [filesystem_project]\n",
    "toolsets: [filesystem_project_ro, shell_readonly]\n",
    "toolsets:\n  - filesystem_project\n  - shell_file_ops: {sandbox: off, rules: [{program: sh, approval: pre_approved}]}\n",
    "toolsets: {filesystem_project: {_approval_config: {write_file: {pre_approved: true}}}}\n",
];

#[test]
fn the_powers_of_random_projects_are_known_before_their_code_runs_and_can_be_left_out() {
    let count =
        std::env::var("LLM_DO_POWER_PROJECTS").ok().and_then(|count| count.parse().ok()).unwrap_or(16);
    let some = |lines: &[&str], bits: usize| -> String {
        lines.iter().enumerate().filter(|(index, _)| bits >> index & 1 == 1).map(|(_, line)| *line).collect()
    };
    let mut with_powers = 0;
    for seed in 0..count {
        // Steps that share no factor with the numbers of choices reach all of them.
        let (manifest, header) = (some(MANIFEST_LINES, seed * 7 % 64), some(HEADER_LINES, seed * 11 % 64));
        let header = format!("{}{header}", TOOLSETS[seed * 3 % TOOLSETS.len()]);
        let folder = project(&format!("{manifest}python_files: [tools.py]\n"), &header);
        let code = "def count(text: str) -> int:\n    'Counts.'\n    return 1\nTOOLS = [count]\n";
        std::fs::write(folder.path().join("tools.py"), code).unwrap();
        let catalog = StandardCatalog::new(folder.path());
        let before = llm_do_project::load_static(folder.path(), &[], &catalog)
            .map_err(|problems| problems.to_string());
        let after = load_changed(folder.path(), &[], &catalog).map_err(|problems| problems.to_string());
        let (Ok(before), Ok(after)) = (before, after) else { continue };
        assert_eq!(before.powers, after.powers, "seed {seed}: {manifest}{header}");
        assert!(folder.load_restricted(folder.path()).powers.is_empty(), "seed {seed}: {manifest}{header}");
        with_powers += usize::from(after.powers.len() > 1);
    }
    assert!(with_powers > count / 2, "only {with_powers} of {count} projects were valid");
}
