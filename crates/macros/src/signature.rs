//! Checks signatures, and looks at types as they are written.

use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{
    FnArg, GenericArgument, PathArguments, PathSegment, Receiver, ReturnType, Signature, Token, Type,
    TypeImplTrait, TypeReference,
};

/// Refuses what a tool cannot be: generic, unsafe, const, foreign or variadic.
pub(crate) fn check(signature: &Signature) -> syn::Result<()> {
    let refuse = |tokens: &dyn quote::ToTokens, why: &str| Err(syn::Error::new_spanned(tokens, why));
    if let Some(token) = &signature.unsafety {
        return refuse(
            token,
            "a tool cannot be `unsafe`, since its arguments come from a model: check them in the body",
        );
    }
    if let Some(token) = &signature.constness {
        return refuse(token, "a tool cannot be `const`: write `fn` or `async fn`");
    }
    if let Some(token) = &signature.abi {
        return refuse(token, "a tool cannot be `extern`: write `fn` or `async fn`");
    }
    if let Some(token) = &signature.variadic {
        return refuse(token, "a tool cannot be variadic: take a `Vec`");
    }
    if !signature.generics.params.is_empty() {
        return refuse(&signature.generics, "a tool cannot be generic: write the types that it takes");
    }
    if let Some(clause) = &signature.generics.where_clause {
        return refuse(clause, "a tool cannot be generic: remove the `where` clause");
    }
    check_return_type(&signature.output)
}

fn check_return_type(output: &ReturnType) -> syn::Result<()> {
    let ReturnType::Type(_, returned) = output else { return Ok(()) };
    refuse_unnamed(returned, "a tool cannot return `impl Trait`: name the type")?;
    refuse_borrowed(returned, "a tool cannot return a borrowed value: return an owned one, such as `String`")
}

/// Refuses `impl Trait` anywhere in a type.
pub(crate) fn refuse_unnamed(checked: &Type, why: &str) -> syn::Result<()> {
    struct Unnamed(Option<TypeImplTrait>);
    impl Visit<'_> for Unnamed {
        fn visit_type_impl_trait(&mut self, found: &TypeImplTrait) {
            self.0.get_or_insert_with(|| found.clone());
        }
    }
    let mut unnamed = Unnamed(None);
    unnamed.visit_type(checked);
    unnamed.0.map_or(Ok(()), |found| Err(syn::Error::new_spanned(found, why)))
}

/// Refuses references anywhere in a type, unless they are `'static`.
pub(crate) fn refuse_borrowed(checked: &Type, why: &str) -> syn::Result<()> {
    struct Borrowed(Option<TypeReference>);
    impl Visit<'_> for Borrowed {
        fn visit_type_reference(&mut self, found: &TypeReference) {
            if found.lifetime.as_ref().is_none_or(|lifetime| lifetime.ident != "static") {
                self.0.get_or_insert_with(|| found.clone());
            }
            visit::visit_type_reference(self, found);
        }
    }
    let mut borrowed = Borrowed(None);
    borrowed.visit_type(checked);
    borrowed.0.map_or(Ok(()), |found| Err(syn::Error::new_spanned(found, why)))
}

/// Returns the receiver of a method.
pub(crate) fn receiver(inputs: &Punctuated<FnArg, Token![,]>) -> Option<&Receiver> {
    match inputs.first() {
        Some(FnArg::Receiver(receiver)) => Some(receiver),
        _ => None,
    }
}

/// Returns the last segment of the path of a type.
pub(crate) fn last_segment(written: &Type) -> Option<&PathSegment> {
    match written {
        Type::Path(path) => path.path.segments.last(),
        Type::Paren(inner) => last_segment(&inner.elem),
        Type::Group(inner) => last_segment(&inner.elem),
        _ => None,
    }
}

/// Returns the first type between the angle brackets of a path segment.
pub(crate) fn first_argument(segment: &PathSegment) -> Option<&Type> {
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(argument) => Some(argument),
        _ => None,
    })
}
