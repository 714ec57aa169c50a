//! Negotiation of TCP options in the handshake.

use bentpipe_types::{IpVersion, SynOptions};
use serde::{Deserialize, Serialize};

use crate::Config;

/// Length of the timestamps option with its padding (RFC 7323 appendix A).
pub const TIMESTAMPS_LENGTH: u8 = 12;

/// RFC 7323 section 2.3: the maximum window scale.
const MAXIMUM_SHIFT: u8 = 14;

/// net.core.rmem_max of Linux 6.18: maximum receive buffer that an application may set.
const MAXIMUM_SETTABLE_BUFFER: u64 = 4 << 20;

/// Minimum MSS accepted from a peer (Linux's TCP_MIN_SND_MSS), because a header per byte would be
/// an attack.
const MINIMUM_MSS: u16 = 48;

/// The negotiated options.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Negotiated {
    /// Payload of a full segment.
    pub(crate) segment: u32,
    /// Shift of the windows that the peer advertises.
    pub(crate) send_shift: u8,
    /// Shift of the windows that we advertise.
    pub(crate) receive_shift: u8,
    /// Every segment carries timestamps (RFC 7323 section 3.2: Snd.TS.OK).
    pub(crate) timestamps: bool,
    /// SACK blocks may be sent.
    pub(crate) sack: bool,
}

/// The options of our SYN; with `peer`, of our SYN+ACK, which only has options that the SYN
/// offered.
pub(crate) fn offer(config: &Config, peer: Option<&SynOptions>) -> SynOptions {
    SynOptions {
        maximum_segment_size: Some(config.announced_mss.unwrap_or_else(|| full_mss(config))),
        window_scale: (config.window_scaling && peer.is_none_or(|p| p.window_scale.is_some()))
            .then(|| receive_shift(config)),
        sack_permitted: config.sack && peer.is_none_or(|p| p.sack_permitted),
        fast_open: None,
    }
}

/// Length of a SYN's options, arranged as in Linux: SACK-permitted takes the place of the
/// timestamps' padding.
pub(crate) fn syn_options_length(options: &SynOptions, timestamps: bool) -> u8 {
    let mss = if options.maximum_segment_size.is_some() {
        4
    } else {
        0
    };
    let scale = if options.window_scale.is_some() { 4 } else { 0 };
    let rest = match (timestamps, options.sack_permitted) {
        (true, _) => TIMESTAMPS_LENGTH,
        (false, true) => 4,
        (false, false) => 0,
    };
    let fast_open = (options.fast_open).map_or(0, |o| o.option_length().next_multiple_of(4));
    mss + scale + rest + fast_open
}

/// Length of a SACK option: two bytes of padding, two of header, and eight per block.
pub(crate) const fn sack_length(blocks: usize) -> u8 {
    if blocks == 0 { 0 } else { 4 + 8 * blocks as u8 }
}

/// The options negotiated by both SYNs. `peer_timestamps`: the peer's SYN had the timestamps
/// option.
pub(crate) fn negotiate(config: &Config, peer: &SynOptions, peer_timestamps: bool) -> Negotiated {
    let timestamps = config.timestamps && peer_timestamps;
    // RFC 7323 section 2.2: both SYNs must have the option.
    let scaling = config.window_scaling && peer.window_scale.is_some();
    // RFC 9293 section 3.7.1: the default MSS if the option is absent.
    let default = match config.ip_version {
        IpVersion::V4 => 536,
        IpVersion::V6 => 1220,
    };
    let peer_mss = peer
        .maximum_segment_size
        .unwrap_or(default)
        .max(MINIMUM_MSS);
    let options = if timestamps { TIMESTAMPS_LENGTH } else { 0 };
    // RFC 6691 section 2, RFC 9293 section 3.7.1: Eff.snd.MSS.
    let segment = full_mss(config)
        .min(peer_mss)
        .saturating_sub(u16::from(options))
        .max(1);
    Negotiated {
        segment: u32::from(segment),
        // RFC 7323 section 2.3: a shift larger than 14 is treated as 14.
        send_shift: match peer.window_scale {
            Some(shift) if scaling => shift.min(MAXIMUM_SHIFT),
            _ => 0,
        },
        receive_shift: if scaling { receive_shift(config) } else { 0 },
        timestamps,
        sack: config.sack && peer.sack_permitted,
    }
}

/// Payload of a full segment without options: the MSS that we announce.
pub(crate) fn full_mss(config: &Config) -> u16 {
    let options = if config.timestamps {
        TIMESTAMPS_LENGTH
    } else {
        0
    };
    config.mss.max(1).saturating_add(u16::from(options))
}

