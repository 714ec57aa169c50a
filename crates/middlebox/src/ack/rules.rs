//! Content of acknowledgments, and when a later one replaces an earlier one.

use bentpipe_types::{Flags, Packet, PacketRef, PacketStore, SackBlock, Seq};
use bentpipe_wire::tcp_options_length;

/// Reason why an acknowledgment must not be removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeepReason {
    /// It carries data.
    Data,
    /// It has another flag than ACK and ECE: SYN, FIN, RST, URG, PSH or CWR.
    Control,
    /// It is the first one seen of its flow, so it may repeat an earlier one.
    First,
    /// It repeats an acknowledgment number, and three of these signal a loss (RFC 5681 section
    /// 3.2).
    Duplicate,
    /// It repeats an acknowledgment number with another window.
    WindowUpdate,
    /// It is older than an earlier one.
    Stale,
    /// It has unknown options.
    Options,
    /// A later one has the rest of its content, but does not cover its SACK blocks, or one of them
    /// is a D-SACK.
    Sack,
    /// ECE or the ECN field differs in the next one.
    Ecn,
    /// The next one has no timestamps or older ones.
    Timestamps,
    /// The next one acknowledges so much more that it fills a hole: acknowledgments restored in
    /// between would be partial ones (RFC 6582 section 3.2).
    Jump,
}

impl KeepReason {
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

    /// Returns the counter's name.
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

/// Checks that the packet has no data, no flags except ACK and ECE, and no unknown options.
pub(crate) fn plain(packets: &PacketStore, reference: PacketRef) -> Result<(), KeepReason> {
    let packet = packets.get(reference);
    if packet.payload_length > 0 {
        return Err(KeepReason::Data);
    }
    if !packet.flags.has(Flags::ACK) || packet.flags.0 & !PLAIN != 0 {
        return Err(KeepReason::Control);
    }
    // A TCP header of 20 bytes has no options.
    if packet.header_length != packet.ip_version().header_length() + 20
        && usize::from(packet.header_length) != known_length(packets, reference, packet)
    {
        return Err(KeepReason::Options);
    }
    Ok(())
}

/// Returns the length of the headers with the options in the record only.
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

/// Checks that `new`, which acknowledges more, contains everything that `old` does.
pub(crate) fn supersedes(
    packets: &PacketStore,
    old: PacketRef,
    new: PacketRef,
) -> Result<(), KeepReason> {
    let (earlier, later) = (packets.get(old), packets.get(new));
    if earlier.flags.has(Flags::ECE) != later.flags.has(Flags::ECE) || earlier.ecn() != later.ecn()
    {
        return Err(KeepReason::Ecn);
    }
    match (earlier.timestamps(), later.timestamps()) {
        (None, None) => (),
        (Some((value, echo)), Some((later_value, later_echo)))
            if Seq::new(value).at_or_before(Seq::new(later_value))
                && Seq::new(echo).at_or_before(Seq::new(later_echo)) => {}
        _ => return Err(KeepReason::Timestamps),
    }
    if earlier.has_sack_blocks() && !covers(packets, old, new) {
        return Err(KeepReason::Sack);
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
    // The first block of a D-SACK reports data received twice; the others are ordinary.
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

/// Whether the first block is a D-SACK (RFC 2883 section 4).
pub(crate) fn reports_duplicate(acknowledgment: Seq, blocks: &[SackBlock]) -> bool {
    match blocks {
        [] => false,
        [first, ..] if first.start.before(acknowledgment) => true,
        [first, second, ..] => contains(second, first),
        _ => false,
    }
}
