//! Python values.

/// A Python value.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer, limited to 128 bits.
    Integer(i128),
    /// A float.
    Float(f64),
    /// A string.
    Text(String),
    /// A tuple or a list.
    Tuple(Vec<Value>),
}

impl Value {
    /// Whether the value is true in a boolean context.
    #[must_use]
    pub fn is_true(&self) -> bool {
        match self {
            Self::None => false,
            Self::Bool(truth) => *truth,
            Self::Integer(n) => *n != 0,
            Self::Float(x) => *x != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::Tuple(all) => !all.is_empty(),
        }
    }

    /// Returns the value as `str()` does.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            other => other.show(),
        }
    }

    /// Returns the value as `repr()` does.
    #[must_use]
    pub fn show(&self) -> String {
        match self {
            Self::None => "None".to_owned(),
            Self::Bool(true) => "True".to_owned(),
            Self::Bool(false) => "False".to_owned(),
            Self::Integer(n) => n.to_string(),
            Self::Float(x) => format!("{x:?}"),
            Self::Text(text) => format!("{text:?}"),
            Self::Tuple(all) => {
                let all: Vec<_> = all.iter().map(Self::show).collect();
                format!("({})", all.join(", "))
            }
        }
    }

    /// Returns the value as an integer, unless it is a float.
    pub(super) fn integer(&self) -> Option<i128> {
        match self {
            Self::Bool(truth) => Some(i128::from(*truth)),
            Self::Integer(n) => Some(*n),
            _ => None,
        }
    }

    pub(super) fn float(&self) -> Option<f64> {
        match self {
            Self::Float(x) => Some(*x),
            other => other.integer().map(|n| n as f64),
        }
    }
}

impl From<u64> for Value {
    fn from(n: u64) -> Self {
        Self::Integer(i128::from(n))
    }
}
