//! TCP configurations of the ends of flows, from scenario, congestion control and links.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use bentpipe_tcp::{Config, CongestionControlKind, HostClock};

use crate::custom::CustomControls;
use crate::run::error::RunError;
use crate::scenario::settings::Scenario;
use crate::tcp::congestion::CongestionControlName;
use crate::tcp::settings::TcpSettings;

/// Configurations of flows' ends. Hosts made by one `count` share one, unless each draws its clock.
#[derive(Default)]
pub(crate) struct TcpEnds {
    known: BTreeMap<(*const TcpSettings, Option<u32>, HostClock), Arc<Config>>,
}

impl TcpEnds {
    pub(crate) fn tcp_of(
        &mut self,
        scenario: &Scenario,
        node: usize,
        mtu: Option<u32>,
        custom: &CustomControls,
        clock: HostClock,
    ) -> Result<Arc<Config>, RunError> {
        let Some(tcp) = scenario.tcp_of(node) else {
            return Ok(Arc::new(within_mtu(Config::default(), mtu)));
        };
        Ok(
            match (self.known).entry((std::ptr::from_ref(tcp), mtu, clock)) {
                Entry::Occupied(known) => Arc::clone(known.get()),
                Entry::Vacant(place) => {
                    let config = Config {
                        clock,
                        ..tcp_config(tcp, custom)?
                    };
                    let made = Arc::new(within_mtu(config, mtu));
                    Arc::clone(place.insert(made))
                }
            },
        )
    }
}

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
