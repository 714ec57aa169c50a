//! Web pages.

use bentpipe_sim::Distribution;
use bentpipe_sim::applications::{Http, PageModel, Tls, WebSettings};
use bentpipe_types::Span;
use serde_json::{Value, json};

use crate::application::checks::{at_least_one, one_size, some_bytes, with_connections};
use crate::application::datagrams::Datagrams;
use crate::application::schema::AppFile;
use crate::application::settings::{ApplicationFacts, ApplicationSettings};
use crate::application::words::{HttpName, PageName, TlsName, TransportName};
use crate::fault::KeyError;
use crate::quantity::random::RandomLength;

const MOST_OBJECTS: u32 = 10_000;

const MOST_LEVELS: u32 = 100;

impl ApplicationSettings for WebSettings {
    const FACTS: ApplicationFacts = ApplicationFacts {
        from_server: true,
        ..ApplicationFacts::UPLOAD
    };

    fn resolve(file: &AppFile, _: Datagrams<'_>) -> Result<Self, KeyError> {
        with_connections(file)?;
        let quic = file.transport == Some(TransportName::Quic);
        let http = match (quic, file.http) {
            (true, None | Some(HttpName::Three)) => Http::Three,
            (false, None | Some(HttpName::Two)) => Http::Two,
            (false, Some(HttpName::One)) => Http::One,
            (true, Some(_)) => return Err(("http", r#"expected "3" over QUIC"#.to_owned())),
            (false, Some(HttpName::Three)) => {
                let message = r#"has no effect without transport = "quic""#;
                return Err(("http", message.to_owned()));
            }
        };
        for (key, given) in [
            ("tls", file.tls.is_some()),
            ("resumption", file.resumption.is_some()),
        ] {
            if quic && given {
                let message = "has no effect: QUIC has its own handshake (`[hosts.NAME.quic]`)";
                return Err((key, message.to_owned()));
            }
        }
        let levels = file.levels.unwrap_or(2);
        if !(1..=MOST_LEVELS).contains(&levels) {
            let message = format!("expected 1 to {MOST_LEVELS}, got {levels}");
            return Err(("levels", message));
        }
        let request = one_size("request", file.request, "a web request's")?;
        let tls = match file.tls.unwrap_or(TlsName::V13) {
            TlsName::V13 => Tls::V1_3,
            TlsName::V12 => Tls::V1_2,
            TlsName::Off => Tls::Off,
        };
        if tls == Tls::Off && file.resumption.is_some() {
            let message = r#"has no effect: there is no TLS (tls = "off")"#;
            return Err(("resumption", message.to_owned()));
        }
        Ok(Self {
            http,
            tls: if quic { Tls::Off } else { tls },
            resumption: file.resumption.unwrap_or(false),
            page: page(file)?,
            levels,
            request: request.map_or(400, |size| size.0.get()),
            think: file.think.map_or(Span::ZERO, |think| think.0),
            reading: file
                .reading
                .map_or(Distribution::Exponential(30.0), |reading| reading.0),
            count: at_least_one("pages", file.pages)?,
        })
    }

    fn once(file: &mut AppFile) {
        file.pages = file.pages.or(Some(1));
    }

    fn measured(&self) -> Value {
        json!({
            "http": match self.http {
                Http::One => "1.1",
                Http::Two => "2",
                Http::Three => "3",
            },
            "tls": match self.tls {
                Tls::Off if self.http == Http::Three => "1.3",
                Tls::Off => "off",
                Tls::V1_2 => "1.2",
                Tls::V1_3 => "1.3",
            },
            "resumption": self.resumption,
            "page": match self.page {
                PageModel::WebAlmanac => json!("web-almanac"),
                PageModel::ThreeGpp => json!("3gpp"),
                PageModel::Fixed { document, objects, size } => json!({
                    "document_bytes": document,
                    "objects": objects,
                    "object_bytes": size,
                }),
            },
            "levels": self.levels,
            "request_bytes": self.request,
            "think_s": self.think.as_secs_f64(),
            "reading": RandomLength(self.reading).to_string(),
            "pages": self.count,
        })
    }
}

fn page(file: &AppFile) -> Result<PageModel, KeyError> {
    let name = file.page.unwrap_or(PageName::WebAlmanac);
    let fixed = [
        ("document", file.document.is_some()),
        ("objects", file.objects.is_some()),
        ("object_size", file.object_size.is_some()),
    ];
    if name != PageName::Fixed
        && let Some((key, _)) = fixed.into_iter().find(|(_, given)| *given)
    {
        let message = format!(r#"has no effect: page = "{name}", not "fixed""#);
        return Err((key, message));
    }
    let objects = file.objects.unwrap_or(20);
    if objects > MOST_OBJECTS {
        let message = format!("expected 0 to {MOST_OBJECTS}, got {objects}");
        return Err(("objects", message));
    }
    let bytes = |key, size| Ok::<_, KeyError>(some_bytes(key, size)?.map_or(30_000, |s| s.0.get()));
    Ok(match name {
        PageName::WebAlmanac => PageModel::WebAlmanac,
        PageName::ThreeGpp => PageModel::ThreeGpp,
        PageName::Fixed => PageModel::Fixed {
            document: bytes("document", file.document)?,
            objects,
            size: bytes("object_size", file.object_size)?,
        },
    })
}
