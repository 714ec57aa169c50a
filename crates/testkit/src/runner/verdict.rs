//! Result of a script.

/// Result of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// All expectations were met.
    Passed,
    /// An expectation was not met.
    Failed {
        /// Line of the expectation.
        line: u32,
        /// Expected event.
        expected: String,
        /// Actual event.
        got: String,
    },
    /// It needs a missing feature.
    Unsupported {
        /// Line that needs it.
        line: u32,
        /// The missing feature.
        missing: String,
    },
}

/// Reason why an event did not happen as written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Problem {
    Wrong { expected: String, got: String },
    Missing(String),
}

impl Problem {
    pub(super) fn wrong(expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self::Wrong {
            expected: expected.into(),
            got: got.into(),
        }
    }

    pub(super) fn missing(what: impl Into<String>) -> Self {
        Self::Missing(what.into())
    }

    pub(super) fn at(self, line: u32) -> Verdict {
        match self {
            Self::Wrong { expected, got } => Verdict::Failed {
                line,
                expected,
                got,
            },
            Self::Missing(missing) => Verdict::Unsupported { line, missing },
        }
    }
}
