//! Values.

/// A Python value.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// `None`
    None,
    /// `True`, `False`
    Bool(bool),
    /// An integer. Python's have no end; these have 128 bits.
    Integer(i128),
    /// A float.
    Float(f64),
    /// A string.
    Text(String),
    /// A tuple, or a list.
    Tuple(Vec<Value>),
}

impl Value {
    /// Is it true, where a truth value is asked for?
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

    /// As `str()` has it.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            other => other.show(),
        }
    }

    /// As `repr()` has it.
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

    /// As a number: integer, unless it is a float.
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
