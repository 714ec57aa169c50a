//! What a split gateway can be told.

use bentpipe_tcp::Config;
use bentpipe_types::{Port, Processing, Span};

use crate::Class;

/// The settings of a gateway that splits connections.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The port towards the link that the gateway is there for.
    pub facing: Port,
    /// The TCP of the parts of connections that go out there.
    pub facing_tcp: Config,
    /// The TCP of the other parts.
    pub host_tcp: Config,
    /// When the side that opens a connection is answered.
    pub set_up: Answer,
    /// When the end of a stream is confirmed to the side that sends it.
    pub close: Answer,
    /// Most bytes of streams that are promised room at once, all connections together.
    pub memory: u64,
    /// Split only these; `None`: all.
    pub only: Option<Class>,
    /// Don't split these; `None`: there are none.
    pub except: Option<Class>,
    /// What a packet takes; `None`: no time.
    pub processing: Option<Processing>,
    /// Parts that go out at `facing` begin with the window and the threshold that earlier ones have
    /// ended with.
    pub warm_path: bool,
    /// After so long without a packet, a connection is reset.
    pub idle_timeout: Span,
}

/// When one side is told what has become of what it asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// When the other side has answered.
    EndToEnd,
    /// At once.
    Early,
}
