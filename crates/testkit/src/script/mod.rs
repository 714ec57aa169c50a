//! Parsed packetdrill scripts.

mod error;
mod lexer;
mod parser;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use bentpipe_types::{Flags, IcmpError};

pub use error::ParseError;
pub use parser::parse;

/// Defined words: `--define=NAME=VALUE`.
pub type Defines = BTreeMap<String, String>;

/// Maximum length of a script in bytes, a hundred times that of the longest public script.
pub const LONGEST_SCRIPT: usize = 4 << 20;

/// A script.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Script {
    /// `--name=value` lines at the beginning.
    pub options: Vec<ScriptOption>,
    /// Commands without a time, before the first event and after the last.
    pub commands: Vec<(u32, String)>,
    /// Events in order.
    pub events: Vec<Event>,
}

/// A `--name=value` line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScriptOption {
    /// Line number.
    pub line: u32,
    /// Name without hyphens.
    pub name: String,
    /// Text after the equals sign.
    pub value: Option<String>,
}

/// An action or an expectation.
#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    /// Line number of its time.
    pub line: u32,
    /// Time.
    pub time: When,
    /// Action.
    pub action: Action,
}

/// The time of an event, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// `+t`: relative to the previous event.
    Relative(u64),
    /// `t`: relative to the start.
    Absolute(u64),
    /// `*`: at any time.
    Any,
    /// `+a~+b`.
    RelativeRange(u64, u64),
    /// `a~b`.
    AbsoluteRange(u64, u64),
}

/// Kind of an event.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// A segment that arrives or is expected.
    Packet(PacketSpec),
    /// An ICMP error that arrives.
    Icmp(IcmpSpec),
    /// A system call.
    Call(CallSpec),
    /// A shell command.
    Command(String),
    /// Python code.
    Code(String),
    /// A feature of packetdrill that is not supported.
    Unsupported(String),
}

/// Direction of a segment, seen from the host under test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// `<`.
    Inbound,
    /// `>`.
    Outbound,
}

/// The ECN field of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EcnSpec {
    /// Not specified.
    Any,
    /// `[noecn]`, `[ect0]`, `[ect1]`, `[ce]`.
    Is(bentpipe_types::Ecn),
    /// `[ect01]`: either ECT.
    Capable,
}

/// A segment.
#[derive(Clone, PartialEq, Debug)]
pub struct PacketSpec {
    /// Direction.
    pub direction: Direction,
    /// The ECN field.
    pub ecn: EcnSpec,
    /// Ports as `source > destination`, if they differ from the connection's.
    pub ports: Option<(u16, u16)>,
    /// Control bits.
    pub flags: Flags,
    /// Sequence number, relative to the sender's initial one.
    pub sequence: u32,
    /// Payload length in bytes.
    pub length: u16,
    /// Acknowledgment number, relative to the peer's initial sequence number; 0 if not given.
    pub acknowledgment: u32,
    /// Window field, not scaled.
    pub window: Option<u16>,
    /// Urgent pointer.
    pub urgent: u16,
    /// TCP options, or `None` for `<...>`: any.
    pub options: Option<Vec<OptionSpec>>,
}

/// An ICMP error about a segment of the host under test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IcmpSpec {
    /// The error.
    pub error: IcmpError,
    /// Sequence number of the quoted segment, relative to our initial one.
    pub sequence: u32,
}

/// A TCP option.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OptionSpec {
    /// `nop`.
    Nop,
    /// `eol`.
    End,
    /// `mss n`.
    MaximumSegmentSize(u16),
    /// `wscale n`.
    WindowScale(u8),
    /// `sackOK`.
    SackPermitted,
    /// `sack a:b c:d`.
    Sack(Vec<(u32, u32)>),
    /// `TS val a ecr b`.
    Timestamps(u32, u32),
    /// `FO cookie`.
    FastOpen(Vec<u8>),
    /// `FOEXP cookie`: the experimental option (RFC 6994).
    FastOpenExperimental(Vec<u8>),
    /// `md5 digest`.
    Md5(Vec<u8>),
}

/// A system call with its expected result.
#[derive(Clone, PartialEq, Debug)]
pub struct CallSpec {
    /// `...t`: time until which it blocks, counted like the event's own time.
    pub until: Option<u64>,
    /// Its name.
    pub name: String,
    /// Its arguments.
    pub arguments: Vec<Expression>,
    /// Expected result.
    pub result: Expression,
    /// Expected error for -1.
    pub errno: Option<String>,
}

/// An argument.
#[derive(Clone, PartialEq, Debug)]
pub enum Expression {
    /// `...`: any value.
    Ellipsis,
    /// A number.
    Integer(i64),
    /// A name.
    Word(String),
    /// Text.
    Text(String),
    /// `a|b`.
    Or(Vec<Expression>),
    /// `[a, b]`.
    List(Vec<Expression>),
    /// `{name=a, b}`.
    Fields(Vec<(Option<String>, Expression)>),
    /// `name(a, b)`.
    Apply(String, Vec<Expression>),
}
