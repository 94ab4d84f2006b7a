//! Reads doc comments.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// Returns the text of the doc comments among some attributes, unless there is none.
pub(crate) fn text(attributes: &[Attribute]) -> Option<String> {
    let lines: Vec<String> = attributes.iter().filter_map(line).collect();
    let text = lines.join("\n").trim().to_owned();
    (!text.is_empty()).then_some(text)
}

fn line(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    if !pair.path.is_ident("doc") {
        return None;
    }
    let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &pair.value else { return None };
    let text = text.value();
    // The space after `///` belongs to the comment, further ones to the text.
    Some(text.strip_prefix(' ').unwrap_or(&text).trim_end().to_owned())
}
