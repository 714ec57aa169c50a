//! Packets of random sizes at random times.

use bentpipe_sim::applications::{PacketsSettings, Transport};
use bentpipe_types::Span;
use serde_json::{Value, json};

use crate::application::checks::{SHORTEST_INTERVAL, missing, one_length, sizes};
use crate::application::datagrams::Datagrams;
use crate::application::schema::AppFile;
use crate::application::settings::{ApplicationFacts, ApplicationSettings, Role};
use crate::application::words::TransportName;
use crate::fault::KeyError;
use crate::quantity::random::{RandomLength, RandomSize};

impl ApplicationSettings for PacketsSettings {
    const FACTS: ApplicationFacts = ApplicationFacts {
        role: Role::RealTime,
        ..ApplicationFacts::UPLOAD
    };

    fn resolve(file: &AppFile, datagrams: Datagrams<'_>) -> Result<Self, KeyError> {
        let Some(size) = file.size else {
            return Err(missing("size", r#"a size such as "exponential(1000 B)""#));
        };
        let Some(interval) = file.interval else {
            let expected = r#"a length of time such as "exponential(20 ms)""#;
            return Err(missing("interval", expected));
        };
        let transport = match file.transport.unwrap_or(TransportName::Udp) {
            TransportName::Udp => Transport::Udp,
            TransportName::Tcp => Transport::Tcp,
            TransportName::Quic => {
                return Err(("transport", r#"expected "udp" or "tcp""#.to_owned()));
            }
        };
        if transport == Transport::Udp && size.0.mean() > f64::from(datagrams.largest) {
            return Err(("size", datagrams.expected(&size)));
        }
        let long_enough = |key, length: RandomLength| {
            if length.0.mean() < SHORTEST_INTERVAL {
                let message = format!(r#"expected at least "1 us" on average, got "{length}""#);
                return Err((key, message));
            }
            Ok(length.0)
        };
        let bursts = match (file.on, file.off) {
            (None, None) => None,
            (Some(on), Some(off)) => Some((long_enough("on", on)?, long_enough("off", off)?)),
            (Some(_), None) => return Err(missing("off", "with `on` also how long it is off")),
            (None, Some(_)) => return Err(missing("on", "with `off` also how long it is on")),
        };
        let lasts = one_length("lasts", file.lasts, "a source's")?;
        Ok(Self {
            transport,
            size: sizes("size", size)?,
            interval: long_enough("interval", interval)?,
            bursts,
            lasts: lasts.map(|lasts| lasts.0),
            largest: datagrams.largest,
        })
    }

    fn measured(&self) -> Value {
        json!({
            "transport": match self.transport {
                Transport::Udp => "udp",
                Transport::Tcp => "tcp",
            },
            "size": RandomSize(self.size).to_string(),
            "interval": RandomLength(self.interval).to_string(),
            "on": self.bursts.map(|(on, _)| RandomLength(on).to_string()),
            "off": self.bursts.map(|(_, off)| RandomLength(off).to_string()),
            "lasts_s": self.lasts.map(Span::as_secs_f64),
        })
    }
}
