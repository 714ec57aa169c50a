//! The scenario file as a tree of values with their positions.
//!
//! `serde` reads the tree ([`read`](Document::read)) and `--set` changes it. The tree is kept after
//! reading, so that an error found later can name the line of its key.

mod fault;
mod overrides;
mod reader;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub use fault::Segment;
pub(crate) use fault::{Fault, KeyError, path};

use crate::ScenarioError;
use crate::error::{one_line, quoted};
use crate::schema::hints;
use fault::display_path;
use reader::Reader;

/// Position of a key or a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// A line of the file, counted from 1.
    Line(usize),
    /// The `--set` option with this index.
    Override(usize),
}

/// A value and its position; for a table with a header, the position of the header.
#[derive(Debug)]
struct Node {
    origin: Origin,
    value: Value,
}

#[derive(Debug)]
enum Value {
    String(String),
    Integer(i128),
    Float(f64),
    Boolean(bool),
    Date,
    Array(Vec<Node>),
    Table(Vec<Entry>),
}

#[derive(Debug)]
struct Entry {
    key: String,
    origin: Origin,
    node: Node,
}

impl Node {
    fn entry(&self, key: &str) -> Option<&Entry> {
        match &self.value {
            Value::Table(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    /// Returns the child for one step of a path, and the child's position.
    fn step(&self, segment: &Segment) -> Option<(Origin, &Self)> {
        match (segment, &self.value) {
            (Segment::Key(key), _) => self.entry(key).map(|entry| (entry.origin, &entry.node)),
            (Segment::Index(index), Value::Array(items)) => {
                items.get(*index).map(|item| (item.origin, item))
            }
            (Segment::Index(_), _) => None,
        }
    }
}

/// A scenario file with the overrides applied.
#[derive(Debug)]
pub(crate) struct Document {
    file: String,
    overrides: Vec<String>,
    root: Node,
}

impl Document {
    /// Parses the text and applies the overrides in order.
    pub(crate) fn parse(
        text: &str,
        file: &str,
        overrides: &[(&str, &str)],
    ) -> Result<Self, ScenarioError> {
        let lines = Lines::of(text);
        let table = DeTable::parse(text).map_err(|error| {
            // The parser gives no position for a key with too many parts.
            let span = error.span().unwrap_or_else(|| most_dots(text));
            let line = lines.at(span.start);
            let said = SyntaxError {
                message: error.message(),
                of: text.get(span).unwrap_or_default(),
            };
            ScenarioError::in_file(file, Some(line), "", &said.to_string())
        })?;
        let origin_of = |offset| Origin::Line(lines.at(offset));
        let mut document = Self {
            file: file.to_owned(),
            overrides: Vec::new(),
            root: Node {
                origin: Origin::Line(1),
                value: Value::Table(Vec::new()),
            },
        };
        match table_of(table.into_inner(), &origin_of) {
            Ok(value) => document.root.value = value,
            Err(fault) => return Err(document.explain(fault)),
        }
        document.apply(overrides)?;
        Ok(document)
    }

    /// Deserializes the whole document.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, ScenarioError> {
        T::deserialize(Reader(&self.root)).map_err(|fault| self.explain(fault))
    }

    /// Adds the position of its key to a fault: the line, or the `--set` option.
    pub(crate) fn explain(&self, fault: Fault) -> ScenarioError {
        let key = display_path(&fault.path);
        let origin = fault.origin.unwrap_or_else(|| self.locate(&fault.path));
        let message = match (self.foreign_to_kind(&fault.path), fault.of) {
            (Some(message), _) => message,
            (None, Some(all)) => {
                let table = display_path(&fault.path[..fault.path.len().saturating_sub(1)]);
                let known = fault.message;
                format!("{known}, ... ({all} in all: bentpipe explain {table})")
            }
            (None, None) => fault.message,
        };
        match origin {
            Origin::Line(line) => ScenarioError::in_file(&self.file, Some(line), &key, &message),
            Origin::Override(index) => {
                ScenarioError::in_override(&self.overrides[index], &key, &message)
            }
        }
    }

    /// Returns the message for a key that this kind of table does not have, whatever its value. All
    /// kinds share one table type, so `serde` reads the value before the kind is checked.
    fn foreign_to_kind(&self, path: &[Segment]) -> Option<String> {
        let [outer @ .., Segment::Key(table), Segment::Key(key)] = path else {
            return None;
        };
        let outer = outer.iter().try_fold(&self.root, |node, segment| {
            node.step(segment).map(|(_, next)| next)
        })?;
        match &outer.entry(table)?.node.entry("kind")?.node.value {
            Value::String(kind) => hints::foreign(table, kind, key),
            _ => None,
        }
    }

    /// Returns the position of the last existing part of the path.
    fn locate(&self, path: &[Segment]) -> Origin {
        let mut node = &self.root;
        let mut origin = node.origin;
        for segment in path {
            let Some((at, next)) = node.step(segment) else {
                // A missing key has the position of its table.
                let of_table = matches!((segment, &node.value), (Segment::Key(_), Value::Table(_)));
                return if of_table { node.origin } else { origin };
            };
            (origin, node) = (at, next);
        }
        origin
    }

    /// Refuses a `--set` whose key is not in a table, or whose TOML value has a type that is not
    /// supported.
    fn refuse_override(&self, index: usize, message: &str) -> ScenarioError {
        ScenarioError::in_override(&self.overrides[index], "", message)
    }
}

/// Keys and array indices that lead to a value.
pub type KeyPath = Vec<Segment>;

/// Returns the path of every key, table and array item in a TOML text with the line of its first
/// occurrence, counted from 1, in the order of the text. Returns `None` if the text is not valid
/// TOML.
#[must_use]
pub fn key_lines(text: &str) -> Option<Vec<(KeyPath, usize)>> {
    let document = Document::parse(text, "", &[]).ok()?;
    let mut found = Vec::new();
    document.root.lines(&mut Vec::new(), &mut found);
    // The sort is stable, so entries on one line keep their order.
    found.sort_by_key(|(_, line)| *line);
    Some(found)
}

impl Node {
    fn lines(&self, path: &mut KeyPath, found: &mut Vec<(KeyPath, usize)>) {
        let mut enter = |segment: Segment, origin: Origin, node: &Self| {
            // Without `--set`, every position is a line.
            let Origin::Line(line) = origin else {
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
            Value::Table(entries) => {
                for entry in entries {
                    enter(Segment::Key(entry.key.clone()), entry.origin, &entry.node);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    enter(Segment::Index(index), item.origin, item);
                }
            }
            _ => {}
        }
    }
}

/// A syntax error of the TOML parser, in the wording of this crate.
struct SyntaxError<'a> {
    message: &'a str,
    /// The text that the error is about.
    of: &'a str,
}

impl std::fmt::Display for SyntaxError<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let said = one_line(self.message);
        match said.as_str() {
            "string values must be quoted, expected literal string" => f.write_str(
                "expected a value: a string in quotes, a number, true or false, an array or a table",
            ),
            "duplicate key" => {
                let key = quoted(self.of.trim_matches(['"', '\'']));
                write!(f, "{key} stands twice: a key or a table is given once")
            }
            "recursion limit" | "cannot recurse further; max recursion depth met" => {
                f.write_str("nested deeper than any scenario: tables or arrays in one another")
            }
            _ => write!(f, "not TOML: {said}"),
        }
    }
}

