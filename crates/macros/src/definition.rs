//! Writes a function as a value of the support module's `Function`: definition, parameters, result, body.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{Attribute, Expr, Ident, Path, ReturnType, Signature, Type, parse_quote};

use crate::attributes::{ToolAttributes, check_tool_name};
use crate::parameter::Parameter;
use crate::support::{Support, at};
use crate::{documentation, signature};

/// A function that shall be a tool, checked.
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) description: Expr,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) attributes: ToolAttributes,
    is_async: bool,
    returned: Type,
}

impl Tool {
    /// Reads a function; removes the attributes of its parameters that are meant for the macro.
    pub(crate) fn read(
        attributes: ToolAttributes,
        documentation: &[Attribute],
        signature: &mut Signature,
    ) -> syn::Result<Self> {
        signature::check(signature)?;
        Ok(Self {
            name: name(&attributes, &signature.ident)?,
            description: description(&attributes, documentation, &signature.ident)?,
            parameters: crate::parameter::read_all(signature.inputs.iter_mut())?,
            attributes,
            is_async: signature.asyncness.is_some(),
            returned: returned_type(&signature.output),
        })
    }

    /// Returns what the function returns.
    pub(crate) fn returned(&self) -> &Type {
        &self.returned
    }

    /// Writes the whole, given how the function is called and assessed.
    pub(crate) fn function(&self, support: &Support, callee: &Callee) -> TokenStream {
        let (name, description) = (&self.name, &self.description);
        let parameters = nested(self.parameters.iter().map(|parameter| parameter.tokens(support)));
        let reply = self.reply(support);
        let settings = self.attributes.settings(support);
        let mutable = (!settings.is_empty()).then(|| quote!(mut));
        let constructor = if self.is_async { quote!(asynchronous) } else { quote!(blocking) };
        let (state, body) = (callee.state_type(), self.body(callee));
        let assess = self.attributes.assess.as_ref().map(|assess| callee.assess(assess));
        quote! {{
            let __parameters = #parameters;
            let __reply = #reply;
            let #mutable __definition = #support::define(#name, #description, &__parameters, &__reply);
            #(#settings)*
            #support::Function::<#state>::#constructor(__definition, __parameters, __reply, #body) #assess
        }}
    }

    fn reply(&self, support: &Support) -> TokenStream {
        let returned = &self.returned;
        quote_spanned! {at(returned)=> {
            #[allow(unused_imports)]
            use #support::{
                DescribedValue as _, FallibleReturn as _, NoValue as _, OutputValue as _, PlainReturn as _,
                SerializedValue as _, UnknownErrorReturn as _,
            };
            let __returned = (&&&#support::Probe::<#returned>::new()).returned();
            __returned.written((&&&&__returned.value()).written())
        }}
    }

    /// Writes the closure that takes the state and the values and calls the function.
    fn body(&self, callee: &Callee) -> TokenStream {
        let values: Vec<Ident> = (0..self.parameters.len()).map(value_name).collect();
        let pattern = nested(values.iter().map(|value| quote!(#value)));
        let given = self.parameters.iter().zip(&values).map(|(parameter, value)| {
            let reference = parameter.by_reference.then(|| quote!(&));
            quote!(#reference #value)
        });
        let arguments = callee.receiver().into_iter().chain(given);
        let (state, path) = (callee.state(), callee.path());
        if self.is_async {
            quote!(|#state, #pattern| async move { #path(#(#arguments),*).await })
        } else {
            quote!(|#state, #pattern| #path(#(#arguments),*))
        }
    }
}

/// How the function of a tool is called.
pub(crate) enum Callee {
    /// As an associated function of the unit type of this name.
    Direct(Ident),
    /// As a method of an instance.
    Method(Ident),
}

impl Callee {
    fn state_type(&self) -> TokenStream {
        match self {
            Self::Direct(_) => quote!(()),
            Self::Method(_) => quote!(::std::sync::Arc<Self>),
        }
    }

    fn state(&self) -> TokenStream {
        match self {
            Self::Direct(_) => quote!(()),
            Self::Method(_) => quote!(__instance),
        }
    }

    fn receiver(&self) -> Option<TokenStream> {
        match self {
            Self::Direct(_) => None,
            Self::Method(_) => Some(quote!(&__instance)),
        }
    }

    fn path(&self) -> TokenStream {
        match self {
            Self::Direct(unit_type) => quote!(#unit_type::direct),
            Self::Method(name) => quote!(Self::#name),
        }
    }

    fn assess(&self, assess: &Path) -> TokenStream {
        let span = at(assess);
        match self {
            Self::Direct(_) => {
                quote_spanned!(span=> .assessed_by(|(), __input, __call| #assess(__input, __call)))
            }
            Self::Method(_) => quote_spanned! {span=>
                .assessed_by(|__instance, __input, __call| #assess(__instance, __input, __call))
            },
        }
    }
}

fn name(attributes: &ToolAttributes, function: &Ident) -> syn::Result<String> {
    if let Some(name) = &attributes.name {
        return Ok(name.value());
    }
    let name = function.unraw().to_string();
    check_tool_name(&name, function.span())?;
    Ok(name)
}

fn description(
    attributes: &ToolAttributes,
    documentation: &[Attribute],
    function: &Ident,
) -> syn::Result<Expr> {
    if let Some(description) = &attributes.description {
        return Ok(description.clone());
    }
    match documentation::text(documentation) {
        Some(text) => Ok(parse_quote!(#text)),
        None => Err(syn::Error::new(
            function.span(),
            "describe the tool: add a doc comment or `description = ..`, from which the model learns what it does",
        )),
    }
}

fn returned_type(output: &ReturnType) -> Type {
    match output {
        ReturnType::Type(_, returned) => (**returned).clone(),
        ReturnType::Default => parse_quote!(()),
    }
}

fn value_name(index: usize) -> Ident {
    format_ident!("__value{index}", span = Span::mixed_site())
}

/// Nests a list: `(first, (second, ()))`.
fn nested(items: impl DoubleEndedIterator<Item = TokenStream>) -> TokenStream {
    items.rev().fold(quote!(()), |rest, item| quote!((#item, #rest)))
}
