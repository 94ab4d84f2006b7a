//! Writes the typed caller of a tool: `find_files::call(&call, "*.rs", 200)`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{Type, Visibility};

use crate::definition::Tool;
use crate::parameter::Parameter;
use crate::signature;
use crate::support::{Support, at};

/// Writes the associated function `call`, with the visibility of the tool.
pub(crate) fn tokens(tool: &Tool, visibility: &Visibility, support: &Support) -> TokenStream {
    let given: Vec<&Parameter> =
        tool.parameters.iter().filter(|parameter| !parameter.is_left_out_by_callers()).collect();
    let parameters = given.iter().map(|parameter| declared(parameter));
    let arguments = given.iter().map(|parameter| argument(parameter, support));
    let checks =
        tool.parameters.iter().filter(|parameter| parameter.is_injected_by_name()).map(|parameter| {
            let value_type = &parameter.value_type;
            quote_spanned! {at(value_type)=> {
                #[allow(unused_imports)]
                use #support::{LeftOut as _, NotLeftOut as _};
                (&&#support::Probe::<#value_type>::new()).left_out();
            }}
        });
    let answer = answer_type(tool.returned(), support);
    let reader = reader(&answer, tool.returned(), support);
    let documentation =
        format!("Calls the tool `{}` by its name, through the gate, and reads its answer.", tool.name);
    quote! {
        #[doc = #documentation]
        #[allow(dead_code, unreachable_pub, clippy::all, clippy::pedantic)]
        #visibility fn call(
            call_context: &#support::CallContext,
            #(#parameters),*
        ) -> #support::BoxFuture<'static, ::core::result::Result<#answer, #support::Failure>> {
            #(#checks)*
            #support::TypedCall::new(<Self as #support::FunctionTool>::function().definition())
                #(#arguments)*
                .send(call_context, #reader)
        }
    }
}

fn declared(parameter: &Parameter) -> TokenStream {
    let (identifier, value_type) = (&parameter.identifier, &parameter.value_type);
    if is_string(value_type) {
        quote!(#identifier: impl ::core::convert::Into<#value_type>)
    } else {
        quote!(#identifier: #value_type)
    }
}

fn argument(parameter: &Parameter, support: &Support) -> TokenStream {
    let (key, identifier, value_type) = (parameter.key(), &parameter.identifier, &parameter.value_type);
    let value = if is_string(value_type) {
        quote!(&::core::convert::Into::<#value_type>::into(#identifier))
    } else {
        quote!(&#identifier)
    };
    quote_spanned! {at(value_type)=>
        .with(#key, #value, {
            #[allow(unused_imports)]
            use #support::{
                IgnoredArgument as _, NoArgument as _, UnwritableArgument as _, WrittenArgument as _,
            };
            (&&&&#support::Probe::<#value_type>::new()).argument()
        })
    }
}

fn reader(answer: &TokenStream, returned: &Type, support: &Support) -> TokenStream {
    quote_spanned! {at(returned)=> {
        #[allow(unused_imports)]
        use #support::{NoAnswer as _, ReadAnswer as _, ResultAnswer as _};
        (&&&#support::Probe::<#answer>::new()).answer()
    }}
}

/// Returns the type of the value that a function returns: of a result, the first of its types.
fn answer_type(returned: &Type, support: &Support) -> TokenStream {
    let segment = signature::last_segment(returned);
    let Some(segment) = segment.filter(|segment| segment.ident == "Result" || segment.ident == "ToolReply")
    else {
        return owned(returned);
    };
    match signature::first_argument(segment) {
        Some(value) => owned(value),
        None => quote!(<#returned as #support::ReturnsResult>::Value),
    }
}

/// Replaces `&'static str`, which can be answered with but not read.
fn owned(value: &Type) -> TokenStream {
    match value {
        Type::Reference(reference) if matches!(&*reference.elem, Type::Path(path) if path.path.is_ident("str")) =>
        {
            quote!(::std::string::String)
        }
        other => quote!(#other),
    }
}

fn is_string(written: &Type) -> bool {
    signature::last_segment(written).is_some_and(|segment| segment.ident == "String")
}
