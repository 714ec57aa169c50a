//! Voice calls.

use bentpipe_sim::applications::{Codec, JitterBuffer, VoiceSettings};
use bentpipe_types::Span;
use serde_json::{Value, json};

use crate::application::checks::{calls, one_call, pause};
use crate::application::datagrams::Datagrams;
use crate::application::schema::AppFile;
use crate::application::settings::{ApplicationFacts, ApplicationSettings, Role};
use crate::application::words::CodecName;
use crate::fault::KeyError;
use crate::quantity::random::RandomLength;
use crate::quantity::time::{Length, length_within};

impl ApplicationSettings for VoiceSettings {
    const FACTS: ApplicationFacts = ApplicationFacts {
        two_way: true,
        datagrams: true,
        role: Role::Call,
        ..ApplicationFacts::UPLOAD
    };

    fn resolve(file: &AppFile, _: Datagrams<'_>) -> Result<Self, KeyError> {
        let codec = match file.codec.unwrap_or(CodecName::G711) {
            CodecName::G711 => Codec::G711,
            CodecName::G729 => Codec::G729,
        };
        // A frame of G.729 is 10 ms; above 200 ms the delay would be unusable.
        let frames = [Span::from_millis(10), Span::from_millis(200)];
        let count = calls(file)?;
        let jitter_buffer = match file.jitter_buffer.map(|given| given.0) {
            Some(JitterBuffer::Adaptive) => JitterBuffer::Adaptive,
            Some(JitterBuffer::Fixed(length)) => {
                let bounds = [Span::ZERO, Span::from_secs(10)];
                let given = Some(Length(length));
                JitterBuffer::Fixed(length_within("jitter_buffer", given, length, bounds)?)
            }
            None => JitterBuffer::Fixed(Span::from_millis(60)),
        };
        Ok(Self {
            codec,
            packet: length_within("packet", file.packet, Span::from_millis(20), frames)?,
            jitter_buffer,
            lasts: file.lasts.map(|lasts| lasts.0),
            pause: pause(file),
            count: Some(count),
        })
    }

    fn once(file: &mut AppFile) {
        one_call(file);
    }

    fn measured(&self) -> Value {
        json!({
            "codec": match self.codec {
                Codec::G711 => "g711",
                Codec::G729 => "g729",
            },
            "packet_s": self.packet.as_secs_f64(),
            // Of an adaptive one, there is no one length.
            "jitter_buffer_s": match self.jitter_buffer {
                JitterBuffer::Fixed(length) => Some(length.as_secs_f64()),
                JitterBuffer::Adaptive => None,
            },
            "lasts": self.lasts.map(|lasts| RandomLength(lasts).to_string()),
            "pause": RandomLength(self.pause).to_string(),
            "calls": self.count,
        })
    }
}
