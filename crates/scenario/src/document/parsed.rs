//! A scenario file as it is read: parsed, with the overrides applied.

use serde::de::DeserializeOwned;
use toml::de::DeTable;

use crate::document::reader::Reader;
use crate::document::tree::{Lines, TreeNode, TreeValue, table_of};
use crate::error::{Position, ScenarioError, one_line, quoted};
use crate::fault::{Fault, KeyPath, Origin, Segment, display_path};

/// Returns the message about a key that a table of this kind does not have, given the names of the
/// table, the kind and the key; `None` if it has the key, or if there are no such kinds.
pub(crate) type ForeignKey = fn(&str, &str, &str) -> Option<String>;

/// A scenario file with the overrides applied.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) file: String,
    pub(crate) overrides: Vec<String>,
    pub(crate) root: TreeNode,
    foreign_key: ForeignKey,
}

impl Document {
    /// Parses the text and applies the overrides in order.
    pub(crate) fn parse(
        text: &str,
        file: &str,
        overrides: &[(&str, &str)],
        foreign_key: ForeignKey,
    ) -> Result<Self, ScenarioError> {
        let lines = Lines::of(text);
        let table = DeTable::parse(text).map_err(|error| {
            // The parser gives no position for a key with too many parts.
            let span = error.span().unwrap_or_else(|| most_dots(text));
            let position = lines.at(span.start);
            let said = SyntaxError {
                message: error.message(),
                of: text.get(span).unwrap_or_default(),
            };
            ScenarioError::in_file(file, Some(position), "", &said.to_string())
        })?;
        let origin_of = |offset| Origin::File(lines.at(offset));
        let mut document = Self {
            file: file.to_owned(),
            overrides: Vec::new(),
            root: TreeNode {
                origin: Origin::File(Position { line: 1, column: 1 }),
                value: TreeValue::Table(Vec::new()),
            },
            foreign_key,
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
            Origin::File(position) => {
                ScenarioError::in_file(&self.file, Some(position), &key, &message)
            }
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
            TreeValue::String(kind) => (self.foreign_key)(table, kind, key),
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
                let of_table = matches!(
                    (segment, &node.value),
                    (Segment::Key(_), TreeValue::Table(_))
                );
                return if of_table { node.origin } else { origin };
            };
            (origin, node) = (at, next);
        }
        origin
    }

    /// Refuses a `--set` whose key is not in a table, or whose TOML value has a type that is not
    /// supported.
    pub(crate) fn refuse_override(&self, index: usize, message: &str) -> ScenarioError {
        ScenarioError::in_override(&self.overrides[index], "", message)
    }
}

/// Returns the path of every key, table and array item in a TOML text with the line of its first
/// occurrence, counted from 1, in the order of the text. Returns `None` if the text is not valid
/// TOML.
#[must_use]
pub fn key_lines(text: &str) -> Option<Vec<(KeyPath, usize)>> {
    let document = Document::parse(text, "", &[], |_, _, _| None).ok()?;
    let mut found = Vec::new();
    document.root.lines(&mut Vec::new(), &mut found);
    // The sort is stable, so entries on one line keep their order.
    found.sort_by_key(|(_, line)| *line);
    Some(found)
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
