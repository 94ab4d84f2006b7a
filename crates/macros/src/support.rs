//! The path to the code that the macros refer to.

use proc_macro_crate::{FoundCrate, crate_name};
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote};

/// The path to the `macros` module, from wherever a macro is used.
pub(crate) struct Support(TokenStream);

impl Support {
    /// Finds the crate that the user depends on: `llm-do`, which passes everything on, or `llm-do-core`.
    pub(crate) fn find() -> syn::Result<Self> {
        let found = ["llm-do", "llm-do-core"]
            .into_iter()
            .find_map(|package| crate_name(package).ok().map(|found| extern_name(package, found)));
        let Some(name) = found else {
            return Err(syn::Error::new(Span::call_site(), "add `llm-do` to the dependencies of this crate"));
        };
        let name = format_ident!("{name}");
        Ok(Self(quote!(::#name::macros)))
    }
}

fn extern_name(package: &str, found: FoundCrate) -> String {
    match found {
        FoundCrate::Itself => package.replace('-', "_"),
        FoundCrate::Name(name) => name,
    }
}

impl ToTokens for Support {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        self.0.to_tokens(tokens);
    }
}

/// Returns a span that points at the user's code but counts as written by a macro, so that lints about style
/// leave it alone.
pub(crate) fn at(node: &impl syn::spanned::Spanned) -> Span {
    Span::mixed_site().located_at(node.span())
}
