//! Mail by SMTP.

use bentpipe_sim::Distribution;
use bentpipe_sim::applications::MailSettings;
use serde_json::{Value, json};

use crate::application::checks::{at_least_one, sizes};
use crate::application::datagrams::Datagrams;
use crate::application::schema::AppFile;
use crate::application::settings::ApplicationSettings;
use crate::fault::KeyError;
use crate::quantity::random::{RandomLength, RandomSize};

impl ApplicationSettings for MailSettings {
    fn resolve(file: &AppFile, _: Datagrams<'_>) -> Result<Self, KeyError> {
        let size = file
            .size
            .unwrap_or(RandomSize(Distribution::Exponential(75e3)));
        let pause = file.pause.map(|pause| pause.0);
        Ok(Self {
            size: sizes("size", size)?,
            pause: pause.unwrap_or(Distribution::Exponential(30.0)),
            count: at_least_one("mails", file.mails)?,
            pipelining: file.pipelining.unwrap_or(false),
        })
    }

    fn once(file: &mut AppFile) {
        file.mails = file.mails.or(Some(1));
    }

    fn measured(&self) -> Value {
        json!({
            "size": RandomSize(self.size).to_string(),
            "pause": RandomLength(self.pause).to_string(),
            "mails": self.count,
            "pipelining": self.pipelining,
        })
    }
}
