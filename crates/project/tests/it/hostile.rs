//! Projects that were written to take long or much memory: each ends soon, and what it costs grows with its size.

use std::process::Command;
use std::time::{Duration, Instant};

use llm_do_project::load;
use llm_do_testing::TestDir;
use serde_json::{Map, Value, json};

use crate::parts::Names;
use crate::parts::memory::{forget_peak, peak};

/// Two seconds, and more for code that no compiler has optimized.
const MAX_DURATION: Duration = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 2 });

/// How much smaller the projects are for such code: the test shall not take minutes.
const SCALE: usize = if cfg!(debug_assertions) { 10 } else { 1 };

/// The memory that loading may take, in kilobytes.
const MAX_BYTES: u64 = 200 * 1024;

const MAIN: &str = "---\nname: main\nmodel: test:echo\n---\nDo it.\n";

type Write = fn(&TestDir);
type WriteMany = fn(&TestDir, usize);

const BOMBS: &[(&str, Write)] = &[
    ("deep JSON", |f| manifest(f, &format!("{}{}", "[".repeat(400_000), "]".repeat(400_000)))),
    ("deep tables of JSON", |f| {
        manifest(f, &format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000)))
    }),
    ("keys of JSON", |f| manifest(f, &keys(100_000, "{", "\"kN\":1,", "\"k\":1}"))),
    ("almost too many keys of JSON", |f| manifest(f, &keys(49_000, "{", "\"kN\":1,", "\"k\":1}"))),
    ("numbers of JSON", |f| manifest(f, &format!("[{}1]", "1,".repeat(500_000)))),
    ("a long key of JSON", |f| manifest(f, &format!("{{\"{}\": 1}}", "x".repeat(1_000_000)))),
    ("a long mode", |f| runtime(f, json!({"approval_mode": "x".repeat(1_000_000)}))),
    ("long models", |f| agent(f, json!({"name": "main", "fallback_models": vec!["ä".repeat(1_000); 400]}))),
    ("a file of 4 MB on one line", |f| f.write("project.json", "x".repeat(4 << 20))),
    ("deep TOML", |f| f.write("project.toml", format!("{}a = 1", "a.".repeat(400_000)))),
    ("deep lists of TOML", |f| {
        f.write("project.toml", format!("a = {}1{}", "[".repeat(400_000), "]".repeat(400_000)))
    }),
    ("deep tables of TOML", |f| f.write("project.toml", format!("[{}a]\n", "a.".repeat(400_000)))),
    ("numbers of TOML", |f| f.write("project.toml", format!("a = [{}1]", "1,".repeat(500_000)))),
    ("keys of TOML", |f| f.write("project.toml", keys(50_000, "", "kN = 1\n", ""))),
    ("tables of TOML", |f| f.write("project.toml", keys(50_000, "", "[kN]\nx = 1\n", ""))),
    ("lists of tables of TOML", |f| f.write("project.toml", "[[a.b]]\n".repeat(100_000))),
    ("nested lists of tables of TOML", |f| {
        f.write("project.toml", format!("[[a]]\n{}", "[[a.b]]\n".repeat(100_000)))
    }),
    ("comments of TOML", |f| f.write("project.toml", "#\n".repeat(500_000))),
    ("keys of YAML", |f| f.write("project.yaml", keys(100_000, "", "kN: 1\n", ""))),
    ("almost too many keys of YAML", |f| f.write("project.yaml", keys(24_000, "", "kN: 1\n", ""))),
    ("deep YAML", |f| f.write("project.yaml", "[".repeat(1_000_000))),
    ("deep lists of YAML", |f| f.write("project.yaml", "- ".repeat(500_000))),
    ("indented YAML", |f| {
        f.write("project.yaml", (0..1_400).map(|n| format!("{}a:\n", " ".repeat(n))).collect::<String>())
    }),
    ("comments of YAML", |f| f.write("project.yaml", "#\n".repeat(500_000))),
    ("questions of YAML", |f| f.write("project.yaml", "? ".repeat(500_000))),
    ("a text of YAML that never ends", |f| {
        f.write("project.yaml", format!("a: \"{}", "x\n".repeat(500_000)))
    }),
    ("documents of YAML", |f| f.write("project.yaml", "---\na: 1\n".repeat(100_000))),
    ("tags and anchors of YAML", |f| f.write("project.yaml", "&a !b ".repeat(160_000))),
    ("a header of 4 MB", |f| {
        f.write("main.agent", format!("---\n{}---\n", keys(300_000, "", "kN: 1\n", "")))
    }),
    ("a text of 4 MB in a header", |f| {
        agent(f, json!({"name": "main", "description": "x".repeat(4_000_000)}))
    }),
    ("a key of 4 MB in a header", |f| {
        f.write("main.agent", format!("---\n{}: 1\n---\n", "x".repeat(4_000_000)))
    }),
    ("blank lines", |f| f.write("main.agent", format!("---\n{}", "\r\n".repeat(2_000_000)))),
    ("rules", |f| agent(f, json!({"name": "main", "approval": map(20_000, |_| json!("ask"))}))),
    ("globs over tools", |f| agent(f, json!({"name": "main", "approval": globs(24_000)}))),
    ("globs over agents", |f| {
        agent(f, json!({"name": "main", "agents": list(24_000, |n| format!("{n}*[a-z]?"))}))
    }),
    ("globs over models", |f| {
        agent(f, json!({"name": "main", "compatible_models": list(24_000, |n| format!("{n}["))}))
    }),
    ("overrides of models", |f| section(f, "models", map(20_000, |_| json!({})))),
    ("broad overrides of models", |f| section(f, "models", broad_models(1_000))),
    ("headers of a provider", |f| {
        let headers = map(20_000, |_| json!("\n"));
        section(f, "providers", json!({"acme": {"api": "x", "base_url": "http://a", "headers": headers}}));
    }),
    ("headers of requests", |f| {
        agent(f, json!({"name": "main", "model_settings": {"extra_headers": map(20_000, |_| json!("\n"))}}))
    }),
    ("a long glob", |f| agent(f, json!({"name": "main", "agents": ["{a,b}*?".repeat(100_000)]}))),
    ("a nested glob", |f| files(f, vec![format!("{}a{}", "{".repeat(100_000), "}".repeat(100_000))])),
    ("unknown toolsets", |f| {
        agent(f, json!({"name": "main", "toolsets": list(40_000, |n| format!("unknown_{n}"))}))
    }),
    ("unknown tools", |f| {
        agent(f, json!({"name": "main", "tools": list(40_000, |n| format!("unknown_{n}"))}))
    }),
    ("missing files", |f| files(f, list(40_000, |n| format!("missing_{n}.agent")))),
    ("repeated files", |f| files(f, list(40_000, |_| "main.agent".to_owned()))),
    ("many globs", |f| files(f, list(40_000, |n| format!("*{n}.agent")))),
    ("servers", |f| section(f, "mcp_servers", map(20_000, |_| json!({})))),
    ("providers", |f| section(f, "providers", map(10_000, |_| json!({"api": "x", "base_url": "x"})))),
    ("sections", |f| section(f, "toolsets", map(20_000, |_| json!({"toolset": "x"})))),
    ("overrides", |f| runtime(f, json!({"agent_approval_overrides": map(20_000, |_| json!({"x": 1}))}))),
    ("patterns of a schema", |f| {
        schema(f, json!({"properties": map(500, |_| json!({"pattern": "^\\w{500}$"}))}))
    }),
    ("a large pattern", |f| schema(f, json!({"pattern": "((((a{1,100}){1,100}){1,100}){1,100})"}))),
    ("references that double", |f| schema(f, doubling())),
    ("a schema that holds itself", |f| schema(f, json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}))),
    ("a schema with many choices", |f| schema(f, json!({"enum": list(40_000, |n| n.to_string())}))),
    ("a deep template", |f| prompt(f, &format!("{{{{ {}1{} }}}}", "(".repeat(400_000), ")".repeat(400_000)))),
    ("a template of deep blocks", |f| prompt(f, &"{% if input %}".repeat(50_000))),
    ("a template of many filters", |f| prompt(f, &format!("{{{{ input{} }}}}", "|trim".repeat(200_000)))),
    ("a template of many characters", |f| prompt(f, &format!("{{{{ {}1 }}}}", "-".repeat(400_000)))),
    ("a template of many sums", |f| prompt(f, &format!("{{{{ 1{} }}}}", "+1".repeat(200_000)))),
    ("a template that repeats a text", |f| prompt(f, "{{ 'x' * 4000000000 }}")),
    ("a template of powers", |f| prompt(f, "{{ 9 ** 9 ** 9 ** 9 ** 9 }}")),
    ("a template of many branches", |f| {
        prompt(f, &format!("{{% if input %}}{}{{% endif %}}", "{% elif input %}".repeat(100_000)))
    }),
    ("a template of 4 MB", |f| {
        f.write(
            "main.agent",
            format!("---\nname: main\ntemplate: true\n---\n{}", "{{ input }}".repeat(350_000)),
        )
    }),
    ("agents", |f| {
        agents(f, 10_000, |n| {
            format!("---\nname: a{n}\nentry: true\ntests: [{{}}]\ntoolsets: [a{}]\n---\nx", n + 1)
        })
    }),
    ("agents that name all others", |f| {
        agents(f, 1_000, |n| {
            format!(
                "---\nname: a{n}\nentry: {}\ntoolsets: [{}]\n---\n{}",
                n == 0,
                list(180, |n| format!("a{n}")).join(","),
                "x".repeat(20_000)
            )
        })
    }),
    ("agents without files", |f| {
        agents(f, 10_000, |n| format!("---\nname: a{n}\ninput_model_ref: a.py:A\n---\nx"))
    }),
    ("large headers", |f| {
        agents(f, 300, |n| format!("---\nname: a{n}\ntests: [{{a: [{}1]}}]\n---\nx", "1,".repeat(49_000)))
    }),
    ("large agents", |f| agents(f, 20, |n| format!("---\nname: a{n}\n---\n{}", "x".repeat(4_000_000)))),
    ("links in a circle", |f| {
        files(f, vec!["**/*.agent".to_owned()]);
        let _ = std::os::unix::fs::symlink(".", f.path().join("again"));
    }),
];

