//! Video calls.

use bentpipe_sim::applications::VideoCallSettings;
use serde_json::{Value, json};

use crate::application::checks::{calls, one_call, pause, some_bytes};
use crate::application::datagrams::Datagrams;
use crate::application::schema::AppFile;
use crate::application::settings::{ApplicationFacts, ApplicationSettings, Role};
use crate::fault::KeyError;
use crate::quantity::random::RandomLength;
use crate::quantity::rate::Rate;

/// Range of video rates in bit/s.
const VIDEO_RATES: [u64; 2] = [10_000, 50_000_000];

const MOST_FRAMES: u32 = 120;

impl ApplicationSettings for VideoCallSettings {
    const FACTS: ApplicationFacts = ApplicationFacts {
        two_way: true,
        datagrams: true,
        role: Role::Call,
        ..ApplicationFacts::UPLOAD
    };

    fn resolve(file: &AppFile, datagrams: Datagrams<'_>) -> Result<Self, KeyError> {
        let rate = |key, given: Option<Rate>, default: u64| {
            let rate = given.map_or(default, |rate| rate.0.bits_per_second());
            let [least, most] = VIDEO_RATES;
            if (least..=most).contains(&rate) {
                return Ok(rate);
            }
            let got = given.map_or_else(String::new, |rate| format!(r#", got "{rate}""#));
            Err((key, format!(r#"expected "10 kbit/s" to "50 Mbit/s"{got}"#)))
        };
        let least_rate = rate("min_rate", file.min_rate, 150_000)?;
        let most_rate = rate("max_rate", file.max_rate, 1_500_000)?;
        if most_rate < least_rate {
            let (key, than, other) = if file.max_rate.is_some() {
                ("max_rate", "less", "min_rate")
            } else {
                ("min_rate", "more", "max_rate")
            };
            let message =
                format!("expected no {than} than {other}, {least_rate} to {most_rate} bit/s");
            return Err((key, message));
        }
        let frame_rate = file.frame_rate.unwrap_or(30);
        if !(1..=MOST_FRAMES).contains(&frame_rate) {
            let message = format!("expected 1 to {MOST_FRAMES}, got {frame_rate}");
            return Err(("frame_rate", message));
        }
        let datagram = some_bytes("datagram", file.datagram)?.map_or(1_200, |size| size.0.get());
        let datagram = datagrams.size("datagram", datagram)?;
        if datagram < Self::LEAST_DATAGRAM {
            let message = format!(
                r#"expected at least "{} B", got "{datagram} B""#,
                Self::LEAST_DATAGRAM
            );
            return Err(("datagram", message));
        }
        let settings = Self {
            least_rate,
            most_rate,
            frame_rate,
            datagram,
            lasts: file.lasts.map(|lasts| lasts.0),
            pause: pause(file),
            count: Some(calls(file)?),
        };
        let (packets, most) = (settings.packets_of_largest_frame(), Self::MOST_PACKETS);
        if packets > most {
            let message = format!(
                "expected at most {most} datagrams in a frame, got {packets} at max_rate and frame_rate"
            );
            return Err(("datagram", message));
        }
        Ok(settings)
    }

    fn once(file: &mut AppFile) {
        one_call(file);
    }

    fn measured(&self) -> Value {
        json!({
            "min_rate_bps": self.least_rate,
            "max_rate_bps": self.most_rate,
            "frame_rate": self.frame_rate,
            "datagram_bytes": self.datagram,
            "lasts": self.lasts.map(|lasts| RandomLength(lasts).to_string()),
            "pause": RandomLength(self.pause).to_string(),
            "calls": self.count,
        })
    }
}
