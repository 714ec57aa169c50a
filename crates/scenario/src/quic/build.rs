//! Flows over QUIC in the engine.

use std::sync::Arc;

#[cfg(feature = "quic")]
use bentpipe_sim::FlowPlan;
use bentpipe_sim::MakeEnds;
use bentpipe_tcp::Config;
use bentpipe_tcp::congestion::SavedPath;

use crate::custom::CustomControls;
use crate::quic::settings::QuicHostSettings;
use crate::run::error::RunError;

/// A host's settings for its end of a flow.
#[cfg_attr(not(feature = "quic"), expect(dead_code, reason = "QUIC is refused"))]
pub(crate) struct QuicEnd {
    pub(crate) settings: QuicHostSettings,
    /// TCP configuration, whose settings of window rules apply.
    pub(crate) tcp: Arc<Config>,
    /// Parameters of the path from an earlier connection.
    pub(crate) saved: Option<SavedPath>,
    /// MTU of its own links.
    pub(crate) mtu: Option<u32>,
}

#[cfg(feature = "quic")]
pub(crate) use with_quinn::quic_ends;

#[cfg(feature = "quic")]
mod with_quinn {
    use bentpipe_host::applications::Ends;
    use bentpipe_quic::{AckFrequency, Engine, Quic, QuicApplication, QuicRule, QuicSettings};
    use bentpipe_types::RandomStream;

    use super::*;
    use crate::quic::settings::QuicControlName;
    use crate::tcp::build::congestion_control_kind;

    /// Returns the factory of a flow's ends over QUIC: opener and server.
    pub(crate) fn quic_ends(
        ends: [QuicEnd; 2],
        custom: &CustomControls,
    ) -> Result<MakeEnds, RunError> {
        let [opener, server] = ends;
        let opener = quic_settings(&opener, custom)?;
        let server = quic_settings(&server, custom)?;
        Ok(Box::new(move |plan: &FlowPlan| {
            let inner = plan.ends::<Quic, Quic>();
            let random = |end| RandomStream::new(plan.seed, &plan.name, end);
            let opener = Engine::new(opener, random("quic opener"), false);
            let server = Engine::new(server, random("quic server"), true);
            Ends {
                opener: Box::new(QuicApplication::new(opener, inner.opener)),
                server: Box::new(QuicApplication::new(server, inner.server)),
            }
        }))
    }

    /// IP and UDP headers.
    fn headers(config: &Config) -> u32 {
        u32::from(config.ip_version.header_length()) + 8
    }

    fn quic_settings(end: &QuicEnd, custom: &CustomControls) -> Result<QuicSettings, RunError> {
        let from = &end.settings;
        let rule = match &from.congestion_control {
            QuicControlName::QuinnCubic => QuicRule::QuinnCubic,
            QuicControlName::QuinnNewReno => QuicRule::QuinnNewReno,
            QuicControlName::Tcp(name) => {
                let mut config = Config {
                    congestion_control: congestion_control_kind(name, custom)?,
                    ..Config::clone(&end.tcp)
                };
                if let Some(saved) = end.saved {
                    config.congestion_control = config.resuming(saved);
                }
                QuicRule::Tcp(Arc::new(config))
            }
        };
        let most = end
            .mtu
            .map_or(u32::MAX, |mtu| mtu.saturating_sub(headers(&end.tcp)));
        let most = u16::try_from(most).unwrap_or(u16::MAX);
        let mut settings = QuicSettings {
            rule,
            initial_window: from.initial_window,
            stream_window: from.stream_window,
            connection_window: from.connection_window,
            send_window: from.send_window,
            streams: from.streams,
            ack_frequency: from.ack_threshold.map(|threshold| AckFrequency {
                threshold,
                delay: from.ack_delay,
            }),
            initial_rtt: from.initial_rtt,
            idle_timeout: from.idle_timeout,
            keep_alive: from.keep_alive,
            initial_mtu: from.mtu,
            maximum_mtu: Some(from.max_mtu.min(most)).filter(|most| *most > from.mtu),
            burst: from.burst as usize,
            early_data: from.early_data,
            ..QuicSettings::default()
        };
        settings.handshake.certificate = from.certificate;
        Ok(settings)
    }
}

/// Refuses QUIC: this build has no QUIC stack.
#[cfg(not(feature = "quic"))]
pub(crate) fn quic_ends(
    _ends: [QuicEnd; 2],
    _custom: &CustomControls,
) -> Result<MakeEnds, RunError> {
    let message = "transport = \"quic\" is not available here; the command line has it";
    Err(RunError::Request(message.to_owned()))
}
