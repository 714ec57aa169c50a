//! Bulk transfers.

use bentpipe_sim::applications::{BulkSettings, Direction};
use bentpipe_types::Span;
use serde_json::{Value, json};

use crate::application::checks::{at_least_one, one_length, one_size, with_connections};
use crate::application::datagrams::Datagrams;
use crate::application::schema::AppFile;
use crate::application::settings::{ApplicationFacts, ApplicationSettings, Role};
use crate::application::words::DirectionName;
use crate::fault::KeyError;
use crate::quantity::time::Length;

impl ApplicationSettings for BulkSettings {
    const ENDS_BY: &'static str = "size";
    const FACTS: ApplicationFacts = ApplicationFacts {
        keeps_sending: true,
        role: Role::Background,
        ..ApplicationFacts::UPLOAD
    };

    fn resolve(file: &AppFile, _: Datagrams<'_>) -> Result<Self, KeyError> {
        with_connections(file)?;
        let size = one_size("size", file.size, "a bulk transfer's")?;
        let direction = file.direction.unwrap_or(DirectionName::Upload);
        let transfers = at_least_one("transfers", file.transfers)?.unwrap_or(1);
        let pause = one_length("pause", file.pause, "a bulk transfer's")?;
        let pause = pause.unwrap_or(Length(Span::ZERO));
        if transfers > 1 && size.is_none() {
            let message = "has no effect: a transfer without a size has no end";
            return Err(("transfers", message.to_owned()));
        }
        if file.pause.is_some() && transfers == 1 {
            return Err(("pause", "has no effect: there is one transfer".to_owned()));
        }
        Ok(Self {
            size: size.map(|size| size.0.get()),
            direction: match direction {
                DirectionName::Upload => Direction::Upload,
                DirectionName::Download => Direction::Download,
                DirectionName::Both => Direction::Both,
            },
            transfers,
            pause: pause.0,
        })
    }

    fn measured(&self) -> Value {
        json!({
            "size_bytes": self.size,
            "direction": match self.direction {
                Direction::Upload => "upload",
                Direction::Download => "download",
                Direction::Both => "both",
            },
            "transfers": self.transfers,
            "pause_s": self.pause.as_secs_f64(),
        })
    }
}
