//! packetdrill scripts, run in simulated time against bentpipe's TCP.
//!
//! ```
//! use bentpipe_testkit::{Defines, Verdict, check};
//!
//! let script = "
//!     0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
//!    +0 bind(3, ..., ...) = 0
//!    +0 listen(3, 1) = 0
//!    +0 < S 0:0(0) win 32792 <mss 1000>
//!    +0 > S. 0:0(0) ack 1 <mss 1460>
//! ";
//! assert_eq!(check(script, &Defines::new()), Verdict::Passed);
//! ```

pub mod hostile;
pub mod python;
pub mod report;
mod runner;
pub mod script;
pub mod triage;

pub use runner::{Verdict, run};
pub use script::Defines;

/// Parses and runs a script.
#[must_use]
pub fn check(source: &str, defines: &Defines) -> Verdict {
    match script::parse(source, defines) {
        Ok(script) => run(&script),
        Err(error) => Verdict::Failed {
            line: error.line,
            expected: "packetdrill's language".to_owned(),
            got: error.message,
        },
    }
}
