//! Reads the arguments of `#[tool(..)]`.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Expr, ExprLit, Ident, Lit, LitStr, Path, Token};

use crate::support::Support;

const KEYS: [&str; 10] = [
    "access",
    "approval",
    "assess",
    "description",
    "effect",
    "manual_only",
    "name",
    "no_caller",
    "sequential",
    "time_limit",
];

/// The values that a key allows, each with its variant of the enum in `core`.
type Variants = &'static [(&'static str, &'static str)];

const ACCESS: Variants = &[("read", "Read"), ("write", "Write"), ("admin", "Admin")];
const APPROVAL: Variants = &[("pre_approved", "PreApproved"), ("ask", "Ask"), ("blocked", "Blocked")];
const EFFECT: Variants =
    &[("pure", "Pure"), ("idempotent", "Idempotent"), ("once", "Once"), ("calls", "Calls")];

/// The arguments of `#[tool(..)]`. One that is absent keeps the default of the definition.
#[derive(Default)]
pub(crate) struct ToolAttributes {
    pub(crate) name: Option<LitStr>,
    pub(crate) description: Option<Expr>,
    pub(crate) assess: Option<Path>,
    pub(crate) no_caller: Option<Span>,
    access: Option<Ident>,
    approval: Option<Ident>,
    effect: Option<Ident>,
    time_limit_milliseconds: Option<u64>,
    sequential: bool,
    manual_only: bool,
}

impl ToolAttributes {
    /// Writes one assignment to the definition for each fact that differs from its default.
    pub(crate) fn settings(&self, support: &Support) -> Vec<TokenStream> {
        let access = self.access.iter().map(|variant| quote!(access = #support::Access::#variant));
        let approval = self.approval.iter().map(|variant| quote!(approval = #support::Approval::#variant));
        let effect = self.effect.iter().map(|variant| quote!(effect = #support::Effect::#variant));
        let time_limit = self.time_limit_milliseconds.iter().map(|milliseconds| {
            let duration = quote!(::core::time::Duration::from_millis(#milliseconds));
            quote!(time_limit = ::core::option::Option::Some(#duration))
        });
        let sequential = self.sequential.then(|| quote!(sequential = true));
        let manual_only = self.manual_only.then(|| quote!(manual_only = true));
        let judges = self.assess.iter().map(|_| quote!(judges_calls = true));
        let all = access
            .chain(judges)
            .chain(approval)
            .chain(effect)
            .chain(time_limit)
            .chain(sequential)
            .chain(manual_only);
        all.map(|setting| quote!(__definition.#setting;)).collect()
    }

    fn read(&mut self, key: &Ident, input: ParseStream<'_>) -> syn::Result<()> {
        match key.to_string().as_str() {
            "access" => self.access = Some(variant(key, input, ACCESS)?),
            "approval" => self.approval = Some(variant(key, input, APPROVAL)?),
            "effect" => self.effect = Some(variant(key, input, EFFECT)?),
            "name" => self.name = Some(tool_name(value(key, input, "a text")?)?),
            "description" => self.description = Some(description(value(key, input, "a text")?)?),
            "assess" => self.assess = Some(value(key, input, "the path of a function")?),
            "time_limit" => self.time_limit_milliseconds = Some(time_limit(&value(key, input, "a text")?)?),
            "sequential" => self.sequential = flag(key, input)?,
            "manual_only" => self.manual_only = flag(key, input)?,
            "no_caller" => self.no_caller = flag(key, input)?.then(|| key.span()),
            _ => return Err(unknown_key(key)),
        }
        Ok(())
    }
}

impl Parse for ToolAttributes {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut attributes = Self::default();
        let mut seen = Vec::new();
        while !input.is_empty() {
            let key = input.call(Ident::parse_any)?;
            if seen.contains(&key) {
                return Err(syn::Error::new(key.span(), format!("`{key}` is given twice: keep one")));
            }
            attributes.read(&key, input)?;
            seen.push(key);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(attributes)
    }
}

fn value<T: Parse>(key: &Ident, input: ParseStream<'_>, what: &str) -> syn::Result<T> {
    let needs_value = || syn::Error::new(key.span(), format!("`{key}` needs {what}: `{key} = ..`"));
    if !input.peek(Token![=]) {
        return Err(needs_value());
    }
    input.parse::<Token![=]>()?;
    let span = input.span();
    input.parse().map_err(|_| syn::Error::new(span, format!("`{key}` needs {what}")))
}

fn flag(key: &Ident, input: ParseStream<'_>) -> syn::Result<bool> {
    if input.peek(Token![=]) {
        return Err(input.error(format!("`{key}` takes no value: write `{key}` alone, or leave it out")));
    }
    Ok(true)
}

fn variant(key: &Ident, input: ParseStream<'_>, variants: Variants) -> syn::Result<Ident> {
    let allowed = variants.iter().map(|(name, _)| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    let text: LitStr = value(key, input, &format!("one of {allowed}"))?;
    let written = text.value();
    match variants.iter().find(|(name, _)| *name == written) {
        Some((_, variant)) => Ok(Ident::new(variant, text.span())),
        None => Err(syn::Error::new(
            text.span(),
            format!("`{key}` cannot be \"{written}\": use one of {allowed}"),
        )),
    }
}

fn tool_name(name: LitStr) -> syn::Result<LitStr> {
    check_tool_name(&name.value(), name.span())?;
    Ok(name)
}

/// Refuses a name by which no model could call a tool.
pub(crate) fn check_tool_name(name: &str, span: Span) -> syn::Result<()> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if (1..=64).contains(&name.len()) && name.bytes().all(allowed) {
        return Ok(());
    }
    let rule = "1 to 64 of the characters `A-Z`, `a-z`, `0-9`, `_` and `-`";
    Err(syn::Error::new(span, format!("`{name}` cannot name a tool: a name has {rule}")))
}

fn description(text: Expr) -> syn::Result<Expr> {
    match &text {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) if !text.value().trim().is_empty() => {}
        Expr::Macro(_) => {}
        _ => return Err(syn::Error::new_spanned(&text, "`description` needs a text that is not empty")),
    }
    Ok(text)
}

fn time_limit(text: &LitStr) -> syn::Result<u64> {
    let refuse = || {
        syn::Error::new(
            text.span(),
            "`time_limit` needs a duration such as \"500ms\", \"30s\", \"5m\" or \"1h\"",
        )
    };
    let written = text.value();
    let digits = written.find(|character: char| !character.is_ascii_digit()).unwrap_or(written.len());
    let (number, unit) = written.split_at(digits);
    let factor = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(refuse()),
    };
    let number: Option<u64> = number.parse().ok();
    number.and_then(|number| number.checked_mul(factor)).filter(|limit| *limit > 0).ok_or_else(refuse)
}

fn unknown_key(key: &Ident) -> syn::Error {
    let written = key.to_string();
    let nearest = KEYS
        .into_iter()
        .map(|known| (strsim::normalized_damerau_levenshtein(&written, known), known))
        .filter(|(likeness, _)| *likeness >= 0.5)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let hint = match nearest {
        Some((_, known)) => format!("did you mean `{known}`?"),
        None => format!("expected one of: {}", KEYS.join(", ")),
    };
    syn::Error::new(key.span(), format!("unknown key `{written}`: {hint}"))
}
