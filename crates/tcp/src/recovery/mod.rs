//! What was lost, and what to send again.
/// Which loss recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RecoveryKind {
    /// RFC 5681 section 3.2: recovery ends with the first acknowledgment of new data.
    Reno,
    /// RFC 6582: recovery ends when all that was outstanding at its start is acknowledged.
    #[default]
    NewReno,
}
