//! Applications.

use bentpipe_sim::applications::{
    BulkSettings, Direction, Http, PacketsSettings, PageModel, RequestResponseSettings, Tls,
    Transport, WebSettings,
};
use bentpipe_sim::{Distribution, Traffic};
use bentpipe_types::{Bytes, Span};

use super::queue::Wrong;
use crate::App;
use crate::quantity::{Length, RandomLength, RandomSize, Size};
use crate::schema::{AppFile, AppKind, DirectionName, HttpName, PageName, TlsName, TransportName};

/// The least that a random interval may be on average: what goes faster is no traffic of this world.
const SHORTEST_INTERVAL: f64 = 1e-6;
const MOST_OBJECTS: u32 = 10_000;
const MOST_LEVELS: u32 = 100;
const LARGEST_DATAGRAM: f64 = 65_507.0;

pub(super) fn resolve(file: &AppFile) -> Result<App, Wrong> {
    let keys = file.kind.keys();
    if let Some(foreign) = file.given().find(|key| !keys.contains(key)) {
        let message = format!(
            "has no effect: a {:?} application has {}",
            file.kind.name(),
            keys.join(", ")
        );
        return Err((foreign, message));
    }
    Ok(match file.kind {
        AppKind::Bulk => bulk(file)?,
        AppKind::RequestResponse => {
            App::Other(file.kind, Traffic::RequestResponse(request_response(file)?))
        }
        AppKind::Web => App::Other(file.kind, Traffic::Web(web(file)?)),
        AppKind::Packets => App::Other(file.kind, Traffic::Packets(packets(file)?)),
    })
}

fn at_least_one(key: &'static str, number: Option<u64>) -> Result<Option<u64>, Wrong> {
    match number {
        Some(0) => Err((key, "expected at least 1, got 0".to_owned())),
        number => Ok(number),
    }
}

/// A size above zero.
fn some_bytes(key: &'static str, size: Option<Size>) -> Result<Option<Size>, Wrong> {
    match size {
        Some(size) if size.0 == Bytes::ZERO => Err((key, r#"expected at least "1 B""#.to_owned())),
        size => Ok(size),
    }
}

/// A size that is not random.
fn one_size(key: &'static str, size: Option<RandomSize>, of: &str) -> Result<Option<Size>, Wrong> {
    let one = size.map(|size| {
        let no = || (key, format!("expected one size, not a random one: {of}"));
        size.constant().ok_or_else(no)
    });
    some_bytes(key, one.transpose()?)
}

/// A random size, above zero on average.
fn sizes(key: &'static str, size: RandomSize) -> Result<Distribution, Wrong> {
    if size.0.mean() < 1.0 {
        return Err((key, r#"expected at least "1 B""#.to_owned()));
    }
    Ok(size.0)
}

fn missing(key: &'static str, expected: &str) -> Wrong {
    (key, format!("missing; expected {expected}"))
}

fn bulk(file: &AppFile) -> Result<App, Wrong> {
    let size = one_size("size", file.size, "a bulk transfer's")?;
    let direction = file.direction.unwrap_or(DirectionName::Upload);
    let transfers = at_least_one("transfers", file.transfers)?.unwrap_or(1);
    let pause = file.pause.map(RandomLength::constant);
    let Some(pause) = pause.unwrap_or(Some(Length(Span::ZERO))) else {
        let message = "expected one length of time, not a random one: a bulk transfer's";
        return Err(("pause", message.to_owned()));
    };
    if transfers > 1 && size.is_none() {
        let message = "has no effect: a transfer without a size has no end";
        return Err(("transfers", message.to_owned()));
    }
    if file.pause.is_some() && transfers == 1 {
        return Err(("pause", "has no effect: there is one transfer".to_owned()));
    }
    if direction == DirectionName::Upload && transfers == 1 {
        return Ok(App::Bulk {
            size: size.map(|size| size.0),
        });
    }
    let settings = BulkSettings {
        size: size.map(|size| size.0.get()),
        direction: match direction {
            DirectionName::Upload => Direction::Upload,
            DirectionName::Download => Direction::Download,
            DirectionName::Both => Direction::Both,
        },
        transfers,
        pause: pause.0,
    };
    Ok(App::Other(file.kind, Traffic::Bulk(settings)))
}

fn request_response(file: &AppFile) -> Result<RequestResponseSettings, Wrong> {
    let Some(response) = file.response else {
        return Err(missing("response", r#"a size such as "10 kB""#));
    };
    let request = match file.request {
        Some(request) => sizes("request", request)?,
        None => Distribution::Constant(200.0),
    };
    Ok(RequestResponseSettings {
        request,
        response: sizes("response", response)?,
        think: file.think.map_or(Span::ZERO, |think| think.0),
        pause: file
            .pause
            .map_or(Distribution::Constant(0.0), |pause| pause.0),
        count: at_least_one("requests", file.requests)?,
    })
}

fn page(file: &AppFile) -> Result<PageModel, Wrong> {
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
    let bytes = |key, size| Ok::<_, Wrong>(some_bytes(key, size)?.map_or(30_000, |s| s.0.get()));
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

fn web(file: &AppFile) -> Result<WebSettings, Wrong> {
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
    Ok(WebSettings {
        http: match file.http.unwrap_or(HttpName::Two) {
            HttpName::One => Http::One,
            HttpName::Two => Http::Two,
        },
        tls,
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

fn packets(file: &AppFile) -> Result<PacketsSettings, Wrong> {
    let Some(size) = file.size else {
        return Err(missing("size", r#"a size such as "exponential(1000 B)""#));
    };
    let Some(interval) = file.interval else {
        let expected = r#"a length of time such as "exponential(20 ms)""#;
        return Err(missing("interval", expected));
    };
    let transport = match file.transport.unwrap_or(TransportName::Udp) {
        TransportName::Udp => Transport::Udp,
        TransportName::Tcp => Transport::Tcp,
    };
    if transport == Transport::Udp && size.0.mean() > LARGEST_DATAGRAM {
        let message = format!(r#"expected at most "65507 B", what a datagram holds, got "{size}""#);
        return Err(("size", message));
    }
    let long_enough = |key, length: RandomLength| {
        if length.0.mean() < SHORTEST_INTERVAL {
            let message = format!(r#"expected at least "1 us" on average, got "{length}""#);
            return Err((key, message));
        }
        Ok(length.0)
    };
    let bursts = match (file.on, file.off) {
        (None, None) => None,
        (Some(on), Some(off)) => Some((long_enough("on", on)?, long_enough("off", off)?)),
        (Some(_), None) => return Err(missing("off", "with `on` also how long it is off")),
        (None, Some(_)) => return Err(missing("on", "with `off` also how long it is on")),
    };
    Ok(PacketsSettings {
        transport,
        size: sizes("size", size)?,
        interval: long_enough("interval", interval)?,
        bursts,
        lasts: file.lasts.map(|lasts| lasts.0),
    })
}
