//! Writes the seeds of all targets into `corpus/`: every file of the project corpus, a stream of each API, and
//! the recorded answers in the directory that `LLM_DO_WIRE` names, where it is set.

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
    for (target, stream) in llm_do_models::fuzzing::samples() {
        write_seed(&corpus, target, "sample", stream);
    }
    if let Some(directory) = std::env::var_os("LLM_DO_WIRE") {
        write_recorded(&corpus, Path::new(&directory));
    }
}

fn write_recorded(corpus: &Path, directory: &Path) {
    for file in std::fs::read_dir(directory).expect("`LLM_DO_WIRE` names a directory").flatten() {
        let Ok(text) = std::fs::read(file.path()) else { continue };
        let Ok(exchange) = serde_json::from_slice::<Value>(&text) else { continue };
        let target = match exchange["api"].as_str() {
            Some("anthropic.messages") => "anthropic",
            Some("openai.chat") => "openai_chat",
            Some("openai.responses") => "openai_responses",
            Some("gemini.generate") => "gemini",
            Some("ollama.chat") => "ollama",
            _ => continue,
        };
        if let (Some(id), Some(body)) = (exchange["id"].as_str(), exchange["response"]["body"].as_str()) {
            write_seed(corpus, target, id, body);
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
    write_seed(corpus, target, &format!("{id}-{}", name.replace('/', "-")), &seed);
}

fn write_seed(corpus: &Path, target: &str, name: &str, seed: &str) {
    let folder = corpus.join(target);
    std::fs::create_dir_all(&folder).expect("the folder of the corpus can be made");
    std::fs::write(folder.join(name), seed).expect("a seed can be written");
}
