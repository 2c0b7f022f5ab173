use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, SeqAccess, Visitor},
};
use serde_saphyr::Spanned;

use super::{MAX_DEPTH, SyntaxError, number};
use crate::node::{ConfigNode, ConfigValue};

/// Values behind an alias count at each use: a few lines can expand to a million values.
const MAX_VALUES: usize = 20_000;

pub(super) fn parse(text: &str) -> Result<ConfigNode, SyntaxError> {
    if text.trim().is_empty() {
        return Ok(ConfigNode { line: 1, value: ConfigValue::Null });
    }
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            max_nodes: MAX_VALUES,
            max_events: MAX_VALUES * 4,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_VALUES },
    };
    match serde_saphyr::from_str_with_options::<Spanned<YamlValue>>(text, options) {
        Ok(root) => Ok(convert_node(root)),
        Err(error) => {
            let at = error.location();
            let what = error.without_snippet().to_string();
            Err(SyntaxError {
                line: at.map_or(1, |at| number(at.line())),
                column: at.map_or(1, |at| number(at.column())),
                what: what.lines().next().unwrap_or_default().to_owned(),
            })
        }
    }
}

fn convert_node(value: Spanned<YamlValue>) -> ConfigNode {
    ConfigNode { line: number(value.referenced.line()), value: value.value.0 }
}

struct YamlValue(ConfigValue);

impl<'de> Deserialize<'de> for YamlValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<YamlValue, D::Error> {
        deserializer.deserialize_any(AnyValue).map(YamlValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = ConfigValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<ConfigValue, E> {
        Ok(ConfigValue::Null)
    }

    fn visit_none<E>(self) -> Result<ConfigValue, E> {
        Ok(ConfigValue::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<ConfigValue, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }

    fn visit_bool<E>(self, value: bool) -> Result<ConfigValue, E> {
        Ok(ConfigValue::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<ConfigValue, E> {
        Ok(ConfigValue::Number(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<ConfigValue, E> {
        Ok(ConfigValue::Number(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<ConfigValue, E> {
        Ok(ConfigValue::Number(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<ConfigValue, E> {
        Ok(ConfigValue::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<ConfigValue, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element::<Spanned<YamlValue>>()? {
            items.push(convert_node(item));
        }
        Ok(ConfigValue::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ConfigValue, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<Spanned<YamlValue>>()? {
            let key = convert_node(key);
            let name =
                key.scalar_text().ok_or_else(|| A::Error::custom("a key is not a string"))?;
            let value = map.next_value::<YamlValue>()?.0;
            entries.push((name, ConfigNode { line: key.line, value }));
        }
        Ok(ConfigValue::Table(entries))
    }
}
