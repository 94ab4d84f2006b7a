//! What attachments cost at each provider, in tokens of input.

use llm_do_core::MediaTokens;

/// Returns how many tokens attachments cost a model at most.
///
/// Anthropic charges by pixels up to a size that newer models have doubled; OpenAI by tiles or patches, with a factor of
/// about thirty for the small models of the 4o family; Gemini by tiles. All of them scale larger images down.
pub(crate) fn media_tokens(protocol: &str, model: &str) -> MediaTokens {
    let usual = MediaTokens::default();
    match protocol {
        "anthropic" if is_older_claude(model) => MediaTokens { image: 1_600, pdf_page: 4_600, ..usual },
        "anthropic" => MediaTokens { image: 4_800, pdf_page: 7_800, ..usual },
        "openai" | "openai-chat" if model.contains("gpt-4o-mini") => {
            MediaTokens { image: 50_000, pdf_page: 53_000, ..usual }
        }
        "gemini" => MediaTokens { image: 5_000, pdf_page: 1_200, audio_second: 32, ..usual },
        _ => usual,
    }
}

/// Returns whether images are scaled to the smaller size: all models before Opus 4.7.
fn is_older_claude(model: &str) -> bool {
    ["claude-2", "claude-3", "-4-0", "-4-1", "-4-5", "-4-6", "-4-2025"]
        .iter()
        .any(|part| model.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_costs_what_its_provider_charges_at_most() {
        let image = |protocol, model| media_tokens(protocol, model).image;
        assert_eq!(image("anthropic", "claude-sonnet-4-5"), 1_600);
        assert_eq!(image("anthropic", "claude-opus-4-7"), 4_800);
        assert_eq!(image("openai-chat", "gpt-4o-mini-2024-07-18"), 50_000);
        assert_eq!(image("openai", "gpt-5"), 5_000);
        assert_eq!(image("ollama", "llava"), 5_000);
    }
}
