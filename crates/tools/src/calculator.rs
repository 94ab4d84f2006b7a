//! A calculator: arithmetic on decimal numbers, without effects and within bounds.
//!
//! An expression is read and evaluated in one pass. Names mean the listed functions and constants and nothing else.

use std::sync::Arc;

use futures::future::BoxFuture;
use llm_do_core::{
    Access, Approval, Approved, CallContext, Effect, Name, Schema, SchemaError, StatelessToolset, Tool,
    ToolDefinition, ToolError, ToolReply, Toolset, nearest,
};
use schemars::JsonSchema;
use serde::Deserialize;

/// The longest expression, in bytes.
const MAX_LEN: usize = 1_000;

/// How deep an expression may be nested.
const MAX_DEPTH: usize = 100;

/// The most decimal places of a result.
const MAX_DECIMALS: u8 = 15;

/// The greatest number whose factorial is a finite number.
const GREATEST_FACTORIAL: f64 = 170.0;

/// No integer is exact beyond this.
const EXACT: f64 = 9_007_199_254_740_992.0;

const CONSTANTS: [(&str, f64); 3] =
    [("pi", std::f64::consts::PI), ("e", std::f64::consts::E), ("tau", std::f64::consts::TAU)];

/// A function of one number.
type Function = fn(f64) -> f64;

const FUNCTIONS: [(&str, Function); 18] = [
    ("abs", f64::abs),
    ("sqrt", f64::sqrt),
    ("exp", f64::exp),
    ("log", f64::ln),
    ("log10", f64::log10),
    ("log2", f64::log2),
    ("sin", f64::sin),
    ("cos", f64::cos),
    ("tan", f64::tan),
    ("asin", f64::asin),
    ("acos", f64::acos),
    ("atan", f64::atan),
    ("degrees", f64::to_degrees),
    ("radians", f64::to_radians),
    ("ceil", f64::ceil),
    ("floor", f64::floor),
    ("trunc", f64::trunc),
    ("factorial", factorial),
];

/// Functions of several numbers.
const OF_SEVERAL: [&str; 4] = ["round", "min", "max", "gcd"];

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// What to calculate, such as `2 * (3 + sqrt(16))`. Operators: + - * / // % **. Functions: abs round min max
    /// sqrt exp log log10 log2 sin cos tan asin acos atan degrees radians ceil floor trunc factorial gcd.
    /// Constants: pi e tau.
    expression: String,
    /// How many decimal places the result has at most: 0 to 15.
    #[serde(default = "usual_places")]
    #[schemars(range(min = 0, max = 15))]
    precision: u8,
}

fn usual_places() -> u8 {
    6
}

/// Makes the toolset `pocket_calculator`. It has another name than its tool, which is one that agents like to have.
pub(crate) fn toolset(name: Name) -> Result<Arc<dyn Toolset>, SchemaError> {
    let input = Schema::for_type::<Arguments>()?;
    let mut definition = ToolDefinition::new("calculator", "Calculates an arithmetic expression.", input);
    definition.toolset = Some(name.clone());
    definition.access = Access::Read;
    definition.approval = Approval::PreApproved;
    definition.effect = Effect::Pure;
    let tool: Arc<dyn Tool> = Arc::new(Calculator { definition: Arc::new(definition) });
    Ok(Arc::new(StatelessToolset::new(name, [tool])))
}

struct Calculator {
    definition: Arc<ToolDefinition>,
}

impl Tool for Calculator {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    fn assesses(&self) -> bool {
        false
    }

    fn run<'a>(&'a self, input: Approved, _call: &'a CallContext) -> BoxFuture<'a, ToolReply> {
        Box::pin(async move {
            let arguments: Arguments = serde_json::from_value(input.value().clone())
                .map_err(|error| ToolError::new(error.to_string()))?;
            let value = calculate(&arguments.expression).map_err(ToolError::new)?;
            Ok(written(value, arguments.precision.min(MAX_DECIMALS)).into())
        })
    }
}

