//! A real link of a gateway.

/// One of the two real links of a gateway, or two one-way links in opposite directions (a dish and
/// a modem).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Side {
    /// Name of the link.
    pub link: String,
    /// Name of the one-way link of the other direction, if `link` is one, too.
    pub other_way: Option<String>,
    /// MTU of its interface, in bytes.
    pub mtu: u32,
    /// Whether packets are sent at the file's rate, through the file's queue.
    pub shaped: bool,
}

/// Reason for refusing settings that need an address of the machine in the network.
pub(crate) const NO_ADDRESS: &str = "not between real networks: tunnels and fragments need an address of the gateway, and all addresses of its machine belong to the kernel";

/// Indices of the nodes that stand for the real networks behind the two links.
pub(crate) const ENDS: [usize; 2] = [0, 1];
