//! The scenario file as a tree of values, each of which knows where it was written.
//!
//! The tree is what `serde` reads ([`read`](Document::read)) and what `--set` changes. It is kept
//! after reading: a check that fails later names a key, and the tree says on which line it stands.

mod fault;
mod overrides;
mod reader;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub use fault::Segment;
pub(crate) use fault::{Fault, Wrong, path};

use crate::ScenarioError;
use crate::error::{one_line, quoted};
use crate::schema::hints;
use fault::display_path;
use reader::Reader;

/// Where a key or a value was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// On this line of the file, counted from 1.
    Line(usize),
    /// In the `--set` with this index.
    Override(usize),
}

/// A value and where it starts; for a table with a header of its own, where the header is.
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

    /// One step into it: where what is there was written, and what it is.
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
            // Of a key of too many parts the parser does not say where it is.
            let span = error.span().unwrap_or_else(|| most_dots(text));
            let line = lines.at(span.start);
            let said = Said {
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

    /// The whole document as a `T`.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, ScenarioError> {
        T::deserialize(Reader(&self.root)).map_err(|fault| self.explain(fault))
    }

    /// A fault with the place of its key: the line, or the `--set`.
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

    /// What is wrong with a key that its table's kind has not, whatever its value: all kinds share a table, so that the
    /// value is read, and another kind's keys are named, before anybody asks which kind it is.
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

    /// Where the last existing part of the path was written.
    fn locate(&self, path: &[Segment]) -> Origin {
        let mut node = &self.root;
        let mut origin = node.origin;
        for segment in path {
            let Some((at, next)) = node.step(segment) else {
                // Of a key that is not there, its table's.
                let of_table = matches!((segment, &node.value), (Segment::Key(_), Value::Table(_)));
                return if of_table { node.origin } else { origin };
            };
            (origin, node) = (at, next);
        }
        origin
    }

    /// `--set` of a key that holds no table, or of a value that TOML knows but cannot hold.
    fn refuse_override(&self, index: usize, message: &str) -> ScenarioError {
        ScenarioError::in_override(&self.overrides[index], "", message)
    }
}

/// Keys and numbers of items that lead to a value.
pub type KeyPath = Vec<Segment>;

/// Of every key, table and item of an array in a TOML text, by its path: the line from 1 that it first
/// stands on, in the order of the text. `None` where it is no TOML.
#[must_use]
pub fn key_lines(text: &str) -> Option<Vec<(KeyPath, usize)>> {
    let document = Document::parse(text, "", &[]).ok()?;
    let mut found = Vec::new();
    document.root.lines(&mut Vec::new(), &mut found);
    // What is on one line is in order already.
    found.sort_by_key(|(_, line)| *line);
    Some(found)
}

impl Node {
    fn lines(&self, path: &mut KeyPath, found: &mut Vec<(KeyPath, usize)>) {
        let mut enter = |segment: Segment, origin: Origin, node: &Self| {
            // Without a `--set`, everything is on a line.
            let Origin::Line(line) = origin else {
                return;
            };
            path.push(segment);
            let place = found.len();
            found.push((path.clone(), line));
            node.lines(path, found);
            // The header of a table may come after one of a table in it.
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

/// What the TOML parser says of a syntax error, in this crate's words.
struct Said<'a> {
    message: &'a str,
    /// The text that it says it of.
    of: &'a str,
}

impl std::fmt::Display for Said<'_> {
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

/// Byte offsets to line numbers.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self(newlines.map(|(offset, _)| offset).collect())
    }

    /// The line of the byte at `offset`, counted from 1.
    fn at(&self, offset: usize) -> usize {
        self.0.partition_point(|newline| *newline < offset) + 1
    }
}

/// The beginning of the line that has the most dots.
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

/// A parsed table in the order of the file, not of the alphabet.
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
