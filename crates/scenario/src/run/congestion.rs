//! A host's window rule.

use bentpipe_tcp::CongestionControlKind;
use bentpipe_tcp::congestion::{
    AfterLoss as TcpAfterLoss, AfterTimeout as TcpAfterTimeout,
    BandwidthFilter as TcpBandwidthFilter, EnhancedHyblaSettings, HyblaSettings,
    InitialThreshold as TcpInitialThreshold, WestwoodAfterLoss as TcpWestwoodAfterLoss,
};

use super::RunError;
use crate::schema::{
    AfterLoss, AfterTimeout, BandwidthFilter, CongestionControl, CongestionControlName, HyblaFile,
    InitialThreshold, WestwoodAfterLoss,
};
use crate::{CustomControls, TcpSettings};

/// The window rule that the settings ask for.
pub(super) fn kind(
    tcp: &TcpSettings,
    custom: &CustomControls,
) -> Result<CongestionControlKind, RunError> {
    let built = match &tcp.congestion_control {
        CongestionControlName::BuiltIn(built) => *built,
        CongestionControlName::Custom(name) => {
            let message = || format!("no congestion control is registered as \"{name}\"");
            return custom
                .factory(name)
                .map(|factory| CongestionControlKind::Custom(factory.clone()))
                .ok_or_else(|| RunError::Request(message()));
        }
    };
    Ok(match built {
        CongestionControl::Reno => CongestionControlKind::Reno,
        CongestionControl::Westwood => {
            CongestionControlKind::Westwood(match tcp.westwood.after_loss {
                WestwoodAfterLoss::Pipe => TcpWestwoodAfterLoss::Pipe,
                WestwoodAfterLoss::AtLeastHalf => TcpWestwoodAfterLoss::AtLeastHalf,
            })
        }
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
        CongestionControl::Bbr3 => CongestionControlKind::Bbr3,
    })
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
