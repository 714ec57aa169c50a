//! The TCP of a gateway's legs: most of them have the same as the one before, and share it.

use std::sync::Arc;

use bentpipe_tcp::Config;
use bentpipe_types::{FlowKey, IpVersion};

use super::Settings;

/// Which legs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Those that go out at the link that the gateway faces,
    Facing,
    /// those to hosts,
    Host,
    /// and those to hosts whose connections are carried over a persistent one.
    Carried,
}

/// The latest of each kind, and what it offers at first, which is less when memory gets scarce.
#[derive(Debug, Default)]
pub(super) struct LegSettings {
    latest: [Option<(u64, Arc<Config>)>; 3],
}

impl LegSettings {
    /// The TCP of a new leg of this connection that offers `first` at first.
    pub(super) fn of(
        &mut self,
        kind: Kind,
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
                    speak(version, &mut config);
                }
                let config = Arc::new(config);
                *latest = Some((first, Arc::clone(&config)));
                config
            }
        }
    }
}

/// Has a leg be of this version of IP. Its segments are as long as the settings say in packets of their own
/// version, so that a longer header leaves less room for payload.
pub(super) fn speak(version: IpVersion, config: &mut Config) {
    let header = |version: IpVersion| u16::from(version.header_length());
    let longer = header(version).saturating_sub(header(config.ip_version));
    config.mss = config.mss.saturating_sub(longer).max(1);
    config.ip_version = version;
}
