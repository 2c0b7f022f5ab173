//! A file as a tree that knows its lines, whatever it was written in.

use std::collections::HashSet;

/// One value, and where it stands: for a value in a table, the line of its key.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) line: u32,
    pub(super) value: Tree,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tree {
    Null,
    Bool(bool),
    /// As written.
    Number(String),
    Text(String),
    List(Vec<Node>),
    /// As written: a key may stand there twice, and the last counts.
    Table(Vec<(String, Node)>),
}

impl Node {
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        let Tree::Table(entries) = &self.value else { return None };
        let found = entries.iter().rev().find(|(known, _)| known == key);
        found.map(|(_, node)| node).filter(|node| node.value != Tree::Null)
    }

    /// The entries of a table, each key once; `None` for anything else.
    pub(super) fn entries(&self) -> Option<Vec<(&str, &Node)>> {
        let Tree::Table(entries) = &self.value else { return None };
        let mut seen = HashSet::new();
        let last_first = entries.iter().rev().filter(|(key, _)| seen.insert(key.as_str()));
        let mut found: Vec<_> = last_first.map(|(key, node)| (key.as_str(), node)).collect();
        found.reverse();
        Some(found)
    }

    pub(super) fn items(&self) -> Option<&[Node]> {
        match &self.value {
            Tree::List(items) => Some(items),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match &self.value {
            Tree::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn is(&self, wanted: bool) -> bool {
        self.value == Tree::Bool(wanted)
    }

    /// Numbers and booleans stand for their text, as shells and most clients have it.
    pub(super) fn plain(&self) -> Option<String> {
        match &self.value {
            Tree::Bool(value) => Some(value.to_string()),
            Tree::Number(text) | Tree::Text(text) => Some(text.clone()),
            Tree::Null | Tree::List(_) | Tree::Table(_) => None,
        }
    }

    pub(super) fn number(&self) -> Option<f64> {
        match &self.value {
            Tree::Number(text) => text.parse().ok(),
            _ => None,
        }
    }

    pub(super) fn into_json(self) -> serde_json::Value {
        use serde_json::Value;
        match self.value {
            Tree::Null => Value::Null,
            Tree::Bool(value) => Value::Bool(value),
            Tree::Number(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
            Tree::Text(text) => Value::String(text),
            Tree::List(items) => items.into_iter().map(Node::into_json).collect(),
            Tree::Table(entries) => {
                entries.into_iter().map(|(key, node)| (key, node.into_json())).collect()
            }
        }
    }

    /// The texts of a list; what is no text is passed over.
    pub(super) fn texts(&self) -> Vec<String> {
        let items = self.items().unwrap_or_default();
        items.iter().filter_map(|item| item.text().map(str::to_owned)).collect()
    }
}
