//! Bounds what a template may make: values, captured text and output.
//!
//! Fuel limits how many operations a rendering takes, not how large its values become: a text that is joined with itself
//! thirty times fills the memory in a hundred operations. So every value is measured when it gets a name (see
//! [`super::guard`]), when it is given to a filter and when it is written.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use minijinja::value::{Rest, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, Value, filters};

/// The filter that measures a value and writes nothing.
pub(super) const MEASURE: &str = "__measured";

/// How much larger than the limit a filter may make a value that it combines with others.
const MAX_GROWTH: usize = 64;

/// The most digits of a number in a format, such as the width in `%10d`.
const MAX_FORMAT_DIGITS: usize = 4;

/// How deep values are measured.
const MAX_DEPTH: usize = 64;

/// Adds bounds to an environment: no value, and no text of all captures together, is larger than `limit`.
pub(super) fn bind(environment: &mut Environment<'static>, limit: usize) {
    environment.add_filter(MEASURE, move |value: Value| measured(&value, limit).map(|_| ""));
    for (name, filter) in growing_filters() {
        environment.add_filter(name, move |state: &mut State<'_, '_>, arguments: Rest<Value>| {
            check_arguments(name, &arguments, limit)?;
            filter.call(state, &arguments)
        });
    }
    let written = Arc::new(AtomicUsize::new(0));
    environment.set_formatter(move |output, state, value| {
        let size = measured(value, limit)?;
        // What is written into a variable counts, too, so twice the limit is room for both.
        if written.fetch_add(size, Ordering::Relaxed).saturating_add(size) > limit.saturating_mul(2) {
            return Err(too_large(limit));
        }
        minijinja::escape_formatter(output, state, value)
    });
}

/// The filters whose result may be larger than the value that they are given, or that copy all of it.
fn growing_filters() -> [(&'static str, Value); 26] {
    [
        ("batch", Value::from_function(filters::batch)),
        ("chain", Value::from_function(filters::chain)),
        ("dictsort", Value::from_function(filters::dictsort)),
        ("e", Value::from_function(filters::escape)),
        ("escape", Value::from_function(filters::escape)),
        ("format", Value::from_function(filters::format)),
        ("groupby", Value::from_function(filters::groupby)),
        ("indent", Value::from_function(filters::indent)),
        ("items", Value::from_function(filters::items)),
        ("join", Value::from_function(filters::join)),
        ("lines", Value::from_function(filters::lines)),
        ("list", Value::from_function(filters::list)),
        ("map", Value::from_function(filters::map)),
        ("pprint", Value::from_function(filters::pprint)),
        ("replace", Value::from_function(filters::replace)),
        ("reverse", Value::from_function(filters::reverse)),
        ("select", Value::from_function(filters::select)),
        ("slice", Value::from_function(filters::slice)),
        ("sort", Value::from_function(filters::sort)),
        ("split", Value::from_function(filters::split)),
        ("string", Value::from_function(filters::string)),
        ("sum", Value::from_function(filters::sum)),
        ("title", Value::from_function(filters::title)),
        ("tojson", Value::from_function(filters::tojson)),
        ("unique", Value::from_function(filters::unique)),
        ("zip", Value::from_function(filters::zip)),
    ]
}

/// Checks what a filter is given. Its result is at most about the product: each part of the value is replaced by, or
/// joined with, the other arguments, and a number is a width or a count.
fn check_arguments(filter: &str, arguments: &[Value], limit: usize) -> Result<(), Error> {
    let mut product = 1_usize;
    for (index, argument) in arguments.iter().enumerate() {
        let number = argument.as_usize().filter(|_| index > 0);
        let size = number.map_or_else(|| measured(argument, limit), Ok)?;
        product = product.saturating_mul(size.max(1));
    }
    if product > limit.saturating_mul(MAX_GROWTH) {
        return Err(too_large(limit));
    }
    let format = arguments.first().and_then(Value::as_str).filter(|_| filter == "format");
    let mut digits = format.into_iter().flat_map(|format| format.split(|c: char| !c.is_ascii_digit()));
    match digits.any(|digits| digits.len() > MAX_FORMAT_DIGITS) {
        true => Err(too_large(limit)),
        false => Ok(()),
    }
}

/// Returns about how many bytes a value has when it is written, or an error if they are more than the limit.
fn measured(value: &Value, limit: usize) -> Result<usize, Error> {
    let mut left = limit;
    measure(value, &mut left, MAX_DEPTH).ok_or_else(|| too_large(limit))?;
    Ok(limit - left)
}

fn measure(value: &Value, left: &mut usize, depth: usize) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    if let Some(text) = value.as_str() {
        *left = left.checked_sub(text.len().max(1))?;
        return Some(());
    }
    *left = left.checked_sub(1)?;
    let is_map = value.kind() == ValueKind::Map;
    if !is_map && !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) {
        return Some(());
    }
    for item in value.try_iter().ok()? {
        if is_map {
            measure(&value.get_item(&item).ok()?, left, depth)?;
        }
        measure(&item, left, depth)?;
    }
    Some(())
}

pub(super) fn too_large(limit: usize) -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("a text or value is larger than {limit} bytes"))
}

/// Collects output up to a limit.
pub(super) struct BoundedOutput {
    pub(super) bytes: Vec<u8>,
    pub(super) limit: usize,
}

impl io::Write for BoundedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.limit {
            return Err(io::Error::other(format!("the text is larger than {} bytes", self.limit)));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
