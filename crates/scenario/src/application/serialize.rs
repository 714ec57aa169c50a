//! Applications as data.

use bentpipe_sim::Traffic;
use bentpipe_sim::applications::{self, PageModel};
use serde_json::{Value, json};

use crate::application::schema::AppKind;
use crate::application::settings::App;
use crate::quantity::random::{RandomLength, RandomSize};

pub(crate) fn app_data(app: &App) -> Value {
    match app {
        App::Bulk { size } => {
            json!({ "kind": "bulk", "size_bytes": size.map(bentpipe_types::Bytes::get) })
        }
        App::Other(kind, traffic) => of_kind(json!(kind), traffic),
        App::Mix(name, Traffic::Mix(mix)) => {
            let share = |share: &applications::Share| {
                json!({
                    "name": share.name.as_ref(),
                    "share": share.weight,
                    "app": of_kind(json!(kind_of(&share.traffic)), &share.traffic),
                })
            };
            json!({
                "kind": "mix",
                "mix": name.as_ref(),
                "pause": RandomLength(mix.pause).to_string(),
                "shares": mix.shares.iter().map(share).collect::<Vec<_>>(),
            })
        }
        App::Mix(name, _) => json!({ "kind": "mix", "mix": name.as_ref() }),
    }
}

/// Returns the application of an activity.
fn kind_of(traffic: &Traffic) -> Option<AppKind> {
    Some(match traffic {
        Traffic::Bulk(_) => AppKind::Bulk,
        Traffic::RequestResponse(_) => AppKind::RequestResponse,
        Traffic::Web(_) => AppKind::Web,
        Traffic::Packets(_) => AppKind::Packets,
        Traffic::Carousel(_) => AppKind::Carousel,
        Traffic::Ftp(_) => AppKind::Ftp,
        Traffic::Mail(_) => AppKind::Mail,
        Traffic::Voice(_) => AppKind::Voice,
        Traffic::Video(_) => AppKind::Video,
        Traffic::VideoCall(_) => AppKind::VideoCall,
        Traffic::Ping(_) => AppKind::Ping,
        Traffic::Mix(_) => return None,
    })
}

/// Returns an application's kind and settings.
fn of_kind(kind: Value, traffic: &Traffic) -> Value {
    let mut data = match traffic {
        Traffic::Bulk(bulk) => json!({
            "size_bytes": bulk.size,
            "direction": match bulk.direction {
                applications::Direction::Upload => "upload",
                applications::Direction::Download => "download",
                applications::Direction::Both => "both",
            },
            "transfers": bulk.transfers,
            "pause_s": bulk.pause.as_secs_f64(),
        }),
        Traffic::RequestResponse(ask) => json!({
            "request": RandomSize(ask.request).to_string(),
            "response": RandomSize(ask.response).to_string(),
            "think_s": ask.think.as_secs_f64(),
            "pause": RandomLength(ask.pause).to_string(),
            "requests": ask.count,
        }),
        Traffic::Web(web) => json!({
            "http": match web.http {
                applications::Http::One => "1.1",
                applications::Http::Two => "2",
            },
            "tls": match web.tls {
                applications::Tls::Off => "off",
                applications::Tls::V1_2 => "1.2",
                applications::Tls::V1_3 => "1.3",
            },
            "resumption": web.resumption,
            "page": match web.page {
                PageModel::WebAlmanac => json!("web-almanac"),
                PageModel::ThreeGpp => json!("3gpp"),
                PageModel::Fixed { document, objects, size } => json!({
                    "document_bytes": document,
                    "objects": objects,
                    "object_bytes": size,
                }),
            },
            "levels": web.levels,
            "request_bytes": web.request,
            "think_s": web.think.as_secs_f64(),
            "reading": RandomLength(web.reading).to_string(),
            "pages": web.count,
        }),
        Traffic::Packets(packets) => json!({
            "transport": match packets.transport {
                applications::Transport::Udp => "udp",
                applications::Transport::Tcp => "tcp",
            },
            "size": RandomSize(packets.size).to_string(),
            "interval": RandomLength(packets.interval).to_string(),
            "on": packets.bursts.map(|(on, _)| RandomLength(on).to_string()),
            "off": packets.bursts.map(|(_, off)| RandomLength(off).to_string()),
            "lasts_s": packets.lasts.map(bentpipe_types::Span::as_secs_f64),
        }),
        Traffic::Carousel(carousel) => json!({
            "size_bytes": carousel.size,
            "datagram_bytes": carousel.datagram,
            "rate_bps": carousel.rate.bits_per_second(),
            "turns": carousel.turns,
            "interval_s": carousel.interval.as_secs_f64(),
            "files": carousel.count,
        }),
        Traffic::Ftp(ftp) => json!({
            "mode": match ftp.mode {
                applications::FtpMode::Passive => "passive",
                applications::FtpMode::Active => "active",
            },
            "direction": match ftp.direction {
                applications::Direction::Upload => "upload",
                _ => "download",
            },
            "size": RandomSize(ftp.size).to_string(),
            "pause": RandomLength(ftp.pause).to_string(),
            "files": ftp.count,
        }),
        Traffic::Mail(mail) => json!({
            "size": RandomSize(mail.size).to_string(),
            "pause": RandomLength(mail.pause).to_string(),
            "mails": mail.count,
            "pipelining": mail.pipelining,
        }),
        Traffic::Voice(voice) => json!({
            "codec": match voice.codec {
                applications::Codec::G711 => "g711",
                applications::Codec::G729 => "g729",
            },
            "packet_s": voice.packet.as_secs_f64(),
            // Of an adaptive one, there is no one length.
            "jitter_buffer_s": match voice.jitter_buffer {
                applications::JitterBuffer::Fixed(length) => Some(length.as_secs_f64()),
                applications::JitterBuffer::Adaptive => None,
            },
            "lasts": voice.lasts.map(|lasts| RandomLength(lasts).to_string()),
            "pause": RandomLength(voice.pause).to_string(),
            "calls": voice.count,
        }),
        Traffic::Video(video) => json!({
            "segment_s": video.segment.as_secs_f64(),
            "ladder_bps": video.ladder.as_ref(),
            "buffer_s": video.buffer.as_secs_f64(),
            "start_up_s": video.start_up.as_secs_f64(),
            "lasts_s": video.lasts.map(bentpipe_types::Span::as_secs_f64),
        }),
        Traffic::VideoCall(call) => json!({
            "min_rate_bps": call.least_rate,
            "max_rate_bps": call.most_rate,
            "frame_rate": call.frame_rate,
            "datagram_bytes": call.datagram,
            "lasts": call.lasts.map(|lasts| RandomLength(lasts).to_string()),
            "pause": RandomLength(call.pause).to_string(),
            "calls": call.count,
        }),
        Traffic::Ping(ping) => json!({
            "protocol": match ping.by {
                applications::EchoBy::Icmp => "icmp",
                applications::EchoBy::Udp => "udp",
            },
            "size_bytes": ping.size,
            "interval_s": ping.interval.as_secs_f64(),
            "requests": ping.count,
        }),
        Traffic::Mix(_) => json!({}),
    };
    if let Value::Object(data) = &mut data {
        data.insert("kind".to_owned(), kind);
    }
    data
}
