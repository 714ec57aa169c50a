//! Applications.

use std::sync::Arc;

use bentpipe_sim::applications::{
    BulkSettings, CarouselSettings, Codec, Direction, EchoBy, FtpMode, FtpSettings, Http,
    JitterBuffer, MailSettings, PacketsSettings, PageModel, PingSettings, RequestResponseSettings,
    Tls, Transport, VideoCallSettings, VideoSettings, VoiceSettings, WebSettings,
};
use bentpipe_sim::{Distribution, Traffic};
use bentpipe_types::{Bytes, Span};

use crate::application::datagrams::Datagrams;
use crate::application::schema::{
    AppFile, AppKind, CodecName, DirectionName, EchoName, FtpModeName, HttpName, PageName, TlsName,
    TransportName,
};
use crate::application::settings::App;
use crate::fault::KeyError;
use crate::quantity::random::{RandomLength, RandomSize};
use crate::quantity::rate::Rate;
use crate::quantity::size::Size;
use crate::quantity::time::{LONGEST, Length, length_within};

/// Shortest mean of a random interval, in seconds. No real traffic is faster.
const SHORTEST_INTERVAL: f64 = 1e-6;

const MOST_OBJECTS: u32 = 10_000;

const MOST_LEVELS: u32 = 100;

pub(crate) fn resolve_application(
    file: &AppFile,
    datagrams: Datagrams<'_>,
) -> Result<App, KeyError> {
    let keys = file.kind.keys();
    if let Some(foreign) = file.given().find(|key| !keys.contains(key)) {
        return Err((foreign, file.kind.has_no()));
    }
    Ok(match file.kind {
        AppKind::Bulk => bulk(file)?,
        AppKind::RequestResponse => {
            App::Other(file.kind, Traffic::RequestResponse(request_response(file)?))
        }
        AppKind::Web => App::Other(file.kind, Traffic::Web(web(file)?)),
        AppKind::Packets => App::Other(file.kind, Traffic::Packets(packets(file, datagrams)?)),
        AppKind::Carousel => App::Other(file.kind, Traffic::Carousel(carousel(file, datagrams)?)),
        AppKind::Ftp => App::Other(file.kind, Traffic::Ftp(ftp(file)?)),
        AppKind::Mail => App::Other(file.kind, Traffic::Mail(mail(file)?)),
        AppKind::Voice => App::Other(file.kind, Traffic::Voice(voice(file)?)),
        AppKind::Video => App::Other(file.kind, Traffic::Video(video(file)?)),
        AppKind::VideoCall => {
            App::Other(file.kind, Traffic::VideoCall(video_call(file, datagrams)?))
        }
        AppKind::Ping => App::Other(file.kind, Traffic::Ping(ping(file, datagrams)?)),
    })
}

/// Returns the traffic of one activity of a user: once, unless the file gives a number.
pub(crate) fn resolve_activity(
    file: &AppFile,
    datagrams: Datagrams<'_>,
) -> Result<Traffic, KeyError> {
    let mut file = file.clone();
    let minutes = |minutes: u64| Some(RandomLength(Distribution::Constant(60.0 * minutes as f64)));
    match file.kind {
        AppKind::Web => file.pages = file.pages.or(Some(1)),
        AppKind::Mail => file.mails = file.mails.or(Some(1)),
        AppKind::Ftp => file.files = file.files.or(Some(1)),
        AppKind::RequestResponse => file.requests = file.requests.or(Some(1)),
        AppKind::Ping => file.requests = file.requests.or(Some(10)),
        AppKind::Video => file.lasts = file.lasts.or(minutes(2)),
        AppKind::Voice | AppKind::VideoCall => {
            let call = RandomLength(Distribution::Exponential(180.0));
            file.lasts = file.lasts.or(Some(call));
        }
        AppKind::Carousel => file.files = file.files.or(Some(1)),
        AppKind::Bulk | AppKind::Packets => {}
    }
    let traffic = match resolve_application(&file, datagrams)? {
        App::Bulk { size } => Traffic::bulk(size.map(Bytes::get)),
        App::Other(_, traffic) | App::Mix(_, traffic) => traffic,
    };
    if !traffic.ends_by_itself() {
        let key = if file.kind == AppKind::Bulk {
            "size"
        } else {
            "lasts"
        };
        let message = "missing; expected one: activities of users must end";
        return Err((key, message.to_owned()));
    }
    Ok(traffic)
}

fn at_least_one(key: &'static str, number: Option<u64>) -> Result<Option<u64>, KeyError> {
    match number {
        Some(0) => Err((key, "expected at least 1, got 0".to_owned())),
        number => Ok(number),
    }
}

