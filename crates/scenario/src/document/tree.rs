//! A TOML file as a tree of values with their positions.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{Position, quoted};
use crate::fault::{Fault, KeyPath, Origin, Segment};

/// A value and its position; for a table with a header, the position of the header.
#[derive(Debug)]
pub(crate) struct TreeNode {
    pub(crate) origin: Origin,
    pub(crate) value: TreeValue,
}

#[derive(Debug)]
pub(crate) enum TreeValue {
    String(String),
    Integer(i128),
    Float(f64),
    Boolean(bool),
    Date,
    Array(Vec<TreeNode>),
    Table(Vec<TreeEntry>),
}

#[derive(Debug)]
pub(crate) struct TreeEntry {
    pub(crate) key: String,
    pub(crate) origin: Origin,
    pub(crate) node: TreeNode,
}

impl TreeNode {
    pub(crate) fn entry(&self, key: &str) -> Option<&TreeEntry> {
        match &self.value {
            TreeValue::Table(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    /// Returns the child for one step of a path, and the child's position.
    pub(crate) fn step(&self, segment: &Segment) -> Option<(Origin, &Self)> {
        match (segment, &self.value) {
            (Segment::Key(key), _) => self.entry(key).map(|entry| (entry.origin, &entry.node)),
            (Segment::Index(index), TreeValue::Array(items)) => {
                items.get(*index).map(|item| (item.origin, item))
            }
            (Segment::Index(_), _) => None,
        }
    }
}

impl TreeNode {
    pub(crate) fn lines(&self, path: &mut KeyPath, found: &mut Vec<(KeyPath, usize)>) {
        let mut enter = |segment: Segment, origin: Origin, node: &Self| {
            // Without `--set`, every position is in the file.
            let Origin::File(Position { line, .. }) = origin else {
                return;
            };
            path.push(segment);
            let place = found.len();
            found.push((path.clone(), line));
            node.lines(path, found);
            // The header of a table may follow the header of one of its subtables.
            let first = found[place..].iter().map(|(_, line)| *line).min();
            found[place].1 = first.unwrap_or(line);
            path.pop();
        };
        match &self.value {
            TreeValue::Table(entries) => {
                for entry in entries {
                    enter(Segment::Key(entry.key.clone()), entry.origin, &entry.node);
                }
            }
            TreeValue::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    enter(Segment::Index(index), item.origin, item);
                }
            }
            _ => {}
        }
    }
}

/// Converts byte offsets to positions.
pub(crate) struct Lines<'t> {
    text: &'t str,
    newlines: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub(crate) fn of(text: &'t str) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self {
            text,
            newlines: newlines.map(|(offset, _)| offset).collect(),
        }
    }

    /// Returns the position of the byte at `offset`.
    pub(crate) fn at(&self, offset: usize) -> Position {
        let above = self.newlines.partition_point(|newline| *newline < offset);
        let start = above
            .checked_sub(1)
            .map_or(0, |last| self.newlines[last] + 1);
        let before = self.text.get(start..offset).unwrap_or_default();
        Position {
            line: above + 1,
            column: before.chars().count() + 1,
        }
    }
}

/// Converts a parsed table, keeping the order of the file.
pub(crate) fn table_of(
    table: DeTable<'_>,
    origin_of: &dyn Fn(usize) -> Origin,
) -> Result<TreeValue, Fault> {
    let mut entries: Vec<_> = table.into_iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let mut converted = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        let origin = origin_of(key.span().start);
        let key = key.into_inner().into_owned();
        let node = node_of(value, origin_of).map_err(|fault| fault.within(&key))?;
        converted.push(TreeEntry { key, origin, node });
    }
    Ok(TreeValue::Table(converted))
}

pub(crate) fn node_of(
    value: Spanned<DeValue<'_>>,
    origin_of: &dyn Fn(usize) -> Origin,
) -> Result<TreeNode, Fault> {
    let origin = origin_of(value.span().start);
    let value = match value.into_inner() {
        DeValue::String(string) => TreeValue::String(string.into_owned()),
        DeValue::Integer(integer) => i128::from_str_radix(integer.as_str(), integer.radix())
            .map(TreeValue::Integer)
            .map_err(|_| out_of_range(integer.as_str(), origin))?,
        DeValue::Float(float) => float
            .as_str()
            .parse()
            .map(TreeValue::Float)
            .map_err(|_| out_of_range(float.as_str(), origin))?,
        DeValue::Boolean(boolean) => TreeValue::Boolean(boolean),
        DeValue::Datetime(_) => TreeValue::Date,
        DeValue::Array(items) => TreeValue::Array(
            items
                .into_iter()
                .map(|item| node_of(item, origin_of))
                .collect::<Result<_, _>>()?,
        ),
        DeValue::Table(table) => table_of(table, origin_of)?,
    };
    Ok(TreeNode { origin, value })
}

fn out_of_range(number: &str, origin: Origin) -> Fault {
    Fault::new(
        Vec::new(),
        format!("expected a number within range, got {}", quoted(number)),
    )
    .at(origin)
}
