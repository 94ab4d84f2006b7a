//! Writes the seeds of both targets into `corpus/`: every file of the project corpus.

use std::path::Path;

use serde_json::Value;

const CASES: &str = include_str!("../../../crates/project/tests/corpus/project_files.json");

fn main() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    let cases: Vec<Value> = serde_json::from_str(CASES).expect("the corpus is JSON");
    for case in &cases {
        let id = case["id"].as_str().expect("a case has an id");
        for (name, content) in case["files"].as_object().expect("a case has files") {
            if let Some(text) = content.as_str() {
                write(&corpus, id, name, text);
            }
        }
    }
}

fn write(corpus: &Path, id: &str, name: &str, text: &str) {
    let (target, seed) = match name.rsplit('.').next() {
        Some("json") => ("manifest", format!("\0{text}")),
        Some("yaml" | "yml") => ("manifest", format!("\u{1}{text}")),
        Some("toml") => ("manifest", format!("\u{2}{text}")),
        Some("agent") => ("front_matter", text.to_owned()),
        _ => return,
    };
    let folder = corpus.join(target);
    std::fs::create_dir_all(&folder).expect("the folder of the corpus can be made");
    let file = folder.join(format!("{id}-{}", name.replace('/', "-")));
    std::fs::write(file, seed).expect("a seed can be written");
}