/// Checks that a size is above zero.
fn some_bytes(key: &'static str, size: Option<Size>) -> Result<Option<Size>, KeyError> {
    match size {
        Some(size) if size.0 == Bytes::ZERO => Err((key, r#"expected at least "1 B""#.to_owned())),
        size => Ok(size),
    }
}

/// Checks that a size is not random.
fn one_size(
    key: &'static str,
    size: Option<RandomSize>,
    of: &str,
) -> Result<Option<Size>, KeyError> {
    let one = size.map(|size| {
        let no = || {
            let message = format!(r#"expected one size such as "64 KiB", not a random one: {of}"#);
            (key, message)
        };
        size.constant().ok_or_else(no)
    });
    some_bytes(key, one.transpose()?)
}

/// Checks that a length of time is not random.
fn one_length(
    key: &'static str,
    length: Option<RandomLength>,
    of: &str,
) -> Result<Option<Length>, KeyError> {
    let one = length.map(|length| {
        let no = || {
            let message =
                format!(r#"expected one length of time such as "250 ms", not a random one: {of}"#);
            (key, message)
        };
        length.constant().ok_or_else(no)
    });
    one.transpose()
}

/// Returns the pause, which is zero by default.
fn pause(file: &AppFile) -> Distribution {
    let pause = file.pause.map(|pause| pause.0);
    pause.unwrap_or(Distribution::Constant(0.0))
}

/// Returns a distribution of sizes with a mean above zero.
fn sizes(key: &'static str, size: RandomSize) -> Result<Distribution, KeyError> {
    if size.0.mean() < 1.0 {
        return Err((key, r#"expected at least "1 B""#.to_owned()));
    }
    Ok(size.0)
}

fn missing(key: &'static str, expected: &str) -> KeyError {
    (key, format!("missing; expected {expected}"))
}

fn bulk(file: &AppFile) -> Result<App, KeyError> {
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

fn request_response(file: &AppFile) -> Result<RequestResponseSettings, KeyError> {
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

fn web(file: &AppFile) -> Result<WebSettings, KeyError> {
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

fn packets(file: &AppFile, datagrams: Datagrams<'_>) -> Result<PacketsSettings, KeyError> {
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
    if transport == Transport::Udp && size.0.mean() > f64::from(datagrams.largest) {
        return Err(("size", datagrams.expected(&size)));
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
    let lasts = one_length("lasts", file.lasts, "a source's")?;
    Ok(PacketsSettings {
        transport,
        size: sizes("size", size)?,
        interval: long_enough("interval", interval)?,
        bursts,
        lasts: lasts.map(|lasts| lasts.0),
        largest: datagrams.largest,
    })
}

/// Most datagrams of a file: a receiver keeps one bit for each.
const MOST_DATAGRAMS: u64 = 100_000;

fn carousel(file: &AppFile, datagrams: Datagrams<'_>) -> Result<CarouselSettings, KeyError> {
    let Some(size) = one_size("size", file.size, "a carousel's")? else {
        return Err(missing("size", r#"a size such as "500 kB""#));
    };
    let Some(rate) = file.rate else {
        return Err(missing("rate", r#"a rate such as "1 Mbit/s""#));
    };
    let datagram = some_bytes("datagram", file.datagram)?.map_or(1_400, |size| size.0.get());
    let datagram = datagrams.size("datagram", datagram)?;
    let mut settings = CarouselSettings {
        size: size.0.get(),
        datagram,
        rate: rate.0,
        turns: at_least_one("turns", file.turns)?.unwrap_or(1),
        interval: Span::ZERO,
        count: at_least_one("files", file.files)?,
    };
    let shortest = Bytes::new(settings.size.min(u64::from(datagram)));
    if rate.0.transmission_time(shortest).as_secs_f64() < SHORTEST_INTERVAL {
        let message = format!(r#"expected less: a datagram every "1 us" at most, got "{rate}""#);
        return Err(("rate", message));
    }
    if settings.datagrams() > MOST_DATAGRAMS {
        let message = format!(
            r#"expected at most {MOST_DATAGRAMS} datagrams in a file, got {} of "{datagram} B" (or let a datagram be longer)"#,
            settings.datagrams()
        );
        return Err(("size", message));
    }
    let most = Length(LONGEST);
    let length = settings.length();
    if length > most.0 {
        let message = format!(r#"expected fewer: a file's turns take longer than "{most}""#);
        return Err(("turns", message));
    }
    let interval = one_length("interval", file.interval, "a carousel's")?;
    settings.interval = interval.map_or(length, |interval| interval.0);
    if settings.interval < length {
        let message = format!(
            r#"expected at least "{}", the duration of the turns of a file, got "{}""#,
            Length(length),
            Length(settings.interval)
        );
        return Err(("interval", message));
    }
    Ok(settings)
}

fn ftp(file: &AppFile) -> Result<FtpSettings, KeyError> {
    let size = file.size.unwrap_or(RandomSize(Distribution::Constant(1e6)));
    Ok(FtpSettings {
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

fn mail(file: &AppFile) -> Result<MailSettings, KeyError> {
    let size = file
        .size
        .unwrap_or(RandomSize(Distribution::Exponential(75e3)));
    let pause = file.pause.map(|pause| pause.0);
    Ok(MailSettings {
        size: sizes("size", size)?,
        pause: pause.unwrap_or(Distribution::Exponential(30.0)),
        count: at_least_one("mails", file.mails)?,
        pipelining: file.pipelining.unwrap_or(false),
    })
}

/// Returns the number of calls.
fn calls(file: &AppFile) -> Result<u64, KeyError> {
    let count = at_least_one("calls", file.calls)?.unwrap_or(1);
    if count > 1 && file.lasts.is_none() {
        let message = "has no effect: a call without a length (lasts) has no end";
        return Err(("calls", message.to_owned()));
    }
    if count == 1 && file.pause.is_some() {
        return Err(("pause", "has no effect: there is one call".to_owned()));
    }
    Ok(count)
}

fn voice(file: &AppFile) -> Result<VoiceSettings, KeyError> {
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
    Ok(VoiceSettings {
        codec,
        packet: length_within("packet", file.packet, Span::from_millis(20), frames)?,
        jitter_buffer,
        lasts: file.lasts.map(|lasts| lasts.0),
        pause: pause(file),
        count: Some(count),
    })
}

/// Range of video rates in bit/s.
const VIDEO_RATES: [u64; 2] = [10_000, 50_000_000];

const MOST_FRAMES: u32 = 120;

fn video_call(file: &AppFile, datagrams: Datagrams<'_>) -> Result<VideoCallSettings, KeyError> {
    let rate = |key, given: Option<Rate>, default: u64| {
        let rate = given.map_or(default, |rate| rate.0.bits_per_second());
        let [least, most] = VIDEO_RATES;
        if (least..=most).contains(&rate) {
            return Ok(rate);
        }
        let got = given.map_or_else(String::new, |rate| format!(r#", got "{rate}""#));
        Err((key, format!(r#"expected "10 kbit/s" to "50 Mbit/s"{got}"#)))
    };
    let least_rate = rate("min_rate", file.min_rate, 150_000)?;
    let most_rate = rate("max_rate", file.max_rate, 1_500_000)?;
    if most_rate < least_rate {
        let (key, than, other) = if file.max_rate.is_some() {
            ("max_rate", "less", "min_rate")
        } else {
            ("min_rate", "more", "max_rate")
        };
        let message = format!("expected no {than} than {other}, {least_rate} to {most_rate} bit/s");
        return Err((key, message));
    }
    let frame_rate = file.frame_rate.unwrap_or(30);
    if !(1..=MOST_FRAMES).contains(&frame_rate) {
        let message = format!("expected 1 to {MOST_FRAMES}, got {frame_rate}");
        return Err(("frame_rate", message));
    }
    let datagram = some_bytes("datagram", file.datagram)?.map_or(1_200, |size| size.0.get());
    let datagram = datagrams.size("datagram", datagram)?;
    if datagram < VideoCallSettings::LEAST_DATAGRAM {
        let message = format!(
            r#"expected at least "{} B", got "{datagram} B""#,
            VideoCallSettings::LEAST_DATAGRAM
        );
        return Err(("datagram", message));
    }
    let settings = VideoCallSettings {
        least_rate,
        most_rate,
        frame_rate,
        datagram,
        lasts: file.lasts.map(|lasts| lasts.0),
        pause: pause(file),
        count: Some(calls(file)?),
    };
    let (packets, most) = (
        settings.packets_of_largest_frame(),
        VideoCallSettings::MOST_PACKETS,
    );
    if packets > most {
        let message = format!(
            "expected at most {most} datagrams in a frame, got {packets} at max_rate and frame_rate"
        );
        return Err(("datagram", message));
    }
    Ok(settings)
}

/// Default rates in kbit/s: from a phone's to 4K video.
const LADDER: [u64; 6] = [400, 800, 1_500, 3_000, 6_000, 12_000];

const MOST_RATES: usize = 32;

fn video(file: &AppFile) -> Result<VideoSettings, KeyError> {
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
    Ok(VideoSettings {
        segment,
        ladder: Arc::from(ladder),
        buffer,
        start_up: length_within("start_up", file.start_up, segment, start_up)?,
        lasts: lasts.map(|lasts| lasts.0),
    })
}

fn ping(file: &AppFile, datagrams: Datagrams<'_>) -> Result<PingSettings, KeyError> {
    let size = one_size("size", file.size, "an echo's")?.map_or(56, |size| size.0.get());
    let size = datagrams.size("size", size)?;
    let interval = one_length("interval", file.interval, "the time between echoes")?;
    let bounds = [Span::from_millis(1), Span::from_secs(3_600)];
    Ok(PingSettings {
        by: match file.protocol.unwrap_or(EchoName::Icmp) {
            EchoName::Icmp => EchoBy::Icmp,
            EchoName::Udp => EchoBy::Udp,
        },
        size,
        interval: length_within("interval", interval, Span::from_secs(1), bounds)?,
        count: at_least_one("requests", file.requests)?,
    })
}
