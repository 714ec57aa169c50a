//! TCP configurations of the ends of flows, from scenario, congestion control and links.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use bentpipe_tcp::{Config, HostClock};

use super::{RunError, congestion};
use crate::{CustomControls, Scenario, TcpSettings};

/// Configurations of flows' ends. Hosts made by one `count` share one, unless each draws its clock.
#[derive(Default)]
pub(super) struct Ends {
    known: BTreeMap<(*const TcpSettings, Option<u32>, HostClock), Arc<Config>>,
}

impl Ends {
    pub(super) fn tcp_of(
        &mut self,
        scenario: &Scenario,
        node: usize,
        mtu: Option<u32>,
        custom: &CustomControls,
        clock: HostClock,
    ) -> Result<Arc<Config>, RunError> {
        let Some(tcp) = scenario.tcp_of(node) else {
            return Ok(Arc::new(within(Config::default(), mtu)));
        };
        Ok(
            match (self.known).entry((std::ptr::from_ref(tcp), mtu, clock)) {
                Entry::Occupied(known) => Arc::clone(known.get()),
                Entry::Vacant(place) => {
                    let config = Config {
                        clock,
                        ..config(tcp, custom)?
                    };
                    let made = Arc::new(within(config, mtu));
                    Arc::clone(place.insert(made))
                }
            },
        )
    }
}

/// Limits the segments of an end to packets of `mtu` bytes, the MTU of its own link.
pub(super) fn within(config: Config, mtu: Option<u32>) -> Config {
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
pub(super) fn config(tcp: &TcpSettings, custom: &CustomControls) -> Result<Config, RunError> {
    Ok(Config {
        congestion_control: congestion::kind(&tcp.file.congestion_control, custom)?,
        ..tcp.config.clone()
    })
}
