//! The table of prices, searched as text.
//!
//! A line `@section` begins the models of one provider. The others have three columns, apart by a tab: which names a model
//! has, what it costs, and how it is listed: by which name, and with how many tokens of context if that is known. Of
//! several lines that fit a name the first counts.
//!
//! Names are alternatives, apart by blanks, each of conditions that all hold, apart by `&`: `=` the name itself, `^` how
//! it begins, `$` how it ends, `*` what it contains, `~` its form with `#` for a digit and a last `*` for anything, `!` a
//! part between dashes that it does not have.
//!
//! Prices are marked by a letter: `i` input, `o` output, `r` read from a cache, `w` written to one (dollars per million
//! tokens), `s` dollars per thousand searches, `q` dollars per thousand requests. A price may be followed by others for
//! longer prompts, as `,TOKENS:PRICE`. `-` is a price that is not known.

use std::borrow::Cow;
use std::sync::LazyLock;

use super::rates::{Rate, Rates};

/// Made by a test; see its first line.
pub(super) const TABLE: &str = include_str!("table.txt");

static SECTIONS: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
    let sections = TABLE.split("\n@").skip(1);
    sections.filter_map(|section| section.split_once('\n')).collect()
});

/// Finds a model: nothing where no line fits, and no rates where the line has no price.
pub(super) fn find(section: &str, model: &str) -> Option<Option<Rates>> {
    let (_, lines) = SECTIONS.iter().find(|(name, _)| *name == section)?;
    let model = model.to_lowercase();
    let prices = line_of(lines, &model).or_else(|| match with_dashes(&model) {
        Cow::Owned(dated) => line_of(lines, &dated),
        Cow::Borrowed(_) => None,
    });
    prices.map(read_rates)
}

/// A model as it is listed.
pub(super) struct ListedModel {
    pub(super) name: &'static str,
    /// The most tokens of a conversation.
    pub(super) context: Option<u64>,
}

/// Returns the models of a section, in the order of the table.
pub(super) fn models(section: &str) -> impl Iterator<Item = ListedModel> {
    let lines = SECTIONS.iter().find(|(name, _)| *name == section).map_or("", |(_, lines)| lines);
    lines.lines().filter_map(columns).map(|[_, _, listed]| {
        let (name, context) = listed.split_once(' ').unwrap_or((listed, ""));
        ListedModel { name, context: context.parse().ok() }
    })
}

fn columns(line: &str) -> Option<[&str; 3]> {
    let mut columns = line.split('\t');
    Some([columns.next()?, columns.next()?, columns.next()?])
}

fn line_of<'a>(lines: &'a str, model: &str) -> Option<&'a str> {
    let mut fitting = lines.lines().filter_map(columns).filter(|[names, ..]| fits(names, model));
    fitting.next().map(|[_, prices, _]| prices)
}

fn fits(names: &str, model: &str) -> bool {
    names.split(' ').any(|conditions| conditions.split('&').all(|condition| holds(condition, model)))
}

fn holds(condition: &str, model: &str) -> bool {
    let Some((kind, text)) = condition.split_at_checked(1) else { return false };
    match kind {
        "=" => model == text,
        "^" => model.starts_with(text),
        "$" => model.ends_with(text),
        "*" => model.contains(text),
        "~" => has_form(model, text),
        "!" => !model.split('-').skip(1).any(|part| part == text),
        _ => false,
    }
}

fn has_form(model: &str, form: &str) -> bool {
    let (form, is_open) = match form.strip_suffix('*') {
        Some(form) => (form, true),
        None => (form, false),
    };
    let length_fits = if is_open { model.len() >= form.len() } else { model.len() == form.len() };
    let same = |(c, wanted): (u8, u8)| if wanted == b'#' { c.is_ascii_digit() } else { c == wanted };
    length_fits && model.bytes().zip(form.bytes()).all(same)
}

/// Writes a date such as `-20251211` as `-2025-12-11`, since providers write both.
fn with_dashes(model: &str) -> Cow<'_, str> {
    let is_date = |part: &str| {
        let number = |range| part.get(range).and_then(|digits: &str| digits.parse::<u32>().ok());
        part.len() == 8
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && part.starts_with("20")
            && number(4..6).is_some_and(|month| (1..=12).contains(&month))
            && number(6..8).is_some_and(|day| (1..=31).contains(&day))
    };
    let mut parts = model.split('-');
    let mut text = parts.next().unwrap_or_default().to_owned();
    let mut has_date = false;
    for part in parts {
        let (date, rest) = part.split_at(part.find(':').unwrap_or(part.len()));
        text.push('-');
        if is_date(date) {
            has_date = true;
            text.extend([&date[..4], "-", &date[4..6], "-", &date[6..], rest]);
        } else {
            text.push_str(part);
        }
    }
    if has_date { Cow::Owned(text) } else { Cow::Borrowed(model) }
}

pub(super) fn read_rates(prices: &str) -> Option<Rates> {
    let mut rates = Rates::default();
    for price in prices.split(' ') {
        let (kind, text) = price.split_at_checked(1)?;
        match kind {
            "i" => rates.input = read_rate(text)?,
            "o" => rates.output = read_rate(text)?,
            "r" => rates.cache_read = Some(read_rate(text)?),
            "w" => rates.cache_write = Some(read_rate(text)?),
            "s" => rates.search = Some(read_decimal(text)? * 1_000),
            "q" => rates.request = read_decimal(text)? * 1_000,
            _ => return None,
        }
    }
    Some(rates)
}

fn read_rate(text: &str) -> Option<Rate> {
    let mut parts = text.split(',');
    let base = read_decimal(parts.next()?)?;
    let tier = |part: &str| {
        let (start, price) = part.split_once(':')?;
        Some((start.parse().ok()?, read_decimal(price)?))
    };
    Some(Rate { base, tiers: parts.map(tier).collect::<Option<_>>()? })
}

/// Reads a decimal in billionths, which are femtodollars per token for dollars per million tokens.
fn read_decimal(text: &str) -> Option<u128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole}{fraction:0<9}");
    (fraction.len() <= 9).then(|| digits.parse().ok())?
}
