//! The formats of a seed's values, and their conversion to codexec's values.

use std::fmt;
use std::path::Path;

use crate::UserEnvironment;
use serde_json::Value as Json;
use toml::Value;

/// The format of a seed's value. The two numbers are the minimum and the maximum in the seed's
/// unit; for [`ValueFormat::Bytes`] and [`ValueFormat::Memory`] in MiB.
#[derive(Clone, Copy, Debug)]
pub enum ValueFormat {
    /// A number, taken as it is.
    Number(u64, u64),
    /// A number; 0 keeps codexec's default.
    Limit(u64),
    /// Seconds, converted to milliseconds.
    Seconds(u64, u64),
    /// Milliseconds, rounded up to seconds.
    WholeSeconds(u64, u64),
    /// A duration like `90s` or `1m30s`, converted to milliseconds.
    Duration(u64, u64),
    /// Bytes, rounded up to MiB.
    Bytes(u64, u64),
    /// Bytes, or a size like `512m` or `1g`, rounded up to MiB.
    Memory(u64, u64),
    Flag,
    /// A flag; a list counts as `true`.
    FlagOrList,
    /// Pairs of the seed's word and codexec's word.
    Word(&'static [(&'static str, &'static str)]),
    /// A path; a relative one starts at the current directory.
    Path,
    /// An absolute path. A relative one is ignored: by default it is just a command's name.
    AbsolutePath,
    /// Paths, as a list or separated by colons.
    Paths,
    Strings,
    /// A flag; `false` removes these from the list of languages.
    RemoveLanguages(&'static [&'static str]),
}

/// An invalid value. The caller adds the setting's name.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum InvalidValue {
    #[error("is out of range; it must be {0} to {1}")]
    Range(u64, u64),
    #[error("is out of range; it must be {0} to {1} MiB")]
    Mib(u64, u64),
    #[error("is not {0}")]
    Not(&'static str),
    #[error("is invalid; write {0}")]
    Word(String),
    #[error("is not supported: {0}")]
    Unsupported(&'static str),
}

const MIB: u64 = 1 << 20;

impl ValueFormat {
    /// Converts a seed's value. `None` means that codexec's default stays.
    pub(crate) fn read(
        self,
        written: &Json,
        host: &UserEnvironment,
    ) -> Result<Option<Value>, InvalidValue> {
        let value = match self {
            ValueFormat::Number(min, max) => number(written, min, max)?,
            ValueFormat::Limit(max) => match number(written, 0, max)? {
                0 => return Ok(None),
                limit => limit,
            },
            ValueFormat::Seconds(min, max) => number(written, min, max)?.saturating_mul(1_000),
            ValueFormat::WholeSeconds(min, max) => number(written, min, max)?.div_ceil(1_000),
            ValueFormat::Duration(min, max) => duration_ms(written, min, max)?,
            ValueFormat::Bytes(min, max) => {
                let bytes = number(written, 0, u64::MAX)?;
                mib(bytes, min, max)?
            }
            ValueFormat::Memory(min, max) => mib(memory(written)?, min, max)?,
            ValueFormat::Flag => return flag(written).map(|is_on| Some(Value::Boolean(is_on))),
            ValueFormat::FlagOrList if written.is_array() => return Ok(Some(Value::Boolean(true))),
            ValueFormat::FlagOrList => {
                return flag(written).map(|is_on| Some(Value::Boolean(is_on)));
            }
            ValueFormat::Word(words) => return word(written, words).map(Some),
            ValueFormat::Path => return path(written, host).map(|path| Some(Value::String(path))),
            ValueFormat::AbsolutePath => {
                let path = path(written, host)?;
                let is_whole = text(written)?.starts_with(['/', '~']);
                return Ok(is_whole.then_some(Value::String(path)));
            }
            ValueFormat::Paths => {
                let paths: Result<Vec<Value>, InvalidValue> = items(written)?
                    .into_iter()
                    .map(|item| path(&Json::String(item), host).map(Value::String))
                    .collect();
                return paths.map(|paths| Some(Value::Array(paths)));
            }
            ValueFormat::Strings => {
                let Json::Array(_) = written else {
                    return Err(InvalidValue::Not("a list of strings"));
                };
                let texts = items(written)?.into_iter().map(Value::String).collect();
                return Ok(Some(Value::Array(texts)));
            }
            ValueFormat::RemoveLanguages(removed) => {
                if flag(written)? {
                    return Ok(None);
                }
                let all = codexec_types::Language::ALL.map(codexec_types::Language::name);
                let left = all.into_iter().filter(|name| !removed.contains(name));
                return Ok(Some(Value::Array(left.map(Value::from).collect())));
            }
        };
        let value = i64::try_from(value).map_err(|_| InvalidValue::Not("a number that fits"))?;
        Ok(Some(Value::Integer(value)))
    }
}

impl fmt::Display for ValueFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueFormat::Number(min, max) => write!(f, "{min} to {max}"),
            ValueFormat::Limit(max) => write!(f, "1 to {max}; 0 keeps codexec's default"),
            ValueFormat::Seconds(min, max) => write!(f, "seconds, {min} to {max}"),
            ValueFormat::WholeSeconds(min, max) => {
                write!(f, "milliseconds, {min} to {max}, rounded up to whole seconds")
            }
            ValueFormat::Duration(min, max) => {
                write!(f, "a duration like 30s or 1m30s, {min} to {max} milliseconds")
            }
            ValueFormat::Bytes(min, max) => {
                write!(f, "bytes, rounded up to whole MiB, {min} to {max} MiB")
            }
            ValueFormat::Memory(min, max) => write!(f, "like 512m or 1g, {min} to {max} MiB"),
            ValueFormat::Flag => f.write_str("true or false"),
            ValueFormat::FlagOrList => f.write_str("true or false; a list counts as true"),
            ValueFormat::Word(words) => {
                let shown: Vec<String> = words
                    .iter()
                    .map(|(theirs, ours)| match theirs == ours {
                        true => (*theirs).to_owned(),
                        false => format!("{theirs} is {ours}"),
                    })
                    .collect();
                f.write_str(&shown.join(", "))
            }
            ValueFormat::Path => f.write_str("a path"),
            ValueFormat::AbsolutePath => f.write_str("an absolute path; a relative one is ignored"),
            ValueFormat::Paths => f.write_str("paths, separated by colons or as a list"),
            ValueFormat::Strings => f.write_str("a list of strings"),
            ValueFormat::RemoveLanguages(removed) => {
                write!(f, "false removes {}", removed.join(" and "))
            }
        }
    }
}

