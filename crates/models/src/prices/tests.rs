//! The table says what `genai-prices` says; prices are exact, disjoint and never guessed.

use std::time::{Duration, SystemTime};

use genai_prices::{Calculator, PriceRequest, UsageKey};
use llm_do_core::{ModelOverride, Money, PriceList, Prices, ProfileOverride, Usage};

use super::{StandardPrices, extract, known_rates, table};

fn dollars(model: &str, usage: Usage) -> Option<f64> {
    StandardPrices::new().price(model, &usage).map(Money::dollars)
}

const MILLION: u64 = 1_000_000;

#[test]
fn the_table_is_made_from_the_crate() {
    let (file, version) = extract::data_file();
    let data = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    if std::env::var_os("UPDATE_PRICES").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/prices/table.txt");
        let today = &jiff::Timestamp::now().to_string()[..10];
        return std::fs::write(path, extract::table(&data, &version, today)).unwrap();
    }
    let made = extract::table(&data, &version, written_day());
    assert!(table::TABLE == made, "the table of prices is out of date: run with UPDATE_PRICES=1");
}

fn written_day() -> &'static str {
    table::TABLE.strip_prefix("# Prices on ").and_then(|text| text.get(..10)).unwrap()
}

/// The day of the table.
fn day() -> SystemTime {
    format!("{}T00:00:00Z", written_day()).parse::<jiff::Timestamp>().unwrap().into()
}

/// What the crate says at the dearest hour.
fn theirs(calculator: &Calculator, provider: &str, model: &str, usage: &Usage) -> Option<f64> {
    let mut counts = genai_prices::Usage::from([
        (UsageKey::INPUT_TOKENS, usage.total_input() as f64),
        (UsageKey::OUTPUT_TOKENS, usage.output as f64),
        (UsageKey::CACHE_READ_TOKENS, usage.cache_read as f64),
        (UsageKey::CACHE_WRITE_TOKENS, usage.cache_write as f64),
    ]);
    if usage.searches > 0 {
        counts.insert(UsageKey::WEB_SEARCHES, usage.searches as f64);
    }
    let at = |hour: u64| {
        let time = day() + Duration::from_secs(hour * 3_600 + 1_800);
        let request = PriceRequest::new(model, &counts).with_provider_id(provider).with_timestamp(time);
        calculator.calculate(&request).ok().map(|price| price.total_price)
    };
    // Only this provider's prices depend on the hour.
    let hours = if provider == "deepseek" { 24 } else { 1 };
    (0..hours).filter_map(at).max_by(f64::total_cmp)
}

const COMPARED: [(&str, &str); 15] = [
    ("anthropic", "anthropic"),
    ("azure", "azure"),
    ("cerebras", "cerebras"),
    ("cohere", "cohere"),
    ("deepseek", "deepseek"),
    ("fireworks", "fireworks"),
    ("gemini", "google"),
    ("groq", "groq"),
    ("mistral", "mistral"),
    ("moonshot", "moonshotai"),
    ("openai", "openai"),
    ("openrouter", "openrouter"),
    ("perplexity", "perplexity"),
    ("together", "together"),
    ("xai", "x-ai"),
];

