//! Applications.

use bentpipe_sim::Traffic;
use bentpipe_sim::applications::{
    BulkSettings, CarouselSettings, Direction, FtpSettings, MailSettings, PacketsSettings,
    PingSettings, RequestResponseSettings, VideoCallSettings, VideoSettings, VoiceSettings,
    WebSettings,
};
use bentpipe_types::Bytes;
use serde_json::{Value, json};

use crate::application::datagrams::Datagrams;
use crate::application::kinds::applications;
use crate::application::schema::{AppFile, AppKind};
use crate::application::settings::{App, ApplicationFacts, ApplicationSettings};
use crate::application::words::TransportName;
use crate::fault::KeyError;

/// Defines the functions that are about all applications.
macro_rules! resolve {
    (
        keys $keys:tt
        kinds {
            $($(#[$doc:meta])* $kind:ident = $name:literal: $settings:ident, keys $own:tt;)+
        }
    ) => {
        fn resolve_traffic(file: &AppFile, datagrams: Datagrams<'_>) -> Result<Traffic, KeyError> {
            let keys = file.kind.keys();
            if let Some(foreign) = file.given().find(|key| !keys.contains(key)) {
                return Err((foreign, file.kind.has_no()));
            }
            Ok(match file.kind {
                $(AppKind::$kind => {
                    Traffic::$kind(<$settings as ApplicationSettings>::resolve(file, datagrams)?)
                })+
            })
        }

        /// Sets the keys of one activity of a user that the file does not give.
        fn once(file: &mut AppFile) {
            match file.kind {
                $(AppKind::$kind => <$settings as ApplicationSettings>::once(file),)+
            }
        }

        /// Returns the key that makes an application end by itself.
        fn ends_by(kind: AppKind) -> &'static str {
            match kind {
                $(AppKind::$kind => <$settings as ApplicationSettings>::ENDS_BY,)+
            }
        }

        impl AppKind {
            /// Returns the kind of an application, or `None` for a mix.
            pub(crate) fn of(traffic: &Traffic) -> Option<Self> {
                match traffic {
                    $(Traffic::$kind(_) => Some(Self::$kind),)+
                    Traffic::Mix(_) => None,
                }
            }

            /// Returns the properties of a kind for closed forms and advice.
            #[must_use]
            pub fn facts(self) -> ApplicationFacts {
                match self {
                    $(Self::$kind => <$settings as ApplicationSettings>::FACTS,)+
                }
            }
        }

        /// Returns an application's settings, without its kind.
        fn settings_data(traffic: &Traffic) -> Value {
            match traffic {
                $(Traffic::$kind(settings) => settings.measured(),)+
                Traffic::Mix(_) => json!({}),
            }
        }
    };
}

applications!(resolve);

/// Returns the application of a flow.
pub(crate) fn resolve_application(
    file: &AppFile,
    datagrams: Datagrams<'_>,
) -> Result<App, KeyError> {
    Ok(match resolve_traffic(file, datagrams)? {
        Traffic::Bulk(bulk) if bulk.direction == Direction::Upload && bulk.transfers == 1 => {
            App::Bulk {
                size: bulk.size.map(Bytes::new),
            }
        }
        traffic => App::Other(file.kind, traffic),
    })
}

/// Returns the traffic of one activity of a user: once, unless the file gives a number.
pub(crate) fn resolve_activity(
    file: &AppFile,
    datagrams: Datagrams<'_>,
) -> Result<Traffic, KeyError> {
    if file.transport == Some(TransportName::Quic) {
        let message = "expected \"tcp\": the activities of users have TCP connections";
        return Err(("transport", message.to_owned()));
    }
    let mut file = file.clone();
    once(&mut file);
    let traffic = resolve_traffic(&file, datagrams)?;
    if !traffic.ends_by_itself() {
        let message = "missing; expected one: activities of users must end";
        return Err((ends_by(file.kind), message.to_owned()));
    }
    Ok(traffic)
}

/// Returns an application's kind and settings as results give them.
pub(crate) fn traffic_data(traffic: &Traffic) -> Value {
    let mut data = settings_data(traffic);
    if let Value::Object(data) = &mut data {
        data.insert("kind".to_owned(), json!(AppKind::of(traffic)));
    }
    data
}
