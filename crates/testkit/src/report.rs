//! Results of scripts, as text and JSON.

use std::fmt::{self, Write};

use serde::Serialize;

use crate::Verdict;
use crate::triage::{Cause, triage};

/// Result of one script.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Path of the script.
    pub script: String,
    /// `passed`, `failed` or `unsupported`.
    pub verdict: &'static str,
    /// Line that failed or that needs a missing feature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Expected event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// Actual event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub got: Option<String>,
    /// Missing feature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

impl Outcome {
    /// Creates the result of the script at a path.
    #[must_use]
    pub fn new(script: &str, verdict: Verdict) -> Self {
        let mut outcome = Self {
            script: script.to_owned(),
            verdict: "passed",
            line: None,
            expected: None,
            got: None,
            missing: None,
        };
        match verdict {
            Verdict::Passed => {}
            Verdict::Failed {
                line,
                expected,
                got,
            } => {
                outcome.verdict = "failed";
                outcome.line = Some(line);
                outcome.expected = Some(expected);
                outcome.got = Some(got);
            }
            Verdict::Unsupported { line, missing } => {
                outcome.verdict = "unsupported";
                outcome.line = Some(line);
                outcome.missing = Some(missing);
            }
        }
        outcome
    }

    /// Whether the script passed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.verdict == "passed"
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:11} {}", self.verdict, self.script)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(missing) = &self.missing {
            write!(f, ": {missing}")?;
        }
        if let (Some(expected), Some(got)) = (&self.expected, &self.got) {
            write!(f, "\n    expected {expected}\n    got      {got}")?;
        }
        Ok(())
    }
}

/// Results of several scripts.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Number of passed scripts.
    pub passed: usize,
    /// Number of failed scripts.
    pub failed: usize,
    /// Number of unsupported scripts.
    pub unsupported: usize,
    /// Individual results.
    pub scripts: Vec<Outcome>,
}

impl Report {
    /// Adds a result.
    pub fn add(&mut self, outcome: Outcome) {
        match outcome.verdict {
            "passed" => self.passed += 1,
            "failed" => self.failed += 1,
            _ => self.unsupported += 1,
        }
        self.scripts.push(outcome);
    }

    /// Whether some scripts ran and all of them passed; with `strict`, also whether all were
    /// supported.
    #[must_use]
    pub fn is_good(&self, strict: bool) -> bool {
        self.passed > 0 && self.failed == 0 && (!strict || self.unsupported == 0)
    }

    /// Returns the last line.
    #[must_use]
    pub fn summary(&self) -> String {
        format!(
            "{} passed, {} failed, {} unsupported",
            self.passed, self.failed, self.unsupported
        )
    }

    /// Returns one JSON object.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns a Markdown table with the counts by cause and every script that did not pass.
    #[must_use]
    pub fn table(&self) -> String {
        let others = || self.scripts.iter().filter(|outcome| !outcome.passed());
        let mut text = format!(
            "| verdict | cause | scripts |\n|---|---|---|\n| passed | | {} |\n",
            self.passed
        );
        for verdict in ["failed", "unsupported"] {
            for cause in Cause::ALL {
                let of_this = |o: &&Outcome| o.verdict == verdict && triage(&o.script).0 == cause;
                let count = others().filter(of_this).count();
                if count > 0 {
                    let _ = writeln!(text, "| {verdict} | {cause} | {count} |");
                }
            }
        }
        text.push_str("\n| script | verdict | cause | why |\n|---|---|---|---|\n");
        for outcome in others() {
            let (cause, why) = triage(&outcome.script);
            let seen = match (&outcome.missing, &outcome.line) {
                (Some(missing), _) => format!("needs {missing}"),
                (None, Some(line)) => format!("line {line}"),
                (None, None) => String::new(),
            };
            let seen = seen.replace('|', "\\|");
            let why = if why.is_empty() {
                seen
            } else {
                format!("{why} ({seen})")
            };
            let _ = writeln!(
                text,
                "| {} | {} | {cause} | {why} |",
                name(&outcome.script),
                outcome.verdict
            );
        }
        text
    }
}

/// Returns the script's folder and name.
fn name(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').collect();
    let from = parts
        .iter()
        .rposition(|part| *part == "tcp")
        .map_or(0, |at| at + 1);
    let from = if from == 0 {
        parts.len().saturating_sub(2)
    } else {
        from
    };
    format!("`{}`", parts[from..].join("/"))
}
