//! How a value of theirs is written, and the value of ours that it becomes.

use std::fmt;
use std::path::Path;

use serde_json::Value as Json;
use toml::Value;

use super::Place;

/// The numbers are the least and the most, in the unit that theirs is written in; for
/// [`Form::Bytes`] and [`Form::Memory`] in MiB.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// As it is.
    Number(u64, u64),
    /// The same, and 0 is no limit of its own.
    Limit(u64),
    /// Seconds, for our milliseconds.
    Seconds(u64, u64),
    /// Milliseconds, for our seconds.
    WholeSeconds(u64, u64),
    /// Milliseconds, written like `90s` or `1m30s`.
    Written(u64, u64),
    /// Bytes, for our MiB.
    Bytes(u64, u64),
    /// Bytes, or with a letter like `512m` and `1g`, for our MiB.
    Memory(u64, u64),
    Flag,
    /// A list of what is open is as good as `true`.
    FlagOrList,
    /// Their words, and ours for each.
    Word(&'static [(&'static str, &'static str)]),
    /// From the home directory, or from where we were started.
    Path,
    /// Another is not worth telling: it is what everybody has.
    WholePath,
    /// A list, or with colons between them.
    Paths,
    Texts,
    /// `false` takes these out of the list.
    Without(&'static [&'static str]),
}

/// Why a value cannot be used; whoever tells it names the setting.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum BadValue {
    #[error("is out of range; it must be {0} to {1}")]
    Range(u64, u64),
    #[error("is out of range; it must be {0} to {1} MiB")]
    Mib(u64, u64),
    #[error("is not {0}")]
    Not(&'static str),
    #[error("is not known; write {0}")]
    Word(String),
}

const MIB: u64 = 1 << 20;

impl Form {
    /// `None`: it says what holds anyway.
    pub(super) fn read(self, written: &Json, place: &Place) -> Result<Option<Value>, BadValue> {
        let value = match self {
            Form::Number(min, max) => number(written, min, max)?,
            Form::Limit(max) => match number(written, 0, max)? {
                0 => return Ok(None),
                limit => limit,
            },
            Form::Seconds(min, max) => number(written, min, max)?.saturating_mul(1_000),
            Form::WholeSeconds(min, max) => number(written, min, max)?.div_ceil(1_000),
            Form::Written(min, max) => written_ms(written, min, max)?,
            Form::Bytes(min, max) => {
                let bytes = number(written, 0, u64::MAX)?;
                mib(bytes, min, max)?
            }
            Form::Memory(min, max) => mib(memory(written)?, min, max)?,
            Form::Flag => return flag(written).map(|is_on| Some(Value::Boolean(is_on))),
            Form::FlagOrList if written.is_array() => return Ok(Some(Value::Boolean(true))),
            Form::FlagOrList => return flag(written).map(|is_on| Some(Value::Boolean(is_on))),
            Form::Word(words) => return word(written, words).map(Some),
            Form::Path => return path(written, place).map(|path| Some(Value::String(path))),
            Form::WholePath => {
                let path = path(written, place)?;
                let is_whole = text(written)?.starts_with(['/', '~']);
                return Ok(is_whole.then_some(Value::String(path)));
            }
            Form::Paths => {
                let paths: Result<Vec<Value>, BadValue> = items(written)?
                    .into_iter()
                    .map(|item| path(&Json::String(item), place).map(Value::String))
                    .collect();
                return paths.map(|paths| Some(Value::Array(paths)));
            }
            Form::Texts => {
                let Json::Array(_) = written else { return Err(BadValue::Not("a list of texts")) };
                let texts = items(written)?.into_iter().map(Value::String).collect();
                return Ok(Some(Value::Array(texts)));
            }
            Form::Without(gone) => {
                if flag(written)? {
                    return Ok(None);
                }
                let all = codexec_types::Language::ALL.map(codexec_types::Language::name);
                let left = all.into_iter().filter(|name| !gone.contains(name));
                return Ok(Some(Value::Array(left.map(Value::from).collect())));
            }
        };
        let value = i64::try_from(value).map_err(|_| BadValue::Not("a number that fits"))?;
        Ok(Some(Value::Integer(value)))
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Form::Number(min, max) => write!(f, "{min} to {max}"),
            Form::Limit(max) => write!(f, "1 to {max}; 0 is ours"),
            Form::Seconds(min, max) => write!(f, "seconds, {min} to {max}"),
            Form::WholeSeconds(min, max) => {
                write!(f, "milliseconds, {min} to {max}, rounded up to whole seconds")
            }
            Form::Written(min, max) => {
                write!(f, "a time like 30s or 1m30s, {min} to {max} milliseconds")
            }
            Form::Bytes(min, max) => {
                write!(f, "bytes, rounded up to whole MiB, {min} to {max} MiB")
            }
            Form::Memory(min, max) => write!(f, "like 512m or 1g, {min} to {max} MiB"),
            Form::Flag => f.write_str("true or false"),
            Form::FlagOrList => f.write_str("true or false; a list is true"),
            Form::Word(words) => {
                let shown: Vec<String> = words
                    .iter()
                    .map(|(theirs, ours)| match theirs == ours {
                        true => (*theirs).to_owned(),
                        false => format!("{theirs} is {ours}"),
                    })
                    .collect();
                f.write_str(&shown.join(", "))
            }
            Form::Path => f.write_str("a path"),
            Form::WholePath => f.write_str("a path from `/` or `~/` on; another is passed over"),
            Form::Paths => f.write_str("paths, with colons between them or as a list"),
            Form::Texts => f.write_str("a list of texts"),
            Form::Without(gone) => write!(f, "false takes out {}", gone.join(" and ")),
        }
    }
}

