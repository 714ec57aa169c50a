//! What an ICMP error says of a packet that did not arrive.

/// An ICMP error (RFC 792, RFC 4443) about a packet that was sent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum IcmpError {
    /// No route to the destination's network.
    NetworkUnreachable,
    /// The destination's network is there, the destination is not.
    HostUnreachable,
    /// The destination doesn't know the protocol.
    ProtocolUnreachable,
    /// Nobody listens at the port.
    PortUnreachable,
    /// The packet is longer than a link of the path takes, and must not be fragmented.
    TooBig {
        /// The longest IP packet that the link takes, in bytes (RFC 1191 section 4); 0 where an old
        /// router doesn't say.
        mtu: u32,
    },
    /// A filter does not let it pass (RFC 1812 section 5.2.7.1).
    Prohibited,
    /// It has passed as many routers as it may.
    TimeExceeded,
    /// Its header makes no sense to somebody.
    ParameterProblem,
}

impl IcmpError {
    /// A hard error: it will not go away by itself (RFC 1122 section 4.2.3.9). With path MTU discovery
    /// "too big" is none.
    #[must_use]
    pub const fn is_hard(self) -> bool {
        matches!(self, Self::ProtocolUnreachable | Self::PortUnreachable)
    }
}
