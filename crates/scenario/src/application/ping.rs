//! Echoes.

use bentpipe_sim::applications::{EchoBy, PingSettings};
use bentpipe_types::Span;
use serde_json::{Value, json};

use crate::application::checks::{at_least_one, one_length, one_size};
use crate::application::datagrams::Datagrams;
use crate::application::schema::AppFile;
use crate::application::settings::{ApplicationFacts, ApplicationSettings};
use crate::application::words::EchoName;
use crate::fault::KeyError;
use crate::quantity::time::length_within;

impl ApplicationSettings for PingSettings {
    const FACTS: ApplicationFacts = ApplicationFacts {
        two_way: true,
        datagrams: true,
        ..ApplicationFacts::UPLOAD
    };

    fn resolve(file: &AppFile, datagrams: Datagrams<'_>) -> Result<Self, KeyError> {
        let size = one_size("size", file.size, "an echo's")?.map_or(56, |size| size.0.get());
        let size = datagrams.size("size", size)?;
        let interval = one_length("interval", file.interval, "the time between echoes")?;
        let bounds = [Span::from_millis(1), Span::from_secs(3_600)];
        Ok(Self {
            by: match file.protocol.unwrap_or(EchoName::Icmp) {
                EchoName::Icmp => EchoBy::Icmp,
                EchoName::Udp => EchoBy::Udp,
            },
            size,
            interval: length_within("interval", interval, Span::from_secs(1), bounds)?,
            count: at_least_one("requests", file.requests)?,
        })
    }

    fn once(file: &mut AppFile) {
        file.requests = file.requests.or(Some(10));
    }

    fn measured(&self) -> Value {
        json!({
            "protocol": match self.by {
                EchoBy::Icmp => "icmp",
                EchoBy::Udp => "udp",
            },
            "size_bytes": self.size,
            "interval_s": self.interval.as_secs_f64(),
            "requests": self.count,
        })
    }
}
