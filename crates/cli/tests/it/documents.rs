//! README.md and the guide, followed from top to bottom: every command runs, every shown file and output is true.
//!
//! `documents/page.rs` says how a block is marked. `cargo test -p llm-do-cli --test it documents` runs all pages.

mod compare;
mod fragments;
mod page;
mod reader;
mod tables;

use std::collections::BTreeSet;
use std::path::PathBuf;

use llm_do_testing::needs;
use page::{Block, Step, blocks};
use reader::{Reader, Tally};

use crate::examples::copied;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Follows a page, and prints what was not run.
fn follow(name: &str) {
    let tally = Reader::new(name).follow(&page(name));
    eprintln!("{name}: {}", tally.describe());
}

macro_rules! pages {
    ({$($test:ident: $page:literal,)+} python {$($python_test:ident: $python_page:literal,)+}) => {
        /// The pages that are followed.
        const PAGES: &[&str] = &[$($page,)+ $($python_page,)+];

        $(#[test]
        fn $test() {
            follow($page);
        })+

        $(#[needs(python)]
        #[test]
        fn $python_test() {
            follow($python_page);
        })+
    };
}

pages! {
    {
    readme: "README.md",
        contributing: "CONTRIBUTING.md",
    approvals: "docs/guide/approvals.md",
    attachments: "docs/guide/attachments.md",
    budgets: "docs/guide/budgets.md",
    configuration: "docs/guide/configuration.md",
    dynamic_agents: "docs/guide/dynamic-agents.md",
    embedding: "docs/guide/embedding.md",
    file_descriptors: "docs/guide/file-descriptors.md",
    files: "docs/guide/files.md",
    glossary: "docs/guide/glossary.md",
    install: "docs/guide/install.md",
    script_files: "docs/reference/script-files.md",
    toolsets: "docs/guide/toolsets.md",
    editors: "docs/guide/editors.md",
    first_project: "docs/guide/first-project.md",
    index: "docs/guide/README.md",
    local_models: "docs/guide/local-models.md",
    models: "docs/guide/models.md",
    nested_agents: "docs/guide/nested-agents.md",
    processes: "docs/guide/processes.md",
    programs: "docs/guide/programs.md",
    chats: "docs/guide/chats.md",
    recording: "docs/guide/recording.md",
    resuming: "docs/guide/resuming.md",
    sandbox: "docs/guide/sandbox.md",
    security: "docs/guide/security.md",
    shell: "docs/guide/shell.md",
    terminal: "docs/guide/terminal.md",
    testing: "docs/guide/testing.md",
    tools: "docs/guide/tools.md",
    typed_input: "docs/guide/typed-input.md",
    } python {
    ci: "docs/guide/ci.md",
    cookbook: "docs/guide/cookbook.md",
    troubleshooting: "docs/guide/troubleshooting.md",
    coming_from_python: "docs/guide/coming-from-python.md",
    python_pages: "docs/guide/python.md",
    python_context: "docs/guide/python-context.md",
    examples_index: "examples/README.md",
    }
}

#[test]
fn every_page_of_the_guide_is_followed() {
    let files = std::fs::read_dir(root().join("docs/guide")).unwrap();
    let names = files.map(|entry| format!("docs/guide/{}", entry.unwrap().file_name().to_str().unwrap()));
    let pages: BTreeSet<String> = names.filter(|name| name.ends_with(".md")).collect();
    let followed: BTreeSet<String> =
        PAGES.iter().filter(|name| name.starts_with("docs/guide/")).map(|name| (*name).to_owned()).collect();
    assert_eq!(pages, followed, "add the page to `pages!`");
}

#[test]
fn the_index_lists_every_page_of_the_guide() {
    let index = page("docs/guide/README.md");
    let pages = PAGES.iter().filter_map(|name| name.strip_prefix("docs/guide/"));
    for name in pages.filter(|name| *name != "README.md") {
        assert!(index.contains(&format!("]({name})")), "docs/guide/README.md does not list {name}");
    }
}

