//! `#[tool]` on a free function.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::{Attribute, Ident, Item, ItemFn, Visibility};

use crate::attributes::ToolAttributes;
use crate::definition::{Callee, Tool};
use crate::support::{Support, at};
use crate::{caller, signature};

/// Writes the unit type of a function, and what makes it a tool.
pub(crate) fn expand(attributes: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let attributes: ToolAttributes = syn::parse2(attributes)?;
    let mut function = read_function(item)?;
    if let Some(receiver) = signature::receiver(&function.sig.inputs) {
        return Err(syn::Error::new_spanned(
            receiver,
            "a tool with `self` needs `#[toolset]` on its `impl` block",
        ));
    }
    let tool = Tool::read(attributes, &function.attrs, &mut function.sig)?;
    Ok(write(&tool, function, &Support::find()?))
}

fn read_function(item: TokenStream) -> syn::Result<ItemFn> {
    match syn::parse2::<Item>(item)? {
        Item::Fn(function) => Ok(function),
        other => Err(syn::Error::new_spanned(
            keyword(&other),
            "`#[tool]` goes on a function: write it above a `fn`",
        )),
    }
}

/// Returns what an error about an item shall point at.
fn keyword(item: &Item) -> TokenStream {
    match item {
        Item::Struct(item) => item.struct_token.to_token_stream(),
        Item::Enum(item) => item.enum_token.to_token_stream(),
        Item::Impl(item) => item.impl_token.to_token_stream(),
        Item::Mod(item) => item.mod_token.to_token_stream(),
        Item::Trait(item) => item.trait_token.to_token_stream(),
        other => other.to_token_stream(),
    }
}

fn write(tool: &Tool, function: ItemFn, support: &Support) -> TokenStream {
    let name = function.sig.ident.clone();
    let visibility = function.vis.clone();
    let conditions: Vec<Attribute> =
        function.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg")).cloned().collect();
    let unit_type = unit_type(tool, &function);
    let description = tool.function(support, &Callee::Direct(name.clone()));
    let caller = tool.attributes.no_caller.is_none().then(|| caller::tokens(tool, &visibility, support));
    let direct = direct(function);
    quote! {
        #unit_type

        #(#conditions)*
        #[allow(deprecated)]
        const _: () = {
            impl #name {
                #caller
                #direct
            }

            impl #support::FunctionTool for #name {
                #[allow(clippy::all, clippy::pedantic)]
                fn function() -> &'static #support::Function<()> {
                    static __FUNCTION: ::std::sync::LazyLock<#support::Function<()>> =
                        ::std::sync::LazyLock::new(|| #description);
                    &__FUNCTION
                }
            }

            impl ::core::convert::From<#name> for ::std::sync::Arc<dyn #support::Tool> {
                fn from(__tool: #name) -> Self {
                    ::std::sync::Arc::new(__tool)
                }
            }
        };
    }
}

fn unit_type(tool: &Tool, function: &ItemFn) -> TokenStream {
    let (name, visibility): (&Ident, &Visibility) = (&function.sig.ident, &function.vis);
    let passed_on = ["doc", "cfg", "deprecated", "allow"];
    let attributes = function
        .attrs
        .iter()
        .filter(|attribute| passed_on.iter().any(|name| attribute.path().is_ident(name)));
    let documented = function.attrs.iter().any(|attribute| attribute.path().is_ident("doc"));
    let description = &tool.description;
    let documentation = (!documented).then(|| quote!(#[doc = #description]));
    quote_spanned! {at(name)=>
        #(#attributes)*
        #documentation
        #[allow(non_camel_case_types)]
        #[derive(::core::fmt::Debug, ::core::clone::Clone, ::core::marker::Copy)]
        #visibility struct #name;
    }
}

/// Writes the function itself, which keeps its attributes and its visibility.
fn direct(mut function: ItemFn) -> TokenStream {
    function
        .attrs
        .retain(|attribute| !["doc", "cfg", "deprecated"].iter().any(|name| attribute.path().is_ident(name)));
    function.sig.ident = Ident::new("direct", function.sig.ident.span());
    quote! {
        /// Runs the function itself, past the gate: for tests of its code.
        #[allow(unreachable_pub)]
        #function
    }
}
