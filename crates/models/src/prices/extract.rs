//! Makes the table of prices from the data of `genai-prices`.
//!
//! Of each model it takes the names and the standard prices on the day: no tiers of service, no batches, and where the
//! price depends on the hour the dearest one, so that no budget is overrun.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// The providers whose models the table has, by their name in the data.
const SECTIONS: [&str; 15] = [
    "anthropic",
    "azure",
    "cerebras",
    "cohere",
    "deepseek",
    "fireworks",
    "google",
    "groq",
    "mistral",
    "moonshotai",
    "openai",
    "openrouter",
    "perplexity",
    "together",
    "x-ai",
];

/// Where cargo keeps the data, and of which version it is.
pub(super) fn data_file() -> (PathBuf, String) {
    // Only the packages of this platform: those of others are downloaded by nobody who builds for this one.
    let output = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()))
        .args(["metadata", "--format-version", "1", "--offline", "--filter-platform", &platform()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let package = packages.iter().find(|package| package["name"] == "genai-prices").unwrap();
    let manifest = PathBuf::from(package["manifest_path"].as_str().unwrap());
    (manifest.with_file_name("data").join("prices.json"), package["version"].as_str().unwrap().to_owned())
}

/// Returns the target triple of this platform.
fn platform() -> String {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let output = Command::new(rustc).arg("-vV").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().find_map(|line| line.strip_prefix("host: ")).unwrap().to_owned()
}

/// The table of a day, written as `2026-11-16`.
pub(super) fn table(data: &Value, version: &str, day: &str) -> String {
    let mut text = format!(
        "# Prices on {day}, from genai-prices {version} (MIT license, Copyright (c) Pydantic Services Inc.). Made by \
         `UPDATE_PRICES=1 cargo test -p llm-do-models prices`.\n"
    );
    for section in SECTIONS {
        let provider = data.as_array().unwrap().iter().find(|provider| provider["id"] == section).unwrap();
        let _ = writeln!(text, "@{section}");
        for model in provider["models"].as_array().unwrap() {
            let names: Vec<String> = alternatives(&model["match"]).iter().map(|all| all.join("&")).collect();
            let id = model["id"].as_str().unwrap();
            let prices = prices(&model["prices"], day, id.ends_with(":free"));
            let _ = write!(text, "{}\t{prices}\t{id}", names.join(" "));
            if let Some(tokens) = model["context_window"].as_u64() {
                let _ = write!(text, " {tokens}");
            }
            text.push('\n');
        }
    }
    text
}

/// The names of a model: alternatives of conditions that all hold.
fn alternatives(rule: &Value) -> Vec<Vec<String>> {
    let (kind, value) = rule.as_object().unwrap().iter().next().unwrap();
    let condition = |operator: &str| {
        let text = value.as_str().unwrap().to_lowercase();
        assert!(!text.contains([' ', '&', '\t']), "{text} cannot be written in the table");
        vec![vec![format!("{operator}{text}")]]
    };
    match kind.as_str() {
        "or" => value.as_array().unwrap().iter().flat_map(alternatives).collect(),
        "and" => value.as_array().unwrap().iter().map(alternatives).fold(vec![Vec::new()], |all, next| {
            let joined =
                |left: &Vec<String>| next.iter().map(|right| [&left[..], right].concat()).collect::<Vec<_>>();
            all.iter().flat_map(joined).collect()
        }),
        "equals" => condition("="),
        "starts_with" => condition("^"),
        "ends_with" => condition("$"),
        "contains" => condition("*"),
        "regex" => forms(value.as_str().unwrap()).into_iter().map(|form| vec![form]).collect(),
        other => panic!("there is a new kind of rule: {other}"),
    }
}

/// The few forms of regular expressions that the data has.
fn forms(expression: &str) -> Vec<String> {
    if expression == "^(?!.*-[tT][tT][sS](?:$|-))" {
        return vec!["!tts".to_owned()];
    }
    if expression.contains("[-@]") {
        return ["-", "@"]
            .iter()
            .flat_map(|separator| forms(&expression.replace("[-@]", separator)))
            .collect();
    }
    let begun = expression.strip_prefix('^').unwrap_or_else(|| panic!("{expression} is new"));
    let (body, end) = begun.strip_suffix('$').map_or((begun, "*"), |body| (body, ""));
    let mut form = body.replace("\\.", ".");
    for count in [8, 4, 2] {
        form = form.replace(&format!("\\d{{{count}}}"), &"#".repeat(count));
    }
    form = form.replace("\\d", "#");
    assert!(!form.contains(['\\', '(', '[', '{', '+', '|', '?']), "{expression} is new");
    vec![format!("~{}{end}", form.to_lowercase())]
}

fn prices(prices: &Value, day: &str, is_free: bool) -> String {
    let active = active(prices, day);
    let dearest = |key: &str| {
        active.iter().filter_map(|prices| prices.get(key)).max_by(|a, b| base(a).total_cmp(&base(b)))
    };
    if is_free && active.iter().all(|prices| prices.as_object().unwrap().is_empty()) {
        return "i0 o0".to_owned();
    }
    if dearest("input_mtok").is_none() || dearest("output_mtok").is_none() {
        return "-".to_owned();
    }
    let keys = [
        ("i", "input_mtok"),
        ("o", "output_mtok"),
        ("r", "cache_read_mtok"),
        ("w", "cache_write_mtok"),
        ("s", "web_searches_kcount"),
        ("q", "requests_kcount"),
    ];
    let written = keys.iter().filter_map(|(prefix, key)| Some(format!("{prefix}{}", price(dearest(key)?))));
    written.collect::<Vec<_>>().join(" ")
}

/// The prices that hold at some hour of a day: the last whose condition is met, for each condition on the hour.
fn active<'a>(prices: &'a Value, day: &str) -> Vec<&'a Value> {
    let Some(list) = prices.as_array() else { return vec![prices] };
    let holds = |entry: &&Value| entry["constraint"]["start_date"].as_str().is_none_or(|start| start <= day);
    let mut found = Vec::new();
    for entry in list.iter().filter(holds).rev() {
        found.push(&entry["prices"]);
        if entry["constraint"]["start_time"].is_null() {
            break;
        }
    }
    if found.is_empty() { vec![&list[0]["prices"]] } else { found }
}

fn base(price: &Value) -> f64 {
    price.as_f64().or_else(|| price["base"].as_f64()).unwrap()
}

fn price(price: &Value) -> String {
    let mut text = decimal(if price.is_object() { &price["base"] } else { price });
    for tier in price["tiers"].as_array().into_iter().flatten() {
        let _ = write!(text, ",{}:{}", tier["start"], decimal(&tier["price"]));
    }
    text
}

/// A number without an exponent.
fn decimal(number: &Value) -> String {
    let text = format!("{:.9}", number.as_f64().unwrap());
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