/// The window scale: the smallest shift from `window_shift` on that can express the whole receive
/// buffer. Its unit is at most half of the buffer. The field is rounded down to whole units
/// (RFC 7323 section 2.3), and the window opens in steps of up to half the buffer
/// (RFC 9293 section 3.8.6.2.2). With a smaller buffer than both together, the field could stay 0
/// for ever. (Linux's __tcp_select_window rounds up.) A configured `window_scale` takes precedence.
fn receive_shift(config: &Config) -> u8 {
    if let Some(shift) = config.window_scale {
        return shift.min(MAXIMUM_SHIFT);
    }
    if let Some(sizes) = config.receive_sizes {
        // tcp_select_initial_window in Linux: for the size that the buffer can reach or an
        // application may set. If the application has set it, for the clamp, or for half of the
        // buffer.
        let widest = if sizes.locked {
            config.window_clamp.unwrap_or(sizes.initial / 2)
        } else {
            config
                .maximum_received()
                .max(sizes.initial)
                .max(MAXIMUM_SETTABLE_BUFFER)
        };
        let widest = widest.max(1);
        return (widest.ilog2().saturating_sub(15) as u8).min(MAXIMUM_SHIFT);
    }
    let half = (config.receive_buffer / 2).checked_ilog2().unwrap_or(0);
    let least = u32::from(config.window_shift.min(MAXIMUM_SHIFT)).min(half) as u8;
    (least..MAXIMUM_SHIFT)
        .find(|shift| config.receive_buffer >> shift <= u64::from(u16::MAX))
        .unwrap_or(MAXIMUM_SHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_subtracted_from_the_announced_mss() {
        let config = Config::default();
        let ours = offer(&config, None);
        assert_eq!(ours.maximum_segment_size, Some(1460));
        assert_eq!(negotiate(&config, &ours, true).segment, 1448);
        assert_eq!(negotiate(&config, &ours, false).segment, 1460);
    }

    #[test]
    fn smaller_mss_applies_and_the_default_is_536() {
        let config = Config::default();
        for (mss, expected) in [
            (Some(1000), 988),
            (None, 524),
            (Some(0), 36),
            (Some(9000), 1448),
        ] {
            let peer = SynOptions {
                maximum_segment_size: mss,
                ..SynOptions::default()
            };
            assert_eq!(negotiate(&config, &peer, true).segment, expected, "{mss:?}");
        }
    }

    #[test]
    fn scaling_requires_both_ends() {
        let config = Config::default();
        let ours = offer(&config, None);
        // 6 MiB / 65535 is a little more than 96.
        assert_eq!(ours.window_scale, Some(7));
        assert_eq!(negotiate(&config, &ours, true).receive_shift, 7);
        let refuses = SynOptions::default();
        let agreed = negotiate(&config, &refuses, true);
        assert_eq!((agreed.send_shift, agreed.receive_shift), (0, 0));
        assert_eq!(offer(&config, Some(&refuses)).window_scale, None);
        let absurd = SynOptions {
            window_scale: Some(255),
            ..refuses
        };
        assert_eq!(negotiate(&config, &absurd, true).send_shift, 14);
    }

    #[test]
    fn window_unit_is_at_most_half_the_buffer() {
        for (receive_buffer, window_shift, expected) in [
            (394, 12, 7),
            (6 << 20, 10, 10),
            (6 << 20, 0, 7),
            (511, 8, 7),
            (512, 8, 8),
            (1, 14, 0),
            (1 << 40, 0, 14),
        ] {
            let config = Config {
                receive_buffer,
                window_shift,
                ..Config::default()
            };
            assert_eq!(receive_shift(&config), expected, "{receive_buffer}");
        }
    }

    #[test]
    fn a_configured_window_scale_is_announced() {
        let config = Config {
            receive_buffer: 195_000,
            ..Config::default()
        };
        assert_eq!(offer(&config, None).window_scale, Some(2));
        let config = Config {
            window_scale: Some(3),
            ..config
        };
        let ours = offer(&config, None);
        assert_eq!(ours.window_scale, Some(3));
        assert_eq!(negotiate(&config, &ours, true).receive_shift, 3);
        let unscaled = SynOptions {
            window_scale: None,
            ..ours
        };
        assert_eq!(negotiate(&config, &unscaled, true).receive_shift, 0);
    }

    #[test]
    fn linux_window_scale_covers_settable_buffers() {
        // As observed with Linux 6.18.44, tcp_rmem 4096 65536 65536 and net.core.rmem_max of 4 MiB.
        let mut config = Config::linux();
        let sizes = config.receive_sizes.as_mut().unwrap();
        (sizes.initial, sizes.most) = (65_536, 65_536);
        assert_eq!(receive_shift(&config), 7);
        assert_eq!(receive_shift(&Config::linux()), 10);
    }

    #[test]
    fn a_linux_syn_has_twenty_bytes_of_options() {
        let options = offer(&Config::default(), None);
        assert_eq!(syn_options_length(&options, true), 20);
        assert_eq!(syn_options_length(&options, false), 12);
    }
}
