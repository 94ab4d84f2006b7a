//! `#[toolset]` on an `impl` block.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{Attribute, Ident, ImplItem, ImplItemFn, ItemImpl, Meta, ReturnType, Signature, Type};

use crate::attributes::ToolAttributes;
use crate::definition::{Callee, Tool};
use crate::signature;
use crate::support::{Support, at};

/// Writes the block as it is, and what makes its marked methods the tools of a toolset.
pub(crate) fn expand(attributes: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    if !attributes.is_empty() {
        return Err(syn::Error::new_spanned(
            attributes,
            "`#[toolset]` takes nothing: give the name to `toolset(..)`",
        ));
    }
    let mut block: ItemImpl = syn::parse2(item)
        .map_err(|error| syn::Error::new(error.span(), "`#[toolset]` goes on a block `impl Type { .. }`"))?;
    check_block(&block)?;
    let methods = read_methods(&mut block)?;
    Ok(write(&block, &methods, &Support::find()?))
}

fn check_block(block: &ItemImpl) -> syn::Result<()> {
    if let Some((_, path, _)) = &block.trait_ {
        return Err(syn::Error::new_spanned(
            path,
            "`#[toolset]` goes on the methods of the type itself: `impl Type { .. }`",
        ));
    }
    if !block.generics.params.is_empty() {
        return Err(syn::Error::new_spanned(&block.generics, "a toolset cannot be generic: write the type"));
    }
    Ok(())
}

/// The methods that matter to a toolset.
#[derive(Default)]
struct Methods {
    tools: Vec<Method>,
    close: Option<Ident>,
}

struct Method {
    name: Ident,
    tool: Tool,
    conditions: Vec<Attribute>,
}

/// Reads the marked methods and removes their marks. All errors are reported together.
fn read_methods(block: &mut ItemImpl) -> syn::Result<Methods> {
    let mut methods = Methods::default();
    let mut errors: Option<syn::Error> = None;
    for item in &mut block.items {
        let ImplItem::Fn(method) = item else { continue };
        if let Err(error) = methods.read(method) {
            match &mut errors {
                Some(errors) => errors.combine(error),
                None => errors = Some(error),
            }
        }
    }
    match errors {
        Some(errors) => Err(errors),
        None if methods.tools.is_empty() => Err(syn::Error::new_spanned(
            &block.self_ty,
            "a toolset needs tools: mark a method with `#[tool]`",
        )),
        None => Ok(methods),
    }
}

impl Methods {
    fn read(&mut self, method: &mut ImplItemFn) -> syn::Result<()> {
        let close = take_mark(&mut method.attrs, "close");
        let tool = take_mark(&mut method.attrs, "tool");
        match (tool, close) {
            (Some(tool), None) => self.add_tool(&tool, method),
            (None, Some(close)) => self.set_close(&close, &method.sig),
            (None, None) => Ok(()),
            (Some(_), Some(close)) => {
                Err(syn::Error::new_spanned(close, "a method is a tool or closes the instance, not both"))
            }
        }
    }

    fn add_tool(&mut self, mark: &Attribute, method: &mut ImplItemFn) -> syn::Result<()> {
        let attributes = read_attributes(mark)?;
        check_receiver(&method.sig)?;
        let tool = Tool::read(attributes, &method.attrs, &mut method.sig)?;
        if self.tools.iter().any(|other| other.tool.name == tool.name) {
            let why =
                format!("two tools of one toolset are named `{}`: give one another `name = ..`", tool.name);
            return Err(syn::Error::new(method.sig.ident.span(), why));
        }
        let is_condition = |attribute: &&Attribute| attribute.path().is_ident("cfg");
        let conditions = method.attrs.iter().filter(is_condition).cloned().collect();
        self.tools.push(Method { name: method.sig.ident.clone(), tool, conditions });
        Ok(())
    }

    fn set_close(&mut self, mark: &Attribute, signature: &Signature) -> syn::Result<()> {
        mark.meta.require_path_only()?;
        if !is_close(signature) {
            let why = "the method that closes an instance has this form: `async fn close(&self)`";
            return Err(syn::Error::new_spanned(signature, why));
        }
        match self.close {
            Some(_) => Err(syn::Error::new_spanned(
                mark,
                "an instance is closed by one method: remove one `#[close]`",
            )),
            None => {
                self.close = Some(signature.ident.clone());
                Ok(())
            }
        }
    }
}

