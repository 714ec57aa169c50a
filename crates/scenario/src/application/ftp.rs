//! FTP.

use bentpipe_sim::Distribution;
use bentpipe_sim::applications::{Direction, FtpMode, FtpSettings};
use serde_json::{Value, json};

use crate::application::checks::{at_least_one, pause, sizes};
use crate::application::datagrams::Datagrams;
use crate::application::schema::AppFile;
use crate::application::settings::{ApplicationFacts, ApplicationSettings, Role};
use crate::application::words::{DirectionName, FtpModeName};
use crate::fault::KeyError;
use crate::quantity::random::{RandomLength, RandomSize};

impl ApplicationSettings for FtpSettings {
    const FACTS: ApplicationFacts = ApplicationFacts {
        role: Role::Background,
        ..ApplicationFacts::UPLOAD
    };

    fn resolve(file: &AppFile, _: Datagrams<'_>) -> Result<Self, KeyError> {
        let size = file.size.unwrap_or(RandomSize(Distribution::Constant(1e6)));
        Ok(Self {
            mode: match file.mode.unwrap_or(FtpModeName::Passive) {
                FtpModeName::Passive => FtpMode::Passive,
                FtpModeName::Active => FtpMode::Active,
            },
            direction: match file.direction.unwrap_or(DirectionName::Download) {
                DirectionName::Download => Direction::Download,
                DirectionName::Upload => Direction::Upload,
                DirectionName::Both => {
                    let message = r#"expected "download" or "upload": a file has one direction"#;
                    return Err(("direction", message.to_owned()));
                }
            },
            size: sizes("size", size)?,
            pause: pause(file),
            count: at_least_one("files", file.files)?,
        })
    }

    fn once(file: &mut AppFile) {
        file.files = file.files.or(Some(1));
    }

    fn measured(&self) -> Value {
        json!({
            "mode": match self.mode {
                FtpMode::Passive => "passive",
                FtpMode::Active => "active",
            },
            "direction": match self.direction {
                Direction::Upload => "upload",
                _ => "download",
            },
            "size": RandomSize(self.size).to_string(),
            "pause": RandomLength(self.pause).to_string(),
            "files": self.count,
        })
    }
}
