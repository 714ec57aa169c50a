//! The window rule of a host.

use bentpipe_tcp::CongestionControlKind;
use bentpipe_tcp::congestion::{EnhancedHyblaSettings, HyblaSettings, WestwoodSettings};

use super::RunError;
use crate::CustomControls;
use crate::schema::{CongestionControl, CongestionControlName, TcpFile};

/// The window rule that the settings ask for.
pub(super) fn kind(
    tcp: &TcpFile,
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
    let mut hybla = HyblaSettings::default();
    tcp.hybla.store(&mut hybla);
    let mut westwood = WestwoodSettings::default();
    tcp.westwood.store(&mut westwood);
    Ok(match built {
        CongestionControl::Reno => CongestionControlKind::Reno,
        CongestionControl::Westwood => CongestionControlKind::Westwood(westwood),
        CongestionControl::Hybla => CongestionControlKind::Hybla(hybla),
        CongestionControl::EnhancedHybla => match tcp.channel_capacity {
            Some(channel_capacity) => CongestionControlKind::EnhancedHybla(EnhancedHyblaSettings {
                channel_capacity: channel_capacity.0,
                bandwidth_filter: tcp.bandwidth_filter,
                hybla,
            }),
            // `resolve` has refused it.
            None => CongestionControlKind::Hybla(hybla),
        },
        CongestionControl::Cubic => CongestionControlKind::Cubic,
        CongestionControl::Bbr | CongestionControl::Bbr1 => CongestionControlKind::Bbr1,
        CongestionControl::Bbr3 => CongestionControlKind::Bbr3,
    })
}