/// Calculates an expression, or says what is wrong with it.
fn calculate(expression: &str) -> Result<f64, String> {
    if expression.len() > MAX_LEN {
        return Err(format!("the expression has more than {MAX_LEN} bytes"));
    }
    let mut parser = ExpressionParser { text: expression, at: 0, depth: 0 };
    let value = parser.sum()?;
    match parser.peek() {
        None => Ok(value),
        Some('^') => Err("`^` is not an operator here: write `**` for a power".to_owned()),
        Some(c) => Err(format!("unexpected `{c}` after the expression{}", parser.describe_position())),
    }
}

/// A number with at most so many decimals, without zeros at its end.
fn written(value: f64, decimals: u8) -> String {
    if value != 0.0 && (value.abs() >= 1e21 || value.abs() < 0.5 * 10f64.powi(-i32::from(decimals))) {
        return format!("{value:.*e}", usize::from(decimals));
    }
    let text = format!("{value:.*}", usize::from(decimals));
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

fn factorial(number: f64) -> f64 {
    // What is not a count has no factorial; the caller refuses what is not finite.
    if number < 0.0 || number.fract() != 0.0 || number > GREATEST_FACTORIAL {
        return f64::NAN;
    }
    let mut product = 1.0;
    let mut factor = 2.0;
    while factor <= number {
        product *= factor;
        factor += 1.0;
    }
    product
}

/// Reads an expression and calculates it: sums of products of powers.
struct ExpressionParser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl ExpressionParser<'_> {
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next()
    }

    /// Takes an operator where it comes next.
    fn takes(&mut self, operator: &str) -> bool {
        self.peek();
        let is_next = self.text[self.at..].starts_with(operator);
        if is_next {
            self.at += operator.len();
        }
        is_next
    }

    fn describe_position(&self) -> String {
        format!(" at character {}", self.text[..self.at].chars().count() + 1)
    }

    fn sum(&mut self) -> Result<f64, String> {
        let mut value = self.product()?;
        loop {
            value = if self.takes("+") {
                finite(value + self.product()?)?
            } else if self.takes("-") {
                finite(value - self.product()?)?
            } else {
                return Ok(value);
            };
        }
    }

    fn product(&mut self) -> Result<f64, String> {
        let mut value = self.signed()?;
        loop {
            value = if self.takes("//") {
                finite((value / divisor(self.signed()?)?).floor())?
            } else if self.takes("/") {
                finite(value / divisor(self.signed()?)?)?
            } else if self.takes("%") {
                let by = divisor(self.signed()?)?;
                finite(value - by * (value / by).floor())?
            } else if self.takes("*") {
                finite(value * self.signed()?)?
            } else {
                return Ok(value);
            };
        }
    }

    /// A character binds less than a power: `-2 ** 2` is -4. Everything that is nested passes here, so depth is counted
    /// here.
    fn signed(&mut self) -> Result<f64, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("the expression is nested more than {MAX_DEPTH} times"));
        }
        let value = if self.takes("-") {
            -self.signed()?
        } else if self.takes("+") {
            self.signed()?
        } else {
            self.power()?
        };
        self.depth -= 1;
        Ok(value)
    }

    fn power(&mut self) -> Result<f64, String> {
        let base = self.atom()?;
        if !self.takes("**") {
            return Ok(base);
        }
        let exponent = self.signed()?;
        if base == 0.0 && exponent < 0.0 {
            return Err("division by zero".to_owned());
        }
        finite(base.powf(exponent))
    }

    fn atom(&mut self) -> Result<f64, String> {
        match self.peek() {
            Some('(') => {
                self.takes("(");
                let value = self.sum()?;
                if self.takes(")") {
                    Ok(value)
                } else {
                    Err(format!("a `)` is missing{}", self.describe_position()))
                }
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => self.named(),
            Some(c) => Err(format!("unexpected `{c}`{}", self.describe_position())),
            None => Err("the expression ends too early".to_owned()),
        }
    }

    fn number(&mut self) -> Result<f64, String> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let digits = |mut at: usize| {
            while bytes.get(at).is_some_and(|byte| byte.is_ascii_digit() || *byte == b'_') {
                at += 1;
            }
            at
        };
        let mut end = digits(start);
        if bytes.get(end) == Some(&b'.') {
            end = digits(end + 1);
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let c = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            let after = digits(end + 1 + c);
            if after > end + 1 + c {
                end = after;
            }
        }
        self.at = end;
        let text = self.text[start..end].replace('_', "");
        finite(text.parse().map_err(|_| format!("`{text}` is not a number"))?)
    }

    fn named(&mut self) -> Result<f64, String> {
        let rest = &self.text[self.at..];
        let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let name = rest[..length].to_owned();
        self.at += length;
        if self.peek() == Some('(') {
            return apply(&name, &self.arguments()?);
        }
        match CONSTANTS.iter().find(|(known, _)| *known == name) {
            Some((_, value)) => Ok(*value),
            None => Err(unknown(&name)),
        }
    }

    fn arguments(&mut self) -> Result<Vec<f64>, String> {
        self.takes("(");
        let mut arguments = Vec::new();
        if self.takes(")") {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.sum()?);
            if self.takes(")") {
                return Ok(arguments);
            }
            if !self.takes(",") {
                return Err(format!("a `)` or `,` is missing{}", self.describe_position()));
            }
        }
    }
}

