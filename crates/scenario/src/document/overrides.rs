//! `--set KEY=VALUE`: one value of the tree replaced or added.

use toml::de::DeValue;

use super::{Document, Entry, Node, Origin, Value, node_of};
use crate::ScenarioError;
use crate::error::quoted;

/// No scenario nests deeper; a longer key is a mistake.
const MAX_DEPTH: usize = 16;

impl Document {
    /// Sets `key`, a dotted path, to `value`: TOML if it reads as TOML, else a string. Tables that
    /// the path names and the file lacks are made.
    pub(super) fn set(&mut self, key: &str, value: &str) -> Result<(), ScenarioError> {
        let index = self.overrides.len();
        self.overrides.push(format!("{key}={value}"));
        let segments: Vec<&str> = key.split('.').map(str::trim).collect();
        if segments.len() > MAX_DEPTH || segments.iter().any(|segment| segment.is_empty()) {
            return Err(self.refuse_override(
                index,
                "expected a key such as hosts.server.tcp.congestion_control",
            ));
        }
        let origin = Origin::Override(index);
        let node = match DeValue::parse(value) {
            Ok(value) => node_of(value, &|_| origin).map_err(|fault| self.explain(fault))?,
            Err(_) => Node {
                origin,
                value: Value::String(value.to_owned()),
            },
        };
        match insert(&mut self.root, &segments, node, origin) {
            Ok(()) => Ok(()),
            Err(depth) => {
                let message = format!(
                    "{} is not a table: it has no keys to set",
                    quoted(&segments[..depth].join("."))
                );
                Err(self.refuse_override(index, &message))
            }
        }
    }
}

/// Puts `node` at the path below `root`. The error is how many segments lead to something that is
/// no table.
fn insert(root: &mut Node, path: &[&str], node: Node, origin: Origin) -> Result<(), usize> {
    let mut table = root;
    let Some((last, parents)) = path.split_last() else {
        return Err(0);
    };
    for (depth, key) in parents.iter().enumerate() {
        table = child(table, key, origin).ok_or(depth)?;
    }
    let slot = child(table, last, origin).ok_or(parents.len())?;
    *slot = node;
    // The key itself now comes from the command line, too.
    if let Value::Table(entries) = &mut table.value {
        for entry in entries.iter_mut().filter(|entry| entry.key == *last) {
            entry.origin = origin;
        }
    }
    Ok(())
}

/// The value of `key` in a table, an empty table if there was none; `None` if it is no table.
fn child<'a>(node: &'a mut Node, key: &str, origin: Origin) -> Option<&'a mut Node> {
    let Value::Table(entries) = &mut node.value else {
        return None;
    };
    let position = match entries.iter().position(|entry| entry.key == key) {
        Some(position) => position,
        None => {
            entries.push(Entry {
                key: key.to_owned(),
                origin,
                node: Node {
                    origin,
                    value: Value::Table(Vec::new()),
                },
            });
            entries.len() - 1
        }
    };
    Some(&mut entries[position].node)
}
