//! A script, as it was written: packetdrill's language, parsed and not yet judged.

mod error;
mod lexer;
mod parser;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use bentpipe_types::{Flags, IcmpError};

pub use error::ParseError;
pub use parser::parse;

/// Words that stand for something else: `--define=NAME=VALUE`.
pub type Defines = BTreeMap<String, String>;

/// The longest script that is read, in bytes. The longest public one has a hundredth of that.
pub const LONGEST_SCRIPT: usize = 4 << 20;

/// A whole script.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Script {
    /// `--name=value` lines in front of everything.
    pub options: Vec<ScriptOption>,
    /// Commands without a time: before the first event, and after the last.
    pub commands: Vec<(u32, String)>,
    /// What happens, in order.
    pub events: Vec<Event>,
}

/// A `--name=value` line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScriptOption {
    /// Its line.
    pub line: u32,
    /// Without the hyphens.
    pub name: String,
    /// What follows the equals sign.
    pub value: Option<String>,
}

/// One thing that happens, or is expected to.
#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    /// The line its time is on.
    pub line: u32,
    /// When.
    pub time: When,
    /// What.
    pub action: Action,
}

/// The time of an event, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// `+t`: after the event before it.
    Relative(u64),
    /// `t`: after the beginning.
    Absolute(u64),
    /// `*`: at any time.
    Any,
    /// `+a~+b`
    RelativeRange(u64, u64),
    /// `a~b`
    AbsoluteRange(u64, u64),
}

/// What happens.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// A segment comes in, or is expected to go out.
    Packet(PacketSpec),
    /// An ICMP error comes in.
    Icmp(IcmpSpec),
    /// A system call.
    Call(CallSpec),
    /// A shell command.
    Command(String),
    /// Python.
    Code(String),
    /// Something that packetdrill knows and we don't.
    Unsupported(String),
}

/// Which way a segment goes, as the host under test sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// `<`
    Inbound,
    /// `>`
    Outbound,
}

/// The ECN field of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EcnSpec {
    /// Nothing is said.
    Any,
    /// `[noecn]`, `[ect0]`, `[ect1]`, `[ce]`
    Is(bentpipe_types::Ecn),
    /// `[ect01]`: either ECT.
    Capable,
}

/// A segment.
#[derive(Clone, PartialEq, Debug)]
pub struct PacketSpec {
    /// Which way.
    pub direction: Direction,
    /// The ECN field.
    pub ecn: EcnSpec,
    /// `source > destination` ports, if they are not the connection's.
    pub ports: Option<(u16, u16)>,
    /// Control bits.
    pub flags: Flags,
    /// Sequence number, relative to the sender's first.
    pub sequence: u32,
    /// Payload, in bytes.
    pub length: u16,
    /// Acknowledgment number, likewise; 0 if it isn't given.
    pub acknowledgment: u32,
    /// The window field, unscaled.
    pub window: Option<u16>,
    /// The urgent pointer.
    pub urgent: u16,
    /// TCP options; `None` is `<...>`: any.
    pub options: Option<Vec<OptionSpec>>,
}

/// An ICMP error about a segment of the host under test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IcmpSpec {
    /// What it says.
    pub error: IcmpError,
    /// The sequence number of the segment that it quotes, relative to our first.
    pub sequence: u32,
}

/// A TCP option.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OptionSpec {
    /// `nop`
    Nop,
    /// `eol`
    End,
    /// `mss n`
    MaximumSegmentSize(u16),
    /// `wscale n`
    WindowScale(u8),
    /// `sackOK`
    SackPermitted,
    /// `sack a:b c:d`
    Sack(Vec<(u32, u32)>),
    /// `TS val a ecr b`
    Timestamps(u32, u32),
    /// `FO cookie`
    FastOpen(Vec<u8>),
    /// `FOEXP cookie`: the experimental option (RFC 6994).
    FastOpenExperimental(Vec<u8>),
    /// `md5 digest`
    Md5(Vec<u8>),
}

/// A system call and what it is to return.
#[derive(Clone, PartialEq, Debug)]
pub struct CallSpec {
    /// `...t`: it blocks, until then (counted like the event's own time).
    pub until: Option<u64>,
    /// Its name.
    pub name: String,
    /// Its arguments.
    pub arguments: Vec<Expression>,
    /// What it returns.
    pub result: Expression,
    /// The error that -1 stands for.
    pub errno: Option<String>,
}

/// An argument.
#[derive(Clone, PartialEq, Debug)]
pub enum Expression {
    /// `...`: whatever it takes.
    Ellipsis,
    /// A number.
    Integer(i64),
    /// A name.
    Word(String),
    /// Text.
    Text(String),
    /// `a|b`
    Or(Vec<Expression>),
    /// `[a, b]`
    List(Vec<Expression>),
    /// `{name=a, b}`
    Fields(Vec<(Option<String>, Expression)>),
    /// `name(a, b)`
    Apply(String, Vec<Expression>),
}
