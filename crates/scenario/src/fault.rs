//! Errors about a key whose position is not known yet.

use std::fmt;

use serde::de::{self, Expected, Unexpected};

use crate::error::{Position, one_line, quoted};
use crate::hints;
use crate::suggest::suggest;

/// A key of a table, and the error message.
pub(crate) type KeyError = (&'static str, String);

/// One step from the root of the document to a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Segment {
    /// A key of a table.
    Key(String),
    /// Index of an array item, counted from 0.
    Index(usize),
}

/// Converts keys to a path.
pub(crate) fn path(keys: &[&str]) -> Vec<Segment> {
    keys.iter()
        .map(|key| Segment::Key((*key).to_owned()))
        .collect()
}

/// Writes the keys of a path as TOML does. Indices appear only in the line number.
pub(crate) fn display_path(path: &[Segment]) -> String {
    let mut text = String::new();
    for segment in path {
        let Segment::Key(key) = segment else { continue };
        if !text.is_empty() {
            text.push('.');
        }
        let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if key.chars().all(bare) && !key.is_empty() && key.len() <= 64 {
            text.push_str(key);
        } else {
            text.push_str(&quoted(key));
        }
    }
    text
}

const MISSING: &str = "missing";

/// A key and its error message.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) path: Vec<Segment>,
    pub(crate) origin: Option<Origin>,
    pub(crate) message: String,
    /// Number of keys that the table of an unknown key has, if the message lists only some of them.
    pub(crate) of: Option<usize>,
}

impl Fault {
    /// Creates a fault of the value at `path`; the document adds its position.
    pub(crate) fn new(path: Vec<Segment>, message: impl Into<String>) -> Self {
        Self {
            path,
            origin: None,
            message: message.into(),
            of: None,
        }
    }

    /// Prefixes the path with the key of the enclosing table.
    pub(crate) fn within(mut self, key: &str) -> Self {
        // The name of the table says whose `kind` is missing.
        if self.message == MISSING
            && self.path == path(&["kind"])
            && let Some(expected) = hints::kind_of(key)
        {
            self.message = format!("{MISSING}; expected {expected}");
        }
        // The key determines the example for a table or an array.
        if self.path.is_empty()
            && let Some((shape, got)) = self.message.split_once(", got ")
            && let Some(example) = hints::shape(key, shape)
        {
            self.message = format!("{shape} such as {example}, got {got}");
        }
        self.path.insert(0, Segment::Key(key.to_owned()));
        self
    }

    /// Sets the position, unless a more specific one is known.
    pub(crate) fn at(mut self, origin: Origin) -> Self {
        self.origin.get_or_insert(origin);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", display_path(&self.path), self.message)
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(Vec::new(), one_line(&message.to_string()))
    }

    fn invalid_type(got: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let expected = expected.to_string();
        let expected = in_toml_words(&expected);
        Self::new(
            Vec::new(),
            format!("expected {expected}, got {}", FoundValue(&got)),
        )
    }

    fn invalid_value(got: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(got, expected)
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Self {
        let expected = expected.to_string();
        let expected = in_toml_words(&expected);
        Self::new(Vec::new(), format!("expected {expected}, got {length}"))
    }

    fn unknown_variant(variant: &str, built: &'static [&'static str]) -> Self {
        Self::new(Vec::new(), hints::unknown_word(variant, built))
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> Self {
        let near =
            hints::suggested_key(field, known).or_else(|| suggest(field, known.iter().copied()));
        if let Some(near) = near {
            return Self::new(Vec::new(), hints::unknown_key_near(near));
        }
        let (keys, all) = hints::keys_to_name(field, known);
        let which = if all { "known here" } else { "closest" };
        let message = format!("unknown key; {which}: {}", keys.join(", "));
        Self {
            of: (!all).then_some(known.len()),
            ..Self::new(Vec::new(), message)
        }
    }

    fn missing_field(field: &'static str) -> Self {
        let message = match hints::expected(field) {
            Some(expected) => format!("missing; expected {expected}"),
            None => MISSING.to_owned(),
        };
        Self::new(path(&[field]), message)
    }
}

/// Translates serde's names of types to those of TOML.
fn in_toml_words(expected: &str) -> &str {
    match expected {
        "a boolean" => "true or false",
        "a sequence" => "an array",
        "a map" => "a table",
        "u64" | "usize" => "a whole number from 0 on",
        "u32" => "a whole number from 0 to 4294967295",
        "i64" => "a whole number",
        "u8" | "u16" => "a small whole number from 0 on",
        "f64" => "a number",
        other if other.starts_with("struct ") => "a table",
        other => other,
    }
}

/// The value that was found instead.
struct FoundValue<'a>(&'a Unexpected<'a>);

impl fmt::Display for FoundValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Unexpected::Bool(value) => write!(f, "{value}"),
            Unexpected::Unsigned(value) => write!(f, "{value}"),
            Unexpected::Signed(value) => write!(f, "{value}"),
            // `Debug` writes 1.0 and not 1, and 1e308 instead of 309 digits.
            Unexpected::Float(value) => write!(f, "{value:?}"),
            Unexpected::Str(value) => f.write_str(&quoted(value)),
            Unexpected::Seq => f.write_str("an array"),
            Unexpected::Map => f.write_str("a table"),
            Unexpected::Other(what) => f.write_str(what),
            other => write!(f, "{other}"),
        }
    }
}

/// Position of a key or a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// A place of the file.
    File(Position),
    /// The `--set` option with this index.
    Override(usize),
}

/// Keys and array indices that lead to a value.
pub type KeyPath = Vec<Segment>;

pub(crate) fn fault(keys: &[&str], message: impl Into<String>) -> Fault {
    Fault::new(path(keys), message)
}
