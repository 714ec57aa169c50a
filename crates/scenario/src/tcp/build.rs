//! TCP configurations in the engine.

use crate::custom::CustomControls;
use crate::run::error::RunError;
use crate::tcp::congestion::CongestionControlName;
use crate::tcp::settings::TcpSettings;
use bentpipe_tcp::{Config, CongestionControlKind};

/// Limits the segments of an end to packets of `mtu` bytes, the MTU of its own link.
pub(crate) fn within_mtu(config: Config, mtu: Option<u32>) -> Config {
    let Some(mtu) = mtu else {
        return config;
    };
    let options = if config.timestamps { 12 } else { 0 };
    let most = config.ip_version.mss_within(mtu.saturating_sub(options));
    Config {
        mss: config.mss.min(most),
        ..config
    }
}

/// Returns the configuration of an end.
pub(crate) fn tcp_config(tcp: &TcpSettings, custom: &CustomControls) -> Result<Config, RunError> {
    Ok(Config {
        congestion_control: congestion_control_kind(&tcp.file.congestion_control, custom)?,
        ..tcp.config.clone()
    })
}

/// Returns the congestion control of this name.
pub(crate) fn congestion_control_kind(
    name: &CongestionControlName,
    custom: &CustomControls,
) -> Result<CongestionControlKind, RunError> {
    match name {
        CongestionControlName::BuiltIn(rule) => Ok((*rule).into()),
        CongestionControlName::Custom(name) => {
            let message = || format!("no congestion control is registered as \"{name}\"");
            (custom.factory(name))
                .map(|factory| CongestionControlKind::Custom(factory.clone()))
                .ok_or_else(|| RunError::Request(message()))
        }
    }
}
