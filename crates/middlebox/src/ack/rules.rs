//! What an acknowledgment says, and when a later one says it all.

use bentpipe_types::{Flags, Packet, PacketRef, PacketStore, SackBlock, Seq};
use bentpipe_wire::tcp_options_length;

/// Why an acknowledgment is not to be removed, whatever follows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// It carries data.
    Data,
    /// It has another flag than ACK and ECE: SYN, FIN, RST, URG, PSH or CWR.
    Control,
    /// The first of a flow that is seen: whether it repeats something is not known.
    First,
    /// It repeats an acknowledgment number, and three of these mark a loss (RFC 5681 section 3.2).
    Duplicate,
    /// It repeats an acknowledgment number, with another window.
    WindowUpdate,
    /// It is older than one seen before.
    Stale,
    /// It has options that are not known.
    Options,
    /// A later one says the rest, but its SACK blocks don't cover those of this one, or one of this
    /// one's is a D-SACK.
    Sack,
    /// ECE, or the ECN field, is another one in what follows.
    Ecn,
    /// What follows has no timestamps or older ones.
    Timestamps,
    /// What follows acknowledges so much more that it fills a hole: acknowledgments made up in between
    /// would be partial ones (RFC 6582 section 3.2).
    Jump,
}

impl Kept {
    /// Every reason, in the order of their counters.
    pub const ALL: [Self; 11] = [
        Self::Data,
        Self::Control,
        Self::First,
        Self::Duplicate,
        Self::WindowUpdate,
        Self::Stale,
        Self::Options,
        Self::Sack,
        Self::Ecn,
        Self::Timestamps,
        Self::Jump,
    ];

    /// Its counter's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "kept_data",
            Self::Control => "kept_control",
            Self::First => "kept_first",
            Self::Duplicate => "kept_duplicate",
            Self::WindowUpdate => "kept_window_update",
            Self::Stale => "kept_stale",
            Self::Options => "kept_options",
            Self::Sack => "kept_sack",
            Self::Ecn => "kept_ecn",
            Self::Timestamps => "kept_timestamps",
            Self::Jump => "kept_jump",
        }
    }
}

/// Flags that a removable acknowledgment may have.
const PLAIN: u8 = Flags::ACK.0 | Flags::ECE.0;

/// Does the packet carry no data, no flags but ACK and ECE, and no unknown options?
pub(crate) fn plain(packets: &PacketStore, reference: PacketRef) -> Result<(), Kept> {
    let packet = packets.get(reference);
    if packet.payload_length > 0 {
        return Err(Kept::Data);
    }
    if !packet.flags.has(Flags::ACK) || packet.flags.0 & !PLAIN != 0 {
        return Err(Kept::Control);
    }
    // 20 bytes of TCP: without options.
    if packet.header_length != packet.ip_version().header_length() + 20
        && usize::from(packet.header_length) != known_length(packets, reference, packet)
    {
        return Err(Kept::Options);
    }
    Ok(())
}

/// The headers' length if there are no options but those in the record.
fn known_length(packets: &PacketStore, reference: PacketRef, packet: &Packet) -> usize {
    let blocks = if packet.has_sack_blocks() {
        packets.sack_blocks(reference).as_slice().len()
    } else {
        0
    };
    usize::from(packet.ip_version().header_length())
        + 20
        + tcp_options_length(Default::default(), packet.timestamps().is_some(), blocks)
}

/// Does `new`, which acknowledges more, tell all that `old` does?
pub(crate) fn supersedes(
    packets: &PacketStore,
    old: PacketRef,
    new: PacketRef,
) -> Result<(), Kept> {
    let (earlier, later) = (packets.get(old), packets.get(new));
    if earlier.flags.has(Flags::ECE) != later.flags.has(Flags::ECE) || earlier.ecn() != later.ecn()
    {
        return Err(Kept::Ecn);
    }
    match (earlier.timestamps(), later.timestamps()) {
        (None, None) => (),
        (Some((value, echo)), Some((later_value, later_echo)))
            if Seq::new(value).at_or_before(Seq::new(later_value))
                && Seq::new(echo).at_or_before(Seq::new(later_echo)) => {}
        _ => return Err(Kept::Timestamps),
    }
    if earlier.has_sack_blocks() && !covers(packets, old, new) {
        return Err(Kept::Sack);
    }
    Ok(())
}

fn covers(packets: &PacketStore, old: PacketRef, new: PacketRef) -> bool {
    let earlier = packets.sack_blocks(old);
    if reports_duplicate(packets.get(old).acknowledgment, earlier.as_slice()) {
        return false;
    }
    let acknowledged = packets.get(new).acknowledgment;
    let later = packets.sack_blocks(new);
    // A D-SACK's first block is of data received twice; the others are as ever.
    let skip = usize::from(reports_duplicate(acknowledged, later.as_slice()));
    earlier.as_slice().iter().all(|block| {
        block.end.at_or_before(acknowledged)
            || later.as_slice()[skip..]
                .iter()
                .any(|other| contains(other, block))
    })
}

fn contains(outer: &SackBlock, inner: &SackBlock) -> bool {
    outer.start.at_or_before(inner.start) && outer.end.at_or_after(inner.end)
}

/// Is the first block a D-SACK (RFC 2883 section 4)?
pub(crate) fn reports_duplicate(acknowledgment: Seq, blocks: &[SackBlock]) -> bool {
    match blocks {
        [] => false,
        [first, ..] if first.start.before(acknowledgment) => true,
        [first, second, ..] => contains(second, first),
        _ => false,
    }
}
