//! The application of a flow, with every default filled in.

use std::sync::Arc;

use bentpipe_sim::Traffic;
use bentpipe_types::{Bytes, words};
use serde::Serialize;
use serde_json::Value;

use crate::application::datagrams::Datagrams;
use crate::application::schema::{AppFile, AppKind};
use crate::fault::KeyError;

/// Application of a flow.
#[derive(Clone, PartialEq, Debug)]
pub enum App {
    /// One transfer from the host that opens the connection, as fast as TCP sends.
    Bulk {
        /// Bytes to transfer, above zero, or `None` until the end of the run.
        size: Option<Bytes>,
    },
    /// Any other application.
    Other(AppKind, Traffic),
    /// A user of the mix of this name.
    Mix(Arc<str>, Traffic),
}

/// The settings of a kind of application, with every default filled in.
pub(crate) trait ApplicationSettings: Sized {
    /// The key that makes it end by itself.
    const ENDS_BY: &'static str = "lasts";

    /// Properties for closed forms and advice.
    const FACTS: ApplicationFacts = ApplicationFacts::UPLOAD;

    /// Resolves the keys of a file.
    fn resolve(file: &AppFile, datagrams: Datagrams<'_>) -> Result<Self, KeyError>;

    /// Sets the keys of one activity of a user that the file does not give: a page, a call, a mail.
    fn once(_: &mut AppFile) {}

    /// Returns the settings as results give them: an object.
    fn measured(&self) -> Value;
}

/// Properties of an application for closed forms and advice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct ApplicationFacts {
    /// Whether most of its data comes from the server. If it has a `direction`, that decides.
    pub from_server: bool,
    /// Whether both ends send data. If it has a `direction`, that decides.
    pub two_way: bool,
    /// Whether it always sends datagrams. If it has a `transport`, that decides.
    pub datagrams: bool,
    /// Whether it always has data to send.
    pub keeps_sending: bool,
    /// Its place beside other applications.
    pub role: Role,
}

impl ApplicationFacts {
    /// An application whose opener sends over connections, with nothing else special.
    pub(crate) const UPLOAD: Self = Self {
        from_server: false,
        two_way: false,
        datagrams: false,
        keeps_sending: false,
        role: Role::Other,
    };
}

words! {
    /// Place of an application beside others.
    Role {
        /// A call: it sends at its own pace, and delay hurts it.
        Call = "call",
        /// Other traffic at its own pace.
        RealTime = "real-time",
        /// It takes the capacity that others leave.
        Background = "background",
        /// None of these.
        Other = "other",
    }
}
