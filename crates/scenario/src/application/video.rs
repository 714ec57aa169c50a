//! Video.

use std::sync::Arc;

use bentpipe_sim::Distribution;
use bentpipe_sim::applications::VideoSettings;
use bentpipe_types::Span;
use serde_json::{Value, json};

use crate::application::checks::one_length;
use crate::application::datagrams::Datagrams;
use crate::application::schema::AppFile;
use crate::application::settings::{ApplicationFacts, ApplicationSettings};
use crate::fault::KeyError;
use crate::quantity::random::RandomLength;
use crate::quantity::time::length_within;

/// Default rates in kbit/s: from a phone's to 4K video.
const LADDER: [u64; 6] = [400, 800, 1_500, 3_000, 6_000, 12_000];

const MOST_RATES: usize = 32;

impl ApplicationSettings for VideoSettings {
    const FACTS: ApplicationFacts = ApplicationFacts {
        from_server: true,
        ..ApplicationFacts::UPLOAD
    };

    fn resolve(file: &AppFile, _: Datagrams<'_>) -> Result<Self, KeyError> {
        let ladder: Vec<u64> = match &file.ladder {
            Some(rates) => rates.iter().map(|rate| rate.0.bits_per_second()).collect(),
            None => LADDER.iter().map(|rate| rate * 1_000).collect(),
        };
        if ladder.is_empty() || ladder.len() > MOST_RATES || !ladder.is_sorted_by(|a, b| a < b) {
            let message = format!("expected 1 to {MOST_RATES} rates, each above the one before it");
            return Err(("ladder", message));
        }
        let hour = Span::from_secs(3_600);
        let lengths = [Span::from_millis(100), Span::from_secs(60)];
        let segment = length_within("segment", file.segment, Span::from_secs(4), lengths)?;
        let buffer = length_within("buffer", file.buffer, Span::from_secs(30), [segment, hour])?;
        let start_up = [Span::from_nanos(1), buffer];
        let lasts = one_length("lasts", file.lasts, "a video's")?;
        Ok(Self {
            segment,
            ladder: Arc::from(ladder),
            buffer,
            start_up: length_within("start_up", file.start_up, segment, start_up)?,
            lasts: lasts.map(|lasts| lasts.0),
        })
    }

    fn once(file: &mut AppFile) {
        let minutes = RandomLength(Distribution::Constant(120.0));
        file.lasts = file.lasts.or(Some(minutes));
    }

    fn measured(&self) -> Value {
        json!({
            "segment_s": self.segment.as_secs_f64(),
            "ladder_bps": self.ladder.as_ref(),
            "buffer_s": self.buffer.as_secs_f64(),
            "start_up_s": self.start_up.as_secs_f64(),
            "lasts_s": self.lasts.map(Span::as_secs_f64),
        })
    }
}
