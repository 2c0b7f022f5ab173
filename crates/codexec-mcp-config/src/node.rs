//! The syntax tree of a config file, with line numbers; the same for JSON, TOML and YAML.

use std::collections::HashSet;

/// One value and its line: for a value in a table, the line of its key.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ConfigNode {
    pub(super) line: u32,
    pub(super) value: ConfigValue,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum ConfigValue {
    Null,
    Bool(bool),
    /// The number as written.
    Number(String),
    Text(String),
    List(Vec<ConfigNode>),
    /// Entries in the file's order. A key may occur twice; the last one counts.
    Table(Vec<(String, ConfigNode)>),
}

impl ConfigNode {
    pub(super) fn get(&self, key: &str) -> Option<&ConfigNode> {
        let ConfigValue::Table(entries) = &self.value else { return None };
        let found = entries.iter().rev().find(|(known, _)| known == key);
        found.map(|(_, node)| node).filter(|node| node.value != ConfigValue::Null)
    }

    /// Returns the entries of a table, each key once; `None` for anything else.
    pub(super) fn entries(&self) -> Option<Vec<(&str, &ConfigNode)>> {
        let ConfigValue::Table(entries) = &self.value else { return None };
        let mut seen = HashSet::new();
        let last_first = entries.iter().rev().filter(|(key, _)| seen.insert(key.as_str()));
        let mut found: Vec<_> = last_first.map(|(key, node)| (key.as_str(), node)).collect();
        found.reverse();
        Some(found)
    }

    pub(super) fn items(&self) -> Option<&[ConfigNode]> {
        match &self.value {
            ConfigValue::List(items) => Some(items),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match &self.value {
            ConfigValue::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn is(&self, expected: bool) -> bool {
        self.value == ConfigValue::Bool(expected)
    }

    /// Returns a string, or a number or boolean as text, as shells and most clients do.
    pub(super) fn scalar_text(&self) -> Option<String> {
        match &self.value {
            ConfigValue::Bool(value) => Some(value.to_string()),
            ConfigValue::Number(text) | ConfigValue::Text(text) => Some(text.clone()),
            ConfigValue::Null | ConfigValue::List(_) | ConfigValue::Table(_) => None,
        }
    }

    pub(super) fn number(&self) -> Option<f64> {
        match &self.value {
            ConfigValue::Number(text) => text.parse().ok(),
            _ => None,
        }
    }

    pub(super) fn into_json(self) -> serde_json::Value {
        use serde_json::Value;
        match self.value {
            ConfigValue::Null => Value::Null,
            ConfigValue::Bool(value) => Value::Bool(value),
            ConfigValue::Number(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
            ConfigValue::Text(text) => Value::String(text),
            ConfigValue::List(items) => items.into_iter().map(ConfigNode::into_json).collect(),
            ConfigValue::Table(entries) => {
                entries.into_iter().map(|(key, node)| (key, node.into_json())).collect()
            }
        }
    }

    /// Returns the strings of a list; skips other items.
    pub(super) fn texts(&self) -> Vec<String> {
        let items = self.items().unwrap_or_default();
        items.iter().filter_map(|item| item.text().map(str::to_owned)).collect()
    }
}