/// Converts byte offsets to line numbers.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self(newlines.map(|(offset, _)| offset).collect())
    }

    /// Returns the line of the byte at `offset`, counted from 1.
    fn at(&self, offset: usize) -> usize {
        self.0.partition_point(|newline| *newline < offset) + 1
    }
}

/// Returns the position of the line with the most dots.
fn most_dots(text: &str) -> std::ops::Range<usize> {
    let (mut start, mut most, mut deepest) = (0, 0, 0);
    for line in text.split_inclusive('\n') {
        let dots = line.bytes().filter(|byte| *byte == b'.').count();
        if dots > most {
            (most, deepest) = (dots, start);
        }
        start += line.len();
    }
    deepest..deepest
}

/// Converts a parsed table, keeping the order of the file.
fn table_of(table: DeTable<'_>, origin_of: &dyn Fn(usize) -> Origin) -> Result<Value, Fault> {
    let mut entries: Vec<_> = table.into_iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let mut converted = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        let origin = origin_of(key.span().start);
        let key = key.into_inner().into_owned();
        let node = node_of(value, origin_of).map_err(|fault| fault.within(&key))?;
        converted.push(Entry { key, origin, node });
    }
    Ok(Value::Table(converted))
}

fn node_of(
    value: Spanned<DeValue<'_>>,
    origin_of: &dyn Fn(usize) -> Origin,
) -> Result<Node, Fault> {
    let origin = origin_of(value.span().start);
    let value = match value.into_inner() {
        DeValue::String(string) => Value::String(string.into_owned()),
        DeValue::Integer(integer) => i128::from_str_radix(integer.as_str(), integer.radix())
            .map(Value::Integer)
            .map_err(|_| out_of_range(integer.as_str(), origin))?,
        DeValue::Float(float) => float
            .as_str()
            .parse()
            .map(Value::Float)
            .map_err(|_| out_of_range(float.as_str(), origin))?,
        DeValue::Boolean(boolean) => Value::Boolean(boolean),
        DeValue::Datetime(_) => Value::Date,
        DeValue::Array(items) => Value::Array(
            items
                .into_iter()
                .map(|item| node_of(item, origin_of))
                .collect::<Result<_, _>>()?,
        ),
        DeValue::Table(table) => table_of(table, origin_of)?,
    };
    Ok(Node { origin, value })
}

fn out_of_range(number: &str, origin: Origin) -> Fault {
    Fault::new(
        Vec::new(),
        format!("expected a number within range, got {}", quoted(number)),
    )
    .at(origin)
}
