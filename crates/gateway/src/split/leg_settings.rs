//! TCP settings of the legs, shared among legs where they are equal.

use std::sync::Arc;

use bentpipe_tcp::Config;
use bentpipe_types::{FlowKey, IpVersion};

use super::settings::{LegType, Settings};

/// The latest settings of each type, with their initial receive window, which is smaller when
/// memory is short.
#[derive(Debug, Default)]
pub(super) struct LegSettingsCache {
    latest: [Option<(u64, Arc<Config>)>; 3],
}

impl LegSettingsCache {
    /// Returns the TCP settings of a new leg, with the initial receive window `first`.
    pub(super) fn of(
        &mut self,
        kind: LegType,
        key: &FlowKey,
        first: u64,
        settings: &Settings,
    ) -> Arc<Config> {
        let version = key.ip_version();
        let latest = &mut self.latest[kind as usize];
        match latest {
            Some((same, config))
                if *same == first && version.is_none_or(|ip| ip == config.ip_version) =>
            {
                Arc::clone(config)
            }
            _ => {
                let mut config = settings.leg(kind, first);
                if let Some(version) = version {
                    set_ip_version(version, &mut config);
                }
                let config = Arc::new(config);
                *latest = Some((first, Arc::clone(&config)));
                config
            }
        }
    }
}

/// Sets the IP version of a leg. The MSS in the settings is for packets of their own version, so a
/// longer header reduces it.
pub(super) fn set_ip_version(version: IpVersion, config: &mut Config) {
    let header = |version: IpVersion| u16::from(version.header_length());
    let longer = header(version).saturating_sub(header(config.ip_version));
    config.mss = config.mss.saturating_sub(longer).max(1);
    config.ip_version = version;
}
