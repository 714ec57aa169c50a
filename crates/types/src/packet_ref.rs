//! [`PacketRef`].

/// Reference to a packet in a [`PacketStore`](crate::PacketStore). Valid until the packet is taken
/// or released.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PacketRef(pub(crate) u32);
