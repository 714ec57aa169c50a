//! Files sent in datagrams to all members of a group.

use bentpipe_sim::applications::CarouselSettings;
use bentpipe_types::{Bytes, Span};
use serde_json::{Value, json};

use crate::application::checks::{
    SHORTEST_INTERVAL, at_least_one, missing, one_length, one_size, some_bytes,
};
use crate::application::datagrams::Datagrams;
use crate::application::schema::AppFile;
use crate::application::settings::{ApplicationFacts, ApplicationSettings};
use crate::fault::KeyError;
use crate::quantity::time::{LONGEST, Length};

/// Most datagrams of a file: a receiver keeps one bit for each.
const MOST_DATAGRAMS: u64 = 100_000;

impl ApplicationSettings for CarouselSettings {
    const FACTS: ApplicationFacts = ApplicationFacts {
        datagrams: true,
        keeps_sending: true,
        ..ApplicationFacts::UPLOAD
    };

    fn resolve(file: &AppFile, datagrams: Datagrams<'_>) -> Result<Self, KeyError> {
        let Some(size) = one_size("size", file.size, "a carousel's")? else {
            return Err(missing("size", r#"a size such as "500 kB""#));
        };
        let Some(rate) = file.rate else {
            return Err(missing("rate", r#"a rate such as "1 Mbit/s""#));
        };
        let datagram = some_bytes("datagram", file.datagram)?.map_or(1_400, |size| size.0.get());
        let datagram = datagrams.size("datagram", datagram)?;
        let mut settings = Self {
            size: size.0.get(),
            datagram,
            rate: rate.0,
            turns: at_least_one("turns", file.turns)?.unwrap_or(1),
            interval: Span::ZERO,
            count: at_least_one("files", file.files)?,
        };
        let shortest = Bytes::new(settings.size.min(u64::from(datagram)));
        if rate.0.transmission_time(shortest).as_secs_f64() < SHORTEST_INTERVAL {
            let message =
                format!(r#"expected less: a datagram every "1 us" at most, got "{rate}""#);
            return Err(("rate", message));
        }
        if settings.datagrams() > MOST_DATAGRAMS {
            let message = format!(
                r#"expected at most {MOST_DATAGRAMS} datagrams in a file, got {} of "{datagram} B" (or let a datagram be longer)"#,
                settings.datagrams()
            );
            return Err(("size", message));
        }
        let most = Length(LONGEST);
        let length = settings.length();
        if length > most.0 {
            let message = format!(r#"expected fewer: a file's turns take longer than "{most}""#);
            return Err(("turns", message));
        }
        let interval = one_length("interval", file.interval, "a carousel's")?;
        settings.interval = interval.map_or(length, |interval| interval.0);
        if settings.interval < length {
            let message = format!(
                r#"expected at least "{}", the duration of the turns of a file, got "{}""#,
                Length(length),
                Length(settings.interval)
            );
            return Err(("interval", message));
        }
        Ok(settings)
    }

    fn once(file: &mut AppFile) {
        file.files = file.files.or(Some(1));
    }

    fn measured(&self) -> Value {
        json!({
            "size_bytes": self.size,
            "datagram_bytes": self.datagram,
            "rate_bps": self.rate.bits_per_second(),
            "turns": self.turns,
            "interval_s": self.interval.as_secs_f64(),
            "files": self.count,
        })
    }
}