fn text(written: &Json) -> Result<&str, InvalidValue> {
    written.as_str().ok_or(InvalidValue::Not("a string"))
}

/// Returns a whole number. Variables hold strings, files hold numbers.
fn whole_number(written: &Json) -> Option<u64> {
    match written {
        Json::String(text) => text.trim().parse().ok(),
        Json::Number(number) => number.as_u64(),
        _ => None,
    }
}

fn number(written: &Json, min: u64, max: u64) -> Result<u64, InvalidValue> {
    match whole_number(written) {
        Some(number) if (min..=max).contains(&number) => Ok(number),
        Some(_) => Err(InvalidValue::Range(min, max)),
        // Too large, negative or not a number: the range answers all three.
        None => Err(InvalidValue::Range(min, max)),
    }
}

fn mib(bytes: u64, min: u64, max: u64) -> Result<u64, InvalidValue> {
    let mib = bytes.div_ceil(MIB);
    if (min..=max).contains(&mib) { Ok(mib) } else { Err(InvalidValue::Mib(min, max)) }
}

/// Returns bytes from a size as Docker writes it: bytes, or a number with a unit.
fn memory(written: &Json) -> Result<u64, InvalidValue> {
    let bad = || InvalidValue::Not("a size; write it like 512m or 1g");
    if let Some(bytes) = whole_number(written) {
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

fn duration_ms(written: &Json, min: u64, max: u64) -> Result<u64, InvalidValue> {
    let bad = || InvalidValue::Not("a duration; write it like 30s or 1m30s");
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
        _ => Err(InvalidValue::Range(min, max)),
    }
}

fn flag(written: &Json) -> Result<bool, InvalidValue> {
    let word = match written {
        Json::Bool(is_on) => return Ok(*is_on),
        Json::String(text) => text.trim().to_ascii_lowercase(),
        _ => String::new(),
    };
    match word.as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => Err(InvalidValue::Word("true or false".to_owned())),
    }
}

fn word(written: &Json, words: &[(&str, &str)]) -> Result<Value, InvalidValue> {
    let word = match written {
        Json::String(text) => text.trim().to_ascii_lowercase(),
        Json::Bool(is_on) => is_on.to_string(),
        _ => String::new(),
    };
    let found = words.iter().find(|(theirs, _)| *theirs == word);
    let found = found.map(|(_, ours)| Value::from(*ours));
    found.ok_or_else(|| {
        let known: Vec<&str> = words.iter().map(|(theirs, _)| *theirs).collect();
        InvalidValue::Word(known.join(" or "))
    })
}

fn path(written: &Json, host: &UserEnvironment) -> Result<String, InvalidValue> {
    let text = text(written)?;
    if text.is_empty() || text.contains('\0') {
        return Err(InvalidValue::Not("a path"));
    }
    let path = Path::new(text);
    match &host.current_dir {
        Some(here) if path.is_relative() && !text.starts_with('~') => {
            let path: std::path::PathBuf = here.join(path).components().collect();
            Ok(path.to_string_lossy().into_owned())
        }
        Some(_) | None => Ok(text.to_owned()),
    }
}

/// A longer list was not written by a person.
const MAX_ITEMS: usize = 1_000;

fn items(written: &Json) -> Result<Vec<String>, InvalidValue> {
    let bad = || InvalidValue::Not("a list of at most 1000 strings");
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
