//! Reads the parameters of a function and writes how each gets its value.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{Attribute, Expr, ExprLit, ExprUnary, FnArg, Ident, Lit, Pat, PatIdent, PatType, Type, UnOp};

use crate::support::{Support, at};
use crate::{documentation, signature};

/// Types that are injected, by the names under which they are known.
const INJECTED: [&str; 5] = ["Need", "CallContext", "Cancellation", "Progress", "Approved"];

const NUMBERS_AND_THE_LIKE: [&str; 16] = [
    "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32", "f64",
    "bool", "char",
];

/// A parameter as it is written.
pub(crate) struct Parameter {
    /// Its identifier, perhaps raw.
    pub(crate) identifier: Ident,
    /// Its type, without the reference by which an injected value may be taken.
    pub(crate) value_type: Type,
    /// Whether the function takes it by reference.
    pub(crate) by_reference: bool,
    source: ValueSource,
    description: String,
    default: Option<Expr>,
}

/// Where the value of a parameter comes from, as far as that can be read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueSource {
    /// From the model, or from the call if the type turns out to be injected.
    ByType,
    /// From the call, judging by the name of its type.
    InjectedByName,
    /// From the call, since it is marked with `#[inject]`.
    Marked,
}

/// Reads the typed parameters of a function and removes the attributes that are meant for the macro.
pub(crate) fn read_all<'a>(inputs: impl Iterator<Item = &'a mut FnArg>) -> syn::Result<Vec<Parameter>> {
    let typed = inputs.filter_map(|input| match input {
        FnArg::Typed(typed) => Some(typed),
        FnArg::Receiver(_) => None,
    });
    typed.map(Parameter::read).collect()
}

impl Parameter {
    fn read(typed: &mut PatType) -> syn::Result<Self> {
        let attributes = std::mem::take(&mut typed.attrs);
        let (own, others) = attributes.into_iter().partition(is_for_the_macro);
        typed.attrs = others;
        refuse_conditional(&typed.attrs)?;

        let marked = find_mark(&own)?;
        let source = if marked { ValueSource::Marked } else { source_by_name(&typed.ty) };
        let (value_type, by_reference) = value_type(&typed.ty, source)?;
        Ok(Self {
            identifier: identifier(&typed.pat)?,
            value_type,
            by_reference,
            source,
            description: documentation::text(&own).unwrap_or_default(),
            default: find_default(&own, source)?,
        })
    }

    /// Returns the key of the parameter in the arguments.
    pub(crate) fn key(&self) -> String {
        self.identifier.unraw().to_string()
    }

    /// Returns whether a typed caller leaves the parameter out.
    pub(crate) fn is_left_out_by_callers(&self) -> bool {
        self.source != ValueSource::ByType
    }

    /// Returns whether the parameter is left out because of a name, which another type might have as well.
    pub(crate) fn is_injected_by_name(&self) -> bool {
        self.source == ValueSource::InjectedByName
    }

