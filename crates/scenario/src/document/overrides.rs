//! `--set KEY=VALUE`: one value of the tree replaced or added.

use toml::de::DeValue;

use super::{Document, Entry, Node, Origin, Value, node_of};
use crate::ScenarioError;
use crate::error::quoted;
use crate::suggest::suggest;

/// No scenario nests deeper; a longer key is a mistake.
const MAX_DEPTH: usize = 16;

/// A table of names that the file has chosen.
struct Named {
    table: &'static str,
    /// What each of them is.
    what: &'static str,
    /// What one cannot be without; a node, without a link that names it.
    needed: &'static [&'static str],
}

const NAMED: [Named; 5] = [
    Named {
        table: "hosts",
        what: "host",
        needed: &[],
    },
    Named {
        table: "gateways",
        what: "gateway",
        needed: &[],
    },
    Named {
        table: "links",
        what: "link",
        needed: &["between"],
    },
    Named {
        table: "flows",
        what: "flow",
        needed: &["from", "to", "app"],
    },
    Named {
        table: "groups",
        what: "group",
        needed: &["members"],
    },
];

/// So many names at most are told in a message.
const MOST_KNOWN: usize = 8;

impl Document {
    /// Applies overrides in order.
    pub(super) fn apply(&mut self, overrides: &[(&str, &str)]) -> Result<(), ScenarioError> {
        if overrides.is_empty() {
            return Ok(());
        }
        let written = NAMED.map(|named| self.names(named.table));
        for (key, value) in overrides {
            self.set(key, value)?;
        }
        for (index, (key, _)) in overrides.iter().enumerate() {
            let Some((table, name)) = named_by(key) else {
                continue;
            };
            let whole = |(key, _): &(&str, &str)| segments(key).eq([table, name]);
            if overrides.iter().any(whole) {
                continue;
            }
            self.check_name(index, table, name, &written)?;
        }
        Ok(())
    }

    /// The names that a table has.
    fn names(&self, table: &str) -> Vec<String> {
        match self.root.entry(table).map(|entry| &entry.node.value) {
            Some(Value::Table(entries)) => entries.iter().map(|each| each.key.clone()).collect(),
            _ => Vec::new(),
        }
    }

    /// Refuses a key of something that is not there: it would be something else, of that key alone.
    fn check_name(
        &self,
        index: usize,
        table: &str,
        name: &str,
        written: &[Vec<String>; NAMED.len()],
    ) -> Result<(), ScenarioError> {
        let Some((named, known)) = NAMED.iter().zip(written).find(|(n, _)| n.table == table) else {
            return Ok(());
        };
        if known.iter().any(|each| each == name) {
            return Ok(());
        }
        let nodes = NAMED
            .iter()
            .zip(written)
            .filter(|_| named.needed.is_empty());
        let elsewhere = nodes
            .filter(|(other, _)| other.needed.is_empty())
            .find(|(_, names)| names.iter().any(|each| each == name));
        let near = suggest(name, known.iter().map(String::as_str));
        let node = self
            .root
            .entry(table)
            .and_then(|each| each.node.entry(name));
        let has = |key: &&&str| node.is_some_and(|each| each.node.entry(key).is_some());
        let described = named.needed.iter().filter(has).count();
        // Several keys may describe another one, and then its reader knows best what is missing.
        let another = match named.needed.len() {
            0 => elsewhere.is_none() && self.is_linked(name),
            all => described == all || (described > 0 && near.is_none()),
        };
        if another {
            return Ok(());
        }
        let hint = match (elsewhere, near) {
            (Some((other, _)), _) => format!("it is a {}, {}.{name}", other.what, other.table),
            (None, Some(near)) => format!("did you mean {}?", quoted(near)),
            (None, None) if known.is_empty() => format!("the file has no {table}"),
            (None, None) => {
                let more = if known.len() > MOST_KNOWN {
                    ", ..."
                } else {
                    ""
                };
                let first = &known[..known.len().min(MOST_KNOWN)];
                format!("known: {}{more}", first.join(", "))
            }
        };
        let message = format!("no {} is named {}; {hint}", named.what, quoted(name));
        Err(self.refuse_override(index, &message))
    }

    /// Does a link lead to a node of this name?
    fn is_linked(&self, name: &str) -> bool {
        let links = match self.root.entry("links").map(|entry| &entry.node.value) {
            Some(Value::Table(links)) => links.as_slice(),
            _ => &[],
        };
        let ends = links
            .iter()
            .filter_map(|link| match &link.node.entry("between")?.node.value {
                Value::Array(ends) => Some(ends),
                _ => None,
            });
        ends.flatten().any(|end| match &end.value {
            Value::String(end) => {
                let member = end.rsplit_once('-').map(|(of, _)| of);
                end == name || member == Some(name)
            }
            _ => false,
        })
    }

    /// Sets `key`, a dotted path, to `value`: TOML if it reads as TOML, else a string. Tables that
    /// the path names and the file lacks are made.
    pub(super) fn set(&mut self, key: &str, value: &str) -> Result<(), ScenarioError> {
        let index = self.overrides.len();
        self.overrides.push(format!("{key}={value}"));
        let segments: Vec<&str> = segments(key).collect();
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

/// The parts of a dotted key.
fn segments(key: &str) -> impl Iterator<Item = &str> {
    key.split('.').map(str::trim)
}

/// Table and name, of a key that is one of something named.
fn named_by(key: &str) -> Option<(&str, &str)> {
    let mut segments = segments(key);
    let named = (segments.next()?, segments.next()?);
    segments.next().map(|_| named)
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