fn text(written: &Json) -> Result<&str, BadValue> {
    written.as_str().ok_or(BadValue::Not("a text"))
}

/// Variables are texts, files have numbers.
fn whole(written: &Json) -> Option<u64> {
    match written {
        Json::String(text) => text.trim().parse().ok(),
        Json::Number(number) => number.as_u64(),
        _ => None,
    }
}

fn number(written: &Json, min: u64, max: u64) -> Result<u64, BadValue> {
    match whole(written) {
        Some(number) if (min..=max).contains(&number) => Ok(number),
        Some(_) => Err(BadValue::Range(min, max)),
        // Too long, negative or no number at all: the range is the answer to all three.
        None => Err(BadValue::Range(min, max)),
    }
}

fn mib(bytes: u64, min: u64, max: u64) -> Result<u64, BadValue> {
    let mib = bytes.div_ceil(MIB);
    if (min..=max).contains(&mib) { Ok(mib) } else { Err(BadValue::Mib(min, max)) }
}

/// As containers are told: bytes, or a number and a letter.
fn memory(written: &Json) -> Result<u64, BadValue> {
    let bad = || BadValue::Not("a size; write it like 512m or 1g");
    if let Some(bytes) = whole(written) {
        return Ok(bytes);
    }
    let text = text(written).map_err(|_| bad())?.trim().to_ascii_lowercase();
    let end = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?;
    let (number, unit) = text.split_at_checked(end).ok_or_else(bad)?;
    let factor = match unit {
        "b" => 1,
        "k" | "kb" | "ki" | "kib" => 1 << 10,
        "m" | "mb" | "mi" | "mib" => MIB,
        "g" | "gb" | "gi" | "gib" => MIB << 10,
        _ => return Err(bad()),
    };
    let number: u64 = number.parse().map_err(|_| bad())?;
    Ok(number.saturating_mul(factor))
}

fn written_ms(written: &Json, min: u64, max: u64) -> Result<u64, BadValue> {
    let bad = || BadValue::Not("a time; write it like 30s or 1m30s");
    let text = text(written).map_err(|_| bad())?.trim();
    let mut rest = text;
    let mut ms: u64 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?;
        let (number, behind) = rest.split_at_checked(end).ok_or_else(bad)?;
        let unit_end = behind.find(|c: char| c.is_ascii_digit()).unwrap_or(behind.len());
        let (unit, after) = behind.split_at_checked(unit_end).ok_or_else(bad)?;
        let factor = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return Err(bad()),
        };
        let number: u64 = number.parse().map_err(|_| bad())?;
        ms = ms.saturating_add(number.saturating_mul(factor));
        rest = after;
    }
    match ms {
        _ if text.is_empty() => Err(bad()),
        ms if (min..=max).contains(&ms) => Ok(ms),
        _ => Err(BadValue::Range(min, max)),
    }
}

fn flag(written: &Json) -> Result<bool, BadValue> {
    let word = match written {
        Json::Bool(is_on) => return Ok(*is_on),
        Json::String(text) => text.trim().to_ascii_lowercase(),
        _ => String::new(),
    };
    match word.as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => Err(BadValue::Word("true or false".to_owned())),
    }
}

fn word(written: &Json, words: &[(&str, &str)]) -> Result<Value, BadValue> {
    let word = match written {
        Json::String(text) => text.trim().to_ascii_lowercase(),
        Json::Bool(is_on) => is_on.to_string(),
        _ => String::new(),
    };
    let found = words.iter().find(|(theirs, _)| *theirs == word);
    let found = found.map(|(_, ours)| Value::from(*ours));
    found.ok_or_else(|| {
        let known: Vec<&str> = words.iter().map(|(theirs, _)| *theirs).collect();
        BadValue::Word(known.join(" or "))
    })
}

fn path(written: &Json, place: &Place) -> Result<String, BadValue> {
    let text = text(written)?;
    if text.is_empty() || text.contains('\0') {
        return Err(BadValue::Not("a path"));
    }
    let path = Path::new(text);
    match &place.here {
        Some(here) if path.is_relative() && !text.starts_with('~') => {
            let path: std::path::PathBuf = here.join(path).components().collect();
            Ok(path.to_string_lossy().into_owned())
        }
        Some(_) | None => Ok(text.to_owned()),
    }
}

/// More than this is no list that a person wrote.
const MAX_ITEMS: usize = 1_000;

fn items(written: &Json) -> Result<Vec<String>, BadValue> {
    let bad = || BadValue::Not("a list of texts, 1000 at most");
    let items: Option<Vec<String>> = match written {
        Json::String(text) => {
            Some(text.split(':').filter(|item| !item.is_empty()).map(str::to_owned).collect())
        }
        Json::Array(items) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        _ => None,
    };
    items.filter(|items| items.len() <= MAX_ITEMS).ok_or_else(bad)
}

#[cfg(test)]
mod tests;
