//! Limits of a scenario, so that no file exhausts the machine.

use bentpipe_types::Span;

use crate::directory::Directory;
use crate::fault::{Fault, fault};
use crate::quantity::time::{LONGEST, LONGEST_DELAY};

/// Longest scenario file: 1 MiB.
pub const MAX_FILE_BYTES: u64 = 1 << 20;

/// Longest run: three days, within the scheduler's 48-bit clock.
pub const MAX_DURATION: Span = LONGEST;

/// Longest propagation delay: an hour.
pub const MAX_DELAY: Span = LONGEST_DELAY;

/// Most hosts, gateways and link directions together: the scheduler's ids have 16 bits.
pub const MAX_NODES_AND_DIRECTIONS: usize = 60_000;

/// Most flows of a table: a host's ports have 16 bits.
pub const MAX_FLOWS_OF_TABLE: usize = 60_000;

/// Most flows of all tables together.
pub const MAX_FLOWS: usize = 1_000_000;

/// Most series.
pub const MAX_SERIES: usize = 10_000;

/// Most samples of all series together that a run keeps, at 16 bytes each.
pub const MAX_RECORDS: u64 = 20_000_000;

/// Most samples of all series together if they are taken during the run: 16 GB before compression.
pub const MAX_TAKEN_RECORDS: u64 = 1_000_000_000;

/// Most listed packets of all link directions together.
pub const MAX_LOST_PACKETS: usize = 1_000_000;

/// Longest trace file: 64 MiB.
pub const MAX_TRACE_BYTES: u64 = 64 << 20;

/// Most bytes of all trace files together, each read once: 256 MiB.
pub const MAX_TRACES_BYTES: u64 = 256 << 20;

/// Suggestion if there are too many hosts.
pub(crate) const SHARE: &str = "users may share a host and its link: give the count to their flow; or simulate a tenth of them at a tenth of the rate";

/// Suggestion if there are too many flows.
pub(crate) const FEWER: &str = "simulate a tenth of them at a tenth of the rate";

/// Returns a suggestion in brackets if a limit is exceeded.
pub(crate) fn instead(too_much: bool, what: &str) -> String {
    if too_much {
        format!(" ({what})")
    } else {
        String::new()
    }
}

/// Checks a number of entries ("hosts"): one to `most`.
///
/// # Errors
/// The expected range, and a suggestion if there are too many.
pub(crate) fn count_of(what: &str, count: i64, most: usize, then: &str) -> Result<usize, String> {
    let fitting = usize::try_from(count).ok();
    fitting
        .filter(|count| (1..=most).contains(count))
        .ok_or_else(|| {
            let instead = instead(count > 0, then);
            format!("expected 1 to {most} {what}, got {count}{instead}")
        })
}

pub(crate) fn check(
    nodes: &Directory<'_>,
    links: &Directory<'_>,
    flows: &Directory<'_>,
) -> Result<(), Fault> {
    let asked = nodes.len().saturating_add(links.len().saturating_mul(2));
    if asked > MAX_NODES_AND_DIRECTIONS {
        let message = format!(
            "expected at most {MAX_NODES_AND_DIRECTIONS} nodes and link directions together, got {asked}{}",
            instead(true, SHARE)
        );
        return Err(fault(&["links"], message));
    }
    if flows.len() > MAX_FLOWS {
        let asked = flows.len();
        let instead = instead(true, FEWER);
        let message = format!("expected at most {MAX_FLOWS} flows, got {asked}{instead}");
        return Err(fault(&["flows"], message));
    }
    Ok(())
}