    /// Writes the parameter as a value of the support module's `Parameter`.
    pub(crate) fn tokens(&self, support: &Support) -> TokenStream {
        let facts = self.facts(support);
        let value_type = &self.value_type;
        let span = at(value_type);
        // A parameter with a default is the model's, so the first choice is not offered.
        let injected = self.default.is_none().then(|| quote!(InjectedParameter as _,));
        match self.source {
            ValueSource::Marked => {
                quote_spanned!(span=> #support::Probe::<#value_type>::new().injected(#facts))
            }
            ValueSource::ByType | ValueSource::InjectedByName => quote_spanned! {span=> {
                #[allow(unused_imports)]
                use #support::{#injected InputParameter as _, NoParameter as _};
                (&&&#support::Probe::<#value_type>::new()).parameter(#facts)
            }},
        }
    }

    fn facts(&self, support: &Support) -> TokenStream {
        let key = self.key();
        let description = &self.description;
        let default = match &self.default {
            Some(default) => {
                let json = self.default_json(default, support);
                quote!(::core::option::Option::Some(|| #json))
            }
            None => quote!(::core::option::Option::None),
        };
        quote!(#support::Facts { name: #key, description: #description, default: #default })
    }

    /// Writes a default as JSON. Where its type is plain to see, the compiler checks it.
    fn default_json(&self, default: &Expr, support: &Support) -> TokenStream {
        let value_type = &self.value_type;
        if is_number_or_the_like(value_type) {
            return quote!({ let __default: #value_type = #default; #support::default_json(__default) });
        }
        if is_plain_integer(default) {
            // Otherwise it would have to fit into 32 bits.
            return quote!({ let __default: ::core::primitive::i128 = #default; #support::default_json(__default) });
        }
        quote!(#support::default_json(#default))
    }
}

fn is_for_the_macro(attribute: &Attribute) -> bool {
    ["doc", "default", "inject"].iter().any(|name| attribute.path().is_ident(name))
}

fn refuse_conditional(attributes: &[Attribute]) -> syn::Result<()> {
    match attributes.iter().find(|attribute| attribute.path().is_ident("cfg")) {
        Some(attribute) => Err(syn::Error::new_spanned(
            attribute,
            "a parameter of a tool cannot be conditional: put `#[cfg]` on the function",
        )),
        None => Ok(()),
    }
}

fn find_mark(attributes: &[Attribute]) -> syn::Result<bool> {
    match attributes.iter().find(|attribute| attribute.path().is_ident("inject")) {
        Some(attribute) => attribute.meta.require_path_only().map(|_| true),
        None => Ok(false),
    }
}

fn find_default(attributes: &[Attribute], source: ValueSource) -> syn::Result<Option<Expr>> {
    let Some(attribute) = attributes.iter().find(|attribute| attribute.path().is_ident("default")) else {
        return Ok(None);
    };
    if source != ValueSource::ByType {
        let why = "an injected parameter has no default: remove `#[default]`";
        return Err(syn::Error::new_spanned(attribute, why));
    }
    let explain = |_| syn::Error::new_spanned(attribute, "`#[default]` needs a value: `#[default(200)]`");
    attribute.parse_args().map(Some).map_err(explain)
}

fn identifier(pattern: &Pat) -> syn::Result<Ident> {
    match pattern {
        Pat::Ident(PatIdent { ident, by_ref: None, subpat: None, .. }) => Ok(ident.clone()),
        other => Err(syn::Error::new_spanned(
            other,
            "a parameter of a tool needs a plain name, which is its key in the arguments: take it apart in the body",
        )),
    }
}

fn source_by_name(written: &Type) -> ValueSource {
    let inner = match written {
        Type::Reference(reference) => &reference.elem,
        other => other,
    };
    if is_named_injected(inner) { ValueSource::InjectedByName } else { ValueSource::ByType }
}

fn is_named_injected(written: &Type) -> bool {
    let Some(segment) = signature::last_segment(written) else { return false };
    if segment.ident == "Option" {
        let wrapped = signature::first_argument(segment).and_then(signature::last_segment);
        return wrapped.is_some_and(|segment| segment.ident == "Need");
    }
    INJECTED.iter().any(|name| segment.ident == name)
}

/// Splits a type into the type of the value and whether it is taken by reference.
fn value_type(written: &Type, source: ValueSource) -> syn::Result<(Type, bool)> {
    signature::refuse_unnamed(written, "a tool cannot be generic: write the type of the parameter")?;
    match written {
        Type::Reference(reference) if source != ValueSource::ByType => {
            if let Some(token) = &reference.mutability {
                return Err(syn::Error::new_spanned(
                    token,
                    "an injected parameter cannot be `mut`: take `&`",
                ));
            }
            Ok(((*reference.elem).clone(), true))
        }
        _ => {
            let owned = "a parameter that the model gives is owned: take `String` or `Vec` instead of a reference, \
                         or mark an injected one with `#[inject]`";
            signature::refuse_borrowed(written, owned)?;
            Ok((written.clone(), false))
        }
    }
}

fn is_number_or_the_like(written: &Type) -> bool {
    matches!(written, Type::Path(path) if NUMBERS_AND_THE_LIKE.iter().any(|name| path.path.is_ident(name)))
}

fn is_plain_integer(value: &Expr) -> bool {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number.suffix().is_empty(),
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => is_plain_integer(expr),
        _ => false,
    }
}