fn unknown(name: &str) -> String {
    let functions = FUNCTIONS.iter().map(|(name, _)| *name).chain(OF_SEVERAL);
    let known: Vec<&str> = functions.chain(CONSTANTS.iter().map(|(name, _)| *name)).collect();
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("there is no `{name}`; did you mean `{near}`?"),
        None => format!("there is no `{name}`; there are: {}", known.join(", ")),
    }
}

fn apply(name: &str, arguments: &[f64]) -> Result<f64, String> {
    if let Some((_, function)) = FUNCTIONS.iter().find(|(known, _)| *known == name) {
        let [argument] = arguments else {
            return Err(format!("`{name}` takes one number, not {}", arguments.len()));
        };
        let value = function(*argument);
        let is_defined = value.is_finite();
        return if is_defined { Ok(value) } else { Err(undefined(name, *argument)) };
    }
    match (name, arguments) {
        ("round", [number]) => Ok(half_to_even(*number)),
        ("round", [number, decimals]) if decimals.fract() == 0.0 && decimals.abs() <= 15.0 => {
            // Places are few, so the power is exact enough.
            let power = 10f64.powf(*decimals);
            finite(half_to_even(number * power) / power)
        }
        ("round", _) => Err("`round` takes a number, and a number of places from -15 to 15".to_owned()),
        ("min", [first, others @ ..]) => Ok(others.iter().copied().fold(*first, f64::min)),
        ("max", [first, others @ ..]) => Ok(others.iter().copied().fold(*first, f64::max)),
        ("gcd", numbers) if numbers.iter().all(|number| number.fract() == 0.0 && number.abs() <= EXACT) => {
            Ok(numbers.iter().copied().fold(0.0, common_divisor))
        }
        ("gcd", _) => Err("`gcd` takes integers of at most 16 digits".to_owned()),
        ("min" | "max", []) => Err(format!("`{name}` takes at least one number")),
        _ => Err(unknown(name)),
    }
}

fn undefined(name: &str, argument: f64) -> String {
    match name {
        "factorial" => format!("`factorial` takes an integer from 0 to {GREATEST_FACTORIAL}"),
        _ => format!("`{name}` of {argument} is not a finite number"),
    }
}

/// Halves go to the even neighbor, so that sums of rounded numbers do not drift.
fn half_to_even(number: f64) -> f64 {
    number.round_ties_even()
}

