//! A host's window rule.

use bentpipe_tcp::CongestionControlKind;
use bentpipe_tcp::congestion::{
    AfterLoss as TcpAfterLoss, AfterTimeout as TcpAfterTimeout,
    BandwidthFilter as TcpBandwidthFilter, EnhancedHyblaSettings, HyblaSettings,
    InitialThreshold as TcpInitialThreshold,
};

use crate::TcpSettings;
use crate::schema::{
    AfterLoss, AfterTimeout, BandwidthFilter, CongestionControl, HyblaFile, InitialThreshold,
};

/// The window rule that the settings ask for.
pub(super) fn kind(tcp: &TcpSettings) -> CongestionControlKind {
    match tcp.congestion_control {
        CongestionControl::Reno => CongestionControlKind::Reno,
        CongestionControl::Westwood => CongestionControlKind::Westwood,
        CongestionControl::Hybla => CongestionControlKind::Hybla(hybla(&tcp.hybla)),
        CongestionControl::EnhancedHybla => match tcp.channel_capacity {
            Some(channel_capacity) => CongestionControlKind::EnhancedHybla(EnhancedHyblaSettings {
                channel_capacity,
                bandwidth_filter: match tcp.bandwidth_filter {
                    BandwidthFilter::LastSample => TcpBandwidthFilter::LastSample,
                    BandwidthFilter::Westwood => TcpBandwidthFilter::Westwood,
                },
                hybla: hybla(&tcp.hybla),
            }),
            // `resolve` has refused it.
            None => CongestionControlKind::Hybla(hybla(&tcp.hybla)),
        },
        CongestionControl::Cubic => CongestionControlKind::Cubic,
        CongestionControl::Bbr | CongestionControl::Bbr1 => CongestionControlKind::Bbr1,
    }
}

fn hybla(file: &HyblaFile) -> HyblaSettings {
    HyblaSettings {
        reference_rtt: file.reference_rtt.0,
        initial_threshold: match file.initial_threshold {
            InitialThreshold::Configured => TcpInitialThreshold::Configured,
            InitialThreshold::BandwidthEstimate => TcpInitialThreshold::BandwidthEstimate,
        },
        after_loss: match file.after_loss {
            AfterLoss::Half => TcpAfterLoss::Half,
            AfterLoss::Quarter => TcpAfterLoss::Quarter,
        },
        after_timeout: match file.after_timeout {
            AfterTimeout::OneSegment => TcpAfterTimeout::OneSegment,
            AfterTimeout::Rho => TcpAfterTimeout::Rho,
        },
    }
}