#[test]
fn every_model_costs_what_the_crate_says() {
    let calculator = Calculator::bundled();
    let usages = [
        Usage { input: MILLION, ..Usage::default() },
        Usage { output: MILLION, ..Usage::default() },
        Usage { input: 1_234, output: 567, cache_read: 89_000, cache_write: 4_321, ..Usage::default() },
        Usage { input: 200_000, output: 1, ..Usage::default() },
        Usage { input: 50_001, cache_read: 950_000, output: 9_999, ..Usage::default() },
    ];
    let all = &usages;
    let (mut compared, mut wrong) = (0, Vec::new());
    for (ours, id) in COMPARED {
        let provider = calculator.find_provider(Some(id), None).unwrap().unwrap();
        // The crate also knows Claude at Google's cloud, which the provider `gemini` does not reach.
        let is_elsewhere = |model: &str| id == "google" && model.starts_with("claude");
        for model in provider.models().filter(|model| !is_elsewhere(model.id())) {
            // Spellings of the name are compared by one usage: it is the same line that answers.
            let spellings = ["-20260102", "-2026-01-02", "-latest", ":free", "-tts"];
            let spelt = spellings.iter().map(|spelling| (format!("{}{spelling}", model.id()), &usages[2..3]));
            for (model, usages) in spelt.chain([(model.id().to_owned(), &usages[..])]) {
                for usage in usages {
                    let name = format!("{ours}:{model}");
                    let (own, their) = (dollars(&name, *usage), theirs(calculator, id, &model, usage));
                    compared += usize::from(own.is_some());
                    let free = |usage| theirs(calculator, id, &model, usage) == Some(0.0);
                    let agree = match (own, their) {
                        (Some(own), Some(their)) => (own - their).abs() <= 2e-9 + their * 1e-12,
                        (None, None) => true,
                        // The table has no price for what does not cost something for both input and output.
                        (None, Some(_)) => all[..2].iter().any(free),
                        (Some(_), None) => false,
                    };
                    if !agree {
                        wrong.push(format!("{name}: {own:?} instead of {their:?} for {usage:?}"));
                    }
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {compared} differ:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
    assert!(compared > 4_000, "only {compared} prices were compared");
}

#[test]
fn known_models_of_each_provider_have_a_price() {
    for model in [
        "anthropic:claude-opus-4-5",
        "anthropic/claude-sonnet-4-5-20250929",
        "openai:gpt-5",
        "openai-chat:gpt-4o-mini",
        "gemini:gemini-2.5-pro",
        "google:gemini-2.5-flash",
        "google-gla:gemini-2.5-flash",
        "groq:llama-3.3-70b-versatile",
        "deepseek:deepseek-chat",
        "mistral:mistral-large-latest",
        "xai:grok-4.5",
        "openrouter:openai/gpt-5",
        "openrouter/anthropic/claude-sonnet-4.5",
        "azure:gpt-4o",
        "OpenAI:GPT-5".to_lowercase().as_str(),
    ] {
        assert!(dollars(model, Usage { input: 1_000, ..Usage::default() }) > Some(0.0), "{model}");
    }
}

#[test]
fn what_runs_on_this_machine_is_free_and_what_nobody_knows_has_no_price() {
    let usage = Usage { input: MILLION, output: MILLION, searches: 3, ..Usage::default() };
    for model in
        ["test", "test:echo", "script:a.yaml", "ollama:llama3.2", "lmstudio:x", "llamacpp:x", "vllm:x/y"]
    {
        assert_eq!(dollars(model, usage), Some(0.0), "{model}");
    }
    for model in [
        "acme:gpt-5",
        "openai:gpt-99",
        "openai",
        "",
        ":",
        "ollama:gpt-oss:120b-cloud",
        "groq:whisper-large-v3",
    ] {
        assert_eq!(dollars(model, usage), None, "{model}");
    }
}

#[test]
fn cached_tokens_are_charged_once_and_at_their_own_rate() {
    let model = "anthropic:claude-opus-4-5";
    let price = |usage| dollars(model, usage).unwrap();
    assert_eq!(price(Usage { input: MILLION, ..Usage::default() }), 5.0);
    assert_eq!(price(Usage { cache_read: MILLION, ..Usage::default() }), 0.5);
    assert_eq!(price(Usage { cache_write: MILLION, ..Usage::default() }), 6.25);
    let all =
        Usage { input: 10, cache_read: 10, cache_write: 10, output: 10, reasoning: 7, ..Usage::default() };
    // (5 + 0.5 + 6.25 + 25) millionths of a dollar, ten times; reasoning is part of output.
    assert_eq!(StandardPrices::new().price(model, &all), Some(Money(367_500)));
}

#[test]
fn a_long_prompt_costs_more_as_a_whole() {
    let model = "gemini:gemini-2.5-pro";
    assert_eq!(StandardPrices::new().long_prompts(model), Some(200_000));
    let short = Usage { input: 200_000, output: 1_000, ..Usage::default() };
    let long = Usage { input: 1, cache_read: 200_000, output: 1_000, ..Usage::default() };
    assert_eq!(dollars(model, short), Some(0.25 + 0.01));
    // The long one pays the higher rate for output too: 2.5, 0.25 and 15 dollars per million.
    assert_eq!(StandardPrices::new().price(model, &long), Some(Money(2_500 + 50_000_000 + 15_000_000)));
}

#[test]
fn searches_have_their_own_price() {
    let searches = Usage { searches: 3, ..Usage::default() };
    assert_eq!(dollars("anthropic:claude-opus-4-5", searches), Some(0.03));
    assert_eq!(dollars("openai:gpt-5.3-codex", searches), Some(0.03));
    assert_eq!(dollars("gemini:gemini-2.5-pro", searches), Some(0.105));
    assert_eq!(dollars("groq:llama-3.3-70b-versatile", searches), None);
}

fn over(pattern: &str, price: Option<PriceList>) -> ModelOverride {
    ModelOverride { pattern: pattern.to_owned(), price, profile: ProfileOverride::default() }
}

fn list(input: f64, output: f64) -> PriceList {
    PriceList { input, output, cache_read: None, cache_write: None, search: None, request: None }
}

#[test]
fn the_first_price_of_the_project_that_fits_counts_if_it_is_higher() {
    let own = PriceList { cache_read: Some(0.25), search: Some(5.0), request: Some(0.125), ..list(3.0, 4.0) };
    let prices = StandardPrices::new().with_overrides([
        over("google:gemini-*", None),
        over("openai:gpt-5-*", Some(list(1.0, 2.0))),
        over("openai:*", Some(own)),
        over("gemini:gemini-2*", Some(list(7.0, 0.0))),
        over("[", Some(list(9.0, 9.0))),
    ]);
    let price = |model: &str, usage| prices.price(model, &usage).map(Money::dollars);
    let usage =
        Usage { input: MILLION, cache_read: MILLION, cache_write: MILLION, searches: 2, ..Usage::default() };
    assert_eq!(price("openai:gpt-5-mini", usage), Some(3.0));
    assert_eq!(price("openai/gpt-99", usage), Some(3.0 + 0.25 + 3.0 + 0.01 + 0.125));
    assert_eq!(price("google:gemini-2.5-pro", Usage { input: 1_000, ..Usage::default() }), Some(0.007));
    assert_eq!(price("anthropic:claude-opus-4-5", Usage { input: MILLION, ..Usage::default() }), Some(5.0));
    assert_eq!(prices.list("openai:gpt-99").unwrap(), PriceList { search: Some(5.0), ..own });
}

#[test]
fn prices_of_the_user_replace_the_table_and_a_project_can_only_raise_them() {
    let price = |pattern: &str, input: f64| over(pattern, Some(list(input, 0.0)));
    let input = |prices: &StandardPrices| prices.list("openai:gpt-4o").unwrap().input;
    let cheap = StandardPrices::new().with_own([price("openai:*", 0.001), price("*", 9.0)]);
    assert_eq!(input(&cheap), 0.001);
    assert_eq!(input(&cheap.clone().with_overrides([price("*", 0.0)])), 0.001);
    assert_eq!(input(&cheap.with_overrides([price("*", 50.0)])), 50.0);
}

#[test]
fn a_project_cannot_lower_a_price_of_the_table() {
    let free = StandardPrices::new().with_overrides([over("*", Some(list(0.0, 0.0)))]);
    let cheap = StandardPrices::new().with_overrides([over("anthropic:*", Some(list(0.1, 100.0)))]);
    let known = StandardPrices::new();
    for (input, output) in [(MILLION, 0), (0, MILLION), (MILLION, MILLION)] {
        let usage = Usage { input, output, ..Usage::default() };
        for model in ["anthropic:claude-opus-4-5", "openai:gpt-5", "gemini:gemini-2.5-pro"] {
            assert_eq!(free.price(model, &usage), known.price(model, &usage), "{model}");
            assert!(cheap.price(model, &usage) >= known.price(model, &usage), "{model}");
        }
    }
    assert_eq!(free.list("anthropic:claude-opus-4-5"), known.list("anthropic:claude-opus-4-5"));
    assert_eq!(cheap.list("anthropic:claude-opus-4-5").unwrap().output, 100.0);
    let usage = Usage { input: MILLION, ..Usage::default() };
    assert_eq!(free.price("acme:large", &usage), Some(Money(0)), "there is no other price");
}

#[test]
fn absurd_usage_saturates_and_more_never_costs_less() {
    let mut random = fastrand::Rng::with_seed(0x5eed);
    let mut bits = || random.u64(..) >> random.u32(..32);
    let models =
        ["anthropic:claude-sonnet-4-5", "openai:gpt-5.4", "gemini:gemini-2.5-pro", "perplexity:sonar"];
    for model in models {
        let rates = known_rates(model).unwrap_or_else(|| panic!("{model} has no price"));
        for case in 0..2_000 {
            let usage = Usage {
                requests: bits() % 5,
                input: bits(),
                output: bits(),
                cache_read: bits(),
                cache_write: bits(),
                ..Usage::default()
            };
            let price = rates.cost(&usage).unwrap();
            let more = 1 + bits() % 300_000;
            for grown in [
                Usage { input: usage.input.saturating_add(more), ..usage },
                Usage { output: usage.output.saturating_add(more), ..usage },
                Usage { cache_read: usage.cache_read.saturating_add(more), ..usage },
                Usage { cache_write: usage.cache_write.saturating_add(more), ..usage },
                Usage { requests: usage.requests + more, ..usage },
            ] {
                assert!(rates.cost(&grown).unwrap() >= price, "{model}, case {case}: {usage:?} {grown:?}");
            }
        }
    }
    let most = Usage { input: u64::MAX, output: u64::MAX, cache_read: u64::MAX, ..Usage::default() };
    assert_eq!(StandardPrices::new().price("openai:gpt-5", &most), Some(Money(u64::MAX)));
}

#[test]
fn every_line_of_the_table_can_be_read() {
    for line in table::TABLE.lines().skip(1).filter(|line| !line.starts_with('@')) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [names, prices, listed] = columns[..] else { panic!("{line}") };
        assert!(!names.is_empty() && !listed.is_empty(), "{line}");
        assert!(listed.split_once(' ').is_none_or(|(_, tokens)| tokens.parse::<u64>().is_ok()), "{line}");
        assert!((prices == "-" || table::read_rates(prices).is_some()), "{line}");
    }
}