/// The folders of examples, by name.
fn examples() -> Vec<String> {
    let entries = std::fs::read_dir(root().join("examples")).unwrap().map(Result::unwrap);
    let folders = entries.filter(|entry| entry.file_type().unwrap().is_dir());
    let mut names: Vec<String> = folders.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[needs(python)]
#[test]
fn every_example_has_a_readme_that_is_followed_and_a_row_in_the_index() {
    let index = page("examples/README.md");
    for name in examples() {
        assert!(index.contains(&format!("| [{name}]({name}) |")), "examples/README.md does not list {name}");
        follow(&format!("examples/{name}/README.md"));
    }
}

#[needs(python)]
#[test]
fn every_script_of_an_example_answers_any_prompt() {
    let examples = examples();
    let scripted =
        examples.iter().filter(|name| root().join("examples").join(name).join("offline.yaml").exists());
    let mut tried = 0;
    for name in scripted {
        let sandbox = copied(name);
        let arguments = ["run", ".", "Something else", "--model", "script:offline.yaml", "--approve", "all"];
        let ran = sandbox.run(&arguments);
        // A typed input refuses a prompt, and code may look for a file of that name; only a script without a reply is 3.
        assert_ne!(ran.code, Some(3), "{name}: {ran:#?}");
        tried += 1;
    }
    assert!(tried > 20, "{tried}");
}

/// All Markdown files below a directory of the repository.
fn documents(folder: &str, names: &mut Vec<String>) {
    for entry in std::fs::read_dir(root().join(folder)).unwrap().map(Result::unwrap) {
        let name = format!("{folder}/{}", entry.file_name().into_string().unwrap());
        if entry.file_type().unwrap().is_dir() {
            documents(&name, names);
        } else if name.ends_with(".md") {
            names.push(name);
        }
    }
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut names: Vec<String> =
        ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"].map(str::to_owned).into();
    documents("docs", &mut names);
    documents("examples", &mut names);
    assert!(names.len() > 70, "{names:?}");
    for name in names {
        let text = page(&name);
        let links = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link);
        links.filter(|link| !link.contains("://")).for_each(|link| follow_link(&name, link));
    }
}

fn follow_link(name: &str, link: &str) {
    let page = root().join(name);
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() { page } else { page.parent().unwrap().join(path) };
    assert!(target.exists(), "{name}: `{link}` leads nowhere");
    let has_anchor = anchor.is_empty() || has_heading(&std::fs::read_to_string(target).unwrap(), anchor);
    assert!(has_anchor, "{name}: there is no heading for `{link}`");
}

/// Headings become anchors as GitHub makes them.
fn has_heading(text: &str, anchor: &str) -> bool {
    let slug = |title: &str| -> String {
        let kept = title.to_lowercase().replace(' ', "-");
        kept.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
    };
    text.lines()
        .filter_map(|line| line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#')))
        .any(|title| slug(title) == anchor)
}

/// How many blocks of commands may stay unrun. A block that can be run belongs to those that are.
const MAX_NOT_RUN: usize = 24;

#[test]
fn few_blocks_are_not_run() {
    let mut sum = Tally::default();
    for name in PAGES {
        for block in blocks(&page(name)) {
            match block.step() {
                Some(Step::Run { commands, .. }) => {
                    let compared = commands.iter().filter(|command| command.output.is_some()).count();
                    sum.add(&Tally { ran: 1, compared, ..Tally::default() });
                }
                Some(Step::Parse { reason, .. }) => {
                    sum.add(&Tally { not_run: [(reason, 1)].into(), ..Tally::default() });
                }
                _ => {}
            }
        }
    }
    eprintln!("{}", sum.describe());
    let not_run: usize = sum.not_run.values().sum();
    assert!(not_run <= MAX_NOT_RUN && sum.ran > not_run, "{}", sum.describe());
}

#[test]
fn the_readme_is_short_and_begins_with_the_main_job() {
    let text = page("README.md");
    assert!(text.lines().count() < 150, "{} lines", text.lines().count());
    let steps: Vec<Step> = blocks(&text).iter().filter_map(Block::step).collect();
    let first = steps.iter().find_map(|step| match step {
        Step::Run { commands, .. } => Some(commands[0].text.as_str()),
        _ => None,
    });
    let first = first.unwrap_or_default();
    assert!(first.starts_with("cargo run -p llm-do-cli -- run examples/"), "{first}");
    let ci = std::fs::read_to_string(root().join(".ci/run")).unwrap();
    assert!(ci.contains(first), "`.ci/run` does not run `{first}`");
}
