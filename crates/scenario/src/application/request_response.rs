//! Requests and responses.

use bentpipe_sim::Distribution;
use bentpipe_sim::applications::RequestResponseSettings;
use bentpipe_types::Span;
use serde_json::{Value, json};

use crate::application::checks::{at_least_one, missing, sizes, with_connections};
use crate::application::datagrams::Datagrams;
use crate::application::schema::AppFile;
use crate::application::settings::{ApplicationFacts, ApplicationSettings};
use crate::fault::KeyError;
use crate::quantity::random::{RandomLength, RandomSize};

impl ApplicationSettings for RequestResponseSettings {
    const FACTS: ApplicationFacts = ApplicationFacts {
        from_server: true,
        two_way: true,
        ..ApplicationFacts::UPLOAD
    };

    fn resolve(file: &AppFile, _: Datagrams<'_>) -> Result<Self, KeyError> {
        with_connections(file)?;
        let Some(response) = file.response else {
            return Err(missing("response", r#"a size such as "10 kB""#));
        };
        let request = match file.request {
            Some(request) => sizes("request", request)?,
            None => Distribution::Constant(200.0),
        };
        Ok(Self {
            request,
            response: sizes("response", response)?,
            think: file.think.map_or(Span::ZERO, |think| think.0),
            pause: file
                .pause
                .map_or(Distribution::Constant(0.0), |pause| pause.0),
            count: at_least_one("requests", file.requests)?,
        })
    }

    fn once(file: &mut AppFile) {
        file.requests = file.requests.or(Some(1));
    }

    fn measured(&self) -> Value {
        json!({
            "request": RandomSize(self.request).to_string(),
            "response": RandomSize(self.response).to_string(),
            "think_s": self.think.as_secs_f64(),
            "pause": RandomLength(self.pause).to_string(),
            "requests": self.count,
        })
    }
}