fn common_divisor(left: f64, right: f64) -> f64 {
    let (mut left, mut right) = (left.abs(), right.abs());
    while right != 0.0 {
        (left, right) = (right, left % right);
    }
    left
}

fn divisor(value: f64) -> Result<f64, String> {
    if value == 0.0 { Err("division by zero".to_owned()) } else { Ok(value) }
}

fn finite(value: f64) -> Result<f64, String> {
    match value {
        value if value.is_nan() => Err("the result is not a real number".to_owned()),
        value if value.abs() > 1e308 => Err("the result is greater than 1e308".to_owned()),
        value => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(expression: &str, decimals: u8) -> String {
        calculate(expression).map_or_else(|problem| problem, |value| written(value, decimals))
    }

    #[test]
    fn expressions_are_calculated_as_mathematics_has_it() {
        for (expression, result) in [
            ("1 + 2 * 3", "7"),
            ("(1 + 2) * 3", "9"),
            ("2 ** 3 ** 2", "512"),
            ("-2 ** 2", "-4"),
            ("2 ** -1", "0.5"),
            ("-7 // 2", "-4"),
            ("-7 % 3", "2"),
            ("7 % -3", "-2"),
            ("10 / 4", "2.5"),
            ("1e3 + 1_000", "2000"),
            ("2e", "unexpected `e` after the expression at character 2"),
            ("sqrt(16) + abs(-3)", "7"),
            ("round(2.5) + round(2.675, 2)", "4.68"),
            ("min(3, 1, 2) + max(4, 5)", "6"),
            ("factorial(5) / gcd(12, 18)", "20"),
            ("sin(pi / 2) + cos(0) + log(e) + log10(100) + log2(8)", "8"),
            ("degrees(tau)", "360"),
            ("0.1 + 0.2", "0.3"),
            ("ceil(1.2) + floor(1.8) + trunc(-1.5)", "2"),
            ("1 / 3", "0.333333"),
            ("- - + 3", "3"),
            ("0 * -1", "0"),
        ] {
            assert_eq!(shown(expression, 6), result, "{expression}");
        }
        assert_eq!(shown("2 / 3", 0), "1");
        assert_eq!(shown("pi", 15), "3.141592653589793");
        assert_eq!(shown("1e-9", 6), "1.000000e-9");
    }

    #[test]
    fn what_cannot_be_calculated_is_said() {
        for (expression, words) in [
            ("", "ends too early"),
            ("1 +", "ends too early"),
            ("1 2", "unexpected `2` after the expression at character 3"),
            ("(1", "`)` is missing"),
            ("2 ^ 3", "write `**`"),
            ("1 / 0", "division by zero"),
            ("5 // 0", "division by zero"),
            ("5 % 0", "division by zero"),
            ("0 ** -1", "division by zero"),
            ("(-1) ** 0.5", "not a real number"),
            ("sqrt(-1)", "`sqrt` of -1 is not a finite number"),
            ("log(0)", "`log` of 0"),
            ("factorial(171)", "from 0 to 170"),
            ("factorial(1.5)", "from 0 to 170"),
            ("10 ** 400", "greater than 1e308"),
            ("1e308 * 10", "greater than 1e308"),
            ("sqrt(1, 2)", "takes one number"),
            ("min()", "at least one"),
            ("squrt(4)", "did you mean `sqrt`?"),
            ("__import__('os')", "unexpected `'`"),
            ("gcd(1.5, 2)", "takes integers"),
        ] {
            let said = shown(expression, 6);
            assert!(said.contains(words), "{expression}: {said}");
        }
    }

    #[test]
    fn long_and_deep_expressions_end_soon() {
        assert!(shown(&"1+".repeat(600), 6).contains("more than 1000 bytes"));
        for c in ["(", "-", "sqrt(", "2**"] {
            let deep = c.repeat(MAX_LEN / c.len());
            assert!(shown(&deep, 6).contains("nested more than 100"), "{c}");
        }
    }
}
