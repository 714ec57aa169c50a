//! TCP configurations of the ends of flows, from scenario, congestion control and links.

use crate::custom::CustomControls;
use crate::run::error::RunError;
use crate::scenario::settings::Scenario;
use crate::tcp::build::{tcp_config, within_mtu};
use crate::tcp::settings::TcpSettings;
use bentpipe_tcp::{Config, HostClock};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

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
                    let mut config = Config {
                        clock,
                        ..tcp_config(tcp, custom)?
                    };
                    if let Some(saved) = scenario.saved_path_of(node) {
                        config.congestion_control = config.resuming(saved);
                    }
                    let made = Arc::new(within_mtu(config, mtu));
                    Arc::clone(place.insert(made))
                }
            },
        )
    }
}
