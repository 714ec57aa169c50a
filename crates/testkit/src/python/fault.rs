//! Reasons why code did not complete.

/// Reason why code did not complete.
#[derive(Clone, PartialEq, Debug)]
pub enum Fault {
    /// An assertion failed.
    Assertion {
        /// Line within the code, from 0.
        line: u32,
        /// The asserted expression.
        expected: String,
        /// Values of the names in it, and the assertion's message.
        got: String,
    },
    /// The code is invalid: an unknown name or a wrong type.
    Error {
        /// Line within the code, from 0.
        line: u32,
        /// Description of the error.
        message: String,
    },
    /// Python syntax that is not implemented.
    Unsupported {
        /// Line within the code, from 0.
        line: u32,
        /// The unsupported syntax.
        message: String,
    },
}