#[test]
fn no_project_takes_long_or_much_memory() {
    let wrong: Vec<String> = (0..BOMBS.len()).filter_map(|number| load_apart(number).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Loads one of the projects in a process of its own: its memory counts alone, and no stack that it uses up ends
/// the test.
fn load_apart(number: usize) -> Result<(), String> {
    let this = std::env::current_exe().unwrap();
    let arguments = ["--exact", "hostile::the_project_that_the_environment_names", "--nocapture"];
    let child = Command::new(this).args(arguments).env(CHOSEN, number.to_string()).output().unwrap();
    let told = String::from_utf8_lossy(&child.stdout).into_owned();
    print!(
        "{}",
        told.lines().filter(|line| line.contains("KiB")).map(|line| format!("{line}\n")).collect::<String>()
    );
    let said = String::from_utf8_lossy(&child.stderr);
    if child.status.success() { Ok(()) } else { Err(format!("{}: {}{said}", BOMBS[number].0, child.status)) }
}

/// The variable with the number of a project.
const CHOSEN: &str = "LLM_DO_BOMB";

#[test]
fn the_project_that_the_environment_names() {
    let Some(number) = std::env::var(CHOSEN).ok().and_then(|text| text.parse::<usize>().ok()) else { return };
    let (name, write) = BOMBS[number];
    let folder = TestDir::new();
    write(&folder);
    forget_peak();
    let begun = Instant::now();
    let outcome = load(folder.path(), &Names);
    let said = outcome.err().map(|diagnostics| diagnostics.to_string()).unwrap_or_default();
    let (took, memory) = (begun.elapsed(), peak());
    let first: String = said.lines().next().unwrap_or("loaded").chars().take(100).collect();
    println!("\n{number} {name}: {took:?}, {memory} KiB: {first}");
    assert!(took <= MAX_DURATION, "took {took:?}");
    assert!(memory <= MAX_BYTES, "took {memory} KiB");
    assert!(said.len() <= 2_000_000, "said {} bytes", said.len());
}

/// How often the cost of a project is measured before it counts as too much.
const MAX_ROUNDS: usize = 50;

#[test]
fn what_a_project_costs_grows_with_its_size() {
    let growths: [(&str, usize, WriteMany); 4] = [
        ("keys", 5_000, |f, n| f.write("project.yaml", keys(n, "", "kN: 1\n", ""))),
        ("files", 5_000, |f, n| files(f, list(n, |n| format!("missing_{n}.agent")))),
        ("toolsets", 5_000, |f, n| {
            agent(f, json!({"name": "main", "toolsets": list(n, |n| format!("t{n}"))}))
        }),
        ("agents", 300, |f, n| {
            agents(f, n, |n| {
                format!("---\nname: a{n}\nentry: {}\ntoolsets: [a0, a1]\n---\n{}", n == 0, "x".repeat(9_000))
            });
        }),
    ];
    for (name, size, write) in growths {
        let folders = [size, size * 4].map(|size| {
            let folder = TestDir::new();
            write(&folder, size);
            folder
        });
        let cost = |folder: &TestDir| {
            let begun = Instant::now();
            let _ = load(folder.path(), &Names);
            begun.elapsed()
        };
        // The quickest of several, in turn: a busy machine only ever adds to the time.
        let (mut small, mut large) = (Duration::MAX, Duration::MAX);
        let is_as_expected = (0..MAX_ROUNDS).any(|_| {
            small = small.min(cost(&folders[0]));
            large = large.min(cost(&folders[1]));
            large <= small * 9 + Duration::from_millis(20)
        });
        println!("{name}: {size} take {small:?}, {} take {large:?}", size * 4);
        assert!(
            is_as_expected,
            "{name}: {small:?} become {large:?} where the size becomes four times as much"
        );
    }
}

fn manifest(folder: &TestDir, text: &str) {
    folder.write("project.json", text);
    folder.write("main.agent", MAIN);
}

fn section(folder: &TestDir, key: &str, value: Value) {
    let mut whole = json!({"version": 1, "entry": {"agent": "main"}, "agent_files": ["main.agent"]});
    whole[key] = value;
    manifest(folder, &whole.to_string());
}

fn runtime(folder: &TestDir, value: Value) {
    section(folder, "runtime", value);
}

fn files(folder: &TestDir, names: Vec<String>) {
    section(folder, "agent_files", json!(names));
}

fn agent(folder: &TestDir, header: Value) {
    folder.write("main.agent", format!("---\n{header}\n---\nDo it.\n"));
}

fn schema(folder: &TestDir, schema: Value) {
    agent(folder, json!({"name": "main", "input_schema": schema}));
}

fn prompt(folder: &TestDir, prompt: &str) {
    agent(folder, json!({"name": "main", "prompt": prompt}));
}

fn agents(folder: &TestDir, count: usize, text: fn(usize) -> String) {
    let count = count / SCALE;
    folder.write(
        "project.json",
        r#"{"version": 1, "entry": {"agent": "a0"}, "agent_files": ["agents/*.agent"]}"#,
    );
    (0..count).for_each(|number| folder.write(format!("agents/{number}.agent"), text(number)));
}

fn keys(count: usize, start: &str, form: &str, end: &str) -> String {
    let keys: String = (0..count / SCALE).map(|number| form.replace('N', &number.to_string())).collect();
    format!("{start}{keys}{end}")
}

fn list(count: usize, item: impl Fn(usize) -> String) -> Vec<String> {
    (0..count / SCALE).map(item).collect()
}

fn map(count: usize, value: impl Fn(usize) -> Value) -> Value {
    (0..count / SCALE).map(|number| (format!("k{number}"), value(number))).collect::<Map<_, _>>().into()
}

fn globs(count: usize) -> Value {
    (0..count / SCALE).map(|number| (format!("{number}*[a-z]?"), json!("ask"))).collect::<Map<_, _>>().into()
}

/// Globs that take long to compile, as many as are permitted.
fn broad_models(count: usize) -> Value {
    let glob = |number: usize| format!("{number}:{}", "{a,b}*?".repeat(35));
    (0..count).map(|number| (glob(number), json!({}))).collect::<Map<_, _>>().into()
}

/// Definitions of which each names the next one twice.
fn doubling() -> Value {
    let next = |number: usize| json!({"$ref": format!("#/$defs/k{}", (number + 1).min(39))});
    let definitions = map(
        40 * SCALE,
        |number| json!({"allOf": [next(number), {"not": next(number)}], "maxLength": number}),
    );
    json!({"$defs": definitions, "$ref": "#/$defs/k0"})
}

#[test]
fn a_project_with_more_agent_files_than_are_allowed_is_refused() {
    let folder = TestDir::new();
    for number in 0..1_001 {
        let name = format!("a{number}");
        folder.write(format!("{name}.agent"), format!("---\nname: {name}\nmodel: test:echo\n---\nDo it.\n"));
    }
    folder.write("project.json", r#"{"version": 1, "entry": {"agent": "a0"}, "agent_files": ["*.agent"]}"#);
    let problems = load(folder.path(), &Names).map(drop).unwrap_err().to_string();
    assert!(problems.contains("the agent files so far are more than 1000"), "{problems}");
}