/// Removes the attribute of a name, with or without a path before it.
fn take_mark(attributes: &mut Vec<Attribute>, name: &str) -> Option<Attribute> {
    let is_mark =
        |attribute: &Attribute| attribute.path().segments.last().is_some_and(|segment| segment.ident == name);
    attributes.iter().position(is_mark).map(|index| attributes.remove(index))
}

fn read_attributes(mark: &Attribute) -> syn::Result<ToolAttributes> {
    let attributes: ToolAttributes = match &mark.meta {
        Meta::Path(_) => ToolAttributes::default(),
        Meta::List(list) => list.parse_args()?,
        Meta::NameValue(_) => return Err(syn::Error::new_spanned(mark, "write `#[tool(..)]` or `#[tool]`")),
    };
    match attributes.no_caller {
        Some(span) => {
            Err(syn::Error::new(span, "the tools of a toolset have no typed caller: remove `no_caller`"))
        }
        None => Ok(attributes),
    }
}

fn check_receiver(signature: &Signature) -> syn::Result<()> {
    match signature::receiver(&signature.inputs) {
        None => Err(syn::Error::new(
            signature.ident.span(),
            "a tool of a toolset takes `&self`: add it, or make a tool of a free function",
        )),
        Some(receiver) if is_shared(receiver) => Ok(()),
        Some(receiver) => Err(syn::Error::new_spanned(
            receiver,
            "a tool of a toolset takes `&self`, since calls run in parallel: keep what changes in a `Mutex`",
        )),
    }
}

fn is_shared(receiver: &syn::Receiver) -> bool {
    receiver.reference.is_some() && receiver.mutability.is_none() && receiver.colon_token.is_none()
}

fn is_close(signature: &Signature) -> bool {
    let returns_nothing = match &signature.output {
        ReturnType::Default => true,
        ReturnType::Type(_, returned) => matches!(&**returned, Type::Tuple(tuple) if tuple.elems.is_empty()),
    };
    signature.asyncness.is_some()
        && signature.unsafety.is_none()
        && signature.generics.params.is_empty()
        && signature.inputs.len() == 1
        && signature::receiver(&signature.inputs).is_some_and(is_shared)
        && returns_nothing
}

fn write(block: &ItemImpl, methods: &Methods, support: &Support) -> TokenStream {
    let instance = &block.self_ty;
    let factories = factories(instance, support);
    let functions = methods.tools.iter().map(|method| {
        let conditions = &method.conditions;
        let function = method.tool.function(support, &Callee::Method(method.name.clone()));
        quote!(#(#conditions)* __functions.push(#function);)
    });
    let release = methods.close.as_ref().map(|close| {
        quote! {
            fn release(&self) -> #support::BoxFuture<'_, ()> {
                ::std::boxed::Box::pin(Self::#close(self))
            }
        }
    });
    let implementation = quote_spanned!(at(instance)=> impl #support::Instance for #instance);
    quote! {
        #block

        #factories

        #implementation {
            #[allow(deprecated, clippy::all, clippy::pedantic)]
            fn functions() -> ::std::vec::Vec<#support::Function<::std::sync::Arc<Self>>> {
                let mut __functions = ::std::vec::Vec::new();
                #(#functions)*
                __functions
            }

            #release
        }
    }
}

// A parameter cannot have the name of a unit type in scope, hence of a tool beside it: so these names are such
// that no tool will have them.
fn factories(instance: &Type, support: &Support) -> TokenStream {
    quote! {
        impl #instance {
            /// Makes a toolset of this type: each agent call opens an instance of its own, by this function.
            #[allow(dead_code, unreachable_pub)]
            pub fn toolset(
                toolset_name: impl ::core::convert::Into<#support::Name>,
                open_instance: impl ::core::ops::Fn(#support::Opening<'_>) -> ::core::result::Result<Self, #support::ToolError>
                    + ::core::marker::Send + ::core::marker::Sync + 'static,
            ) -> #support::InstanceToolset<Self> {
                #support::InstanceToolset::new(toolset_name, open_instance)
            }

            /// Makes a toolset of this type, whose instances take time to open.
            #[allow(dead_code, unreachable_pub)]
            pub fn toolset_async(
                toolset_name: impl ::core::convert::Into<#support::Name>,
                open_instance: impl for<'a> ::core::ops::Fn(
                    #support::Opening<'a>,
                ) -> #support::BoxFuture<'a, ::core::result::Result<Self, #support::ToolError>>
                    + ::core::marker::Send + ::core::marker::Sync + 'static,
            ) -> #support::InstanceToolset<Self> {
                #support::InstanceToolset::new_async(toolset_name, open_instance)
            }
        }
    }
}
