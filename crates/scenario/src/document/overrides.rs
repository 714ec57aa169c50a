//! `--set KEY=VALUE`: replaces or adds one value of the tree.

use toml::de::DeValue;

use crate::document::parsed::Document;
use crate::document::tree::{TreeEntry, TreeNode, TreeValue, node_of};
use crate::error::{ScenarioError, quoted};
use crate::fault::Origin;
use crate::suggest::suggest;

/// Deepest nesting; longer keys are mistakes.
const MAX_DEPTH: usize = 16;

/// A table whose keys are names chosen by the file.
struct Named {
    table: &'static str,
    /// Noun for an entry, for messages.
    what: &'static str,
    /// Keys that an entry must have. A node needs a link that names it instead.
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

/// Most names that a message lists.
const MOST_KNOWN: usize = 8;

impl Document {
    /// Applies the overrides in order.
    pub(crate) fn apply(&mut self, overrides: &[(&str, &str)]) -> Result<(), ScenarioError> {
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

    /// Returns the names in a table.
    fn names(&self, table: &str) -> Vec<String> {
        match self.root.entry(table).map(|entry| &entry.node.value) {
            Some(TreeValue::Table(entries)) => {
                entries.iter().map(|each| each.key.clone()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Refuses a key of an entry that does not exist: it would create an entry with that key alone.
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
        // If several keys describe a new entry, its reader gives the better message.
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

    /// Whether a link leads to a node of this name.
    fn is_linked(&self, name: &str) -> bool {
        let links = match self.root.entry("links").map(|entry| &entry.node.value) {
            Some(TreeValue::Table(links)) => links.as_slice(),
            _ => &[],
        };
        let ends = links
            .iter()
            .filter_map(|link| match &link.node.entry("between")?.node.value {
                TreeValue::Array(ends) => Some(ends),
                _ => None,
            });
        ends.flatten().any(|end| match &end.value {
            TreeValue::String(end) => {
                let member = end.rsplit_once('-').map(|(of, _)| of);
                end == name || member == Some(name)
            }
            _ => false,
        })
    }

    /// Sets `key`, a dotted path, to `value`, which is read as TOML if possible and else as a
    /// string. Missing tables on the path are created.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<(), ScenarioError> {
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
            Err(_) => TreeNode {
                origin,
                value: TreeValue::String(value.to_owned()),
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

/// Splits a dotted key.
fn segments(key: &str) -> impl Iterator<Item = &str> {
    key.split('.').map(str::trim)
}

/// Returns the table and the name if the key belongs to a named entry.
fn named_by(key: &str) -> Option<(&str, &str)> {
    let mut segments = segments(key);
    let named = (segments.next()?, segments.next()?);
    segments.next().map(|_| named)
}

/// Puts `node` at the path below `root`. The error is the number of segments that lead to something
/// other than a table.
fn insert(root: &mut TreeNode, path: &[&str], node: TreeNode, origin: Origin) -> Result<(), usize> {
    let mut table = root;
    let Some((last, parents)) = path.split_last() else {
        return Err(0);
    };
    for (depth, key) in parents.iter().enumerate() {
        table = child(table, key, origin).ok_or(depth)?;
    }
    let slot = child(table, last, origin).ok_or(parents.len())?;
    *slot = node;
    // The key itself now has the position of the command-line option, too.
    if let TreeValue::Table(entries) = &mut table.value {
        for entry in entries.iter_mut().filter(|entry| entry.key == *last) {
            entry.origin = origin;
        }
    }
    Ok(())
}

/// Returns the value of `key` in a table, and creates an empty table if it is missing. Returns
/// `None` if `node` is not a table.
fn child<'a>(node: &'a mut TreeNode, key: &str, origin: Origin) -> Option<&'a mut TreeNode> {
    let TreeValue::Table(entries) = &mut node.value else {
        return None;
    };
    let position = match entries.iter().position(|entry| entry.key == key) {
        Some(position) => position,
        None => {
            entries.push(TreeEntry {
                key: key.to_owned(),
                origin,
                node: TreeNode {
                    origin,
                    value: TreeValue::Table(Vec::new()),
                },
            });
            entries.len() - 1
        }
    };
    Some(&mut entries[position].node)
}
