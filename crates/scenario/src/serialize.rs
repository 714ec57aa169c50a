//! A resolved scenario as data for reports and formulas, with units in the names, and nodes by
//! name.

mod access;
mod changes;

use bentpipe_link::Access;
use bentpipe_sim::Traffic;
use bentpipe_sim::applications::{self, PageModel};
use serde::ser::{SerializeSeq, SerializeStruct};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use bentpipe_types::Span;

use crate::quantity::{Interval, Measured, RandomLength, RandomSize};
use crate::schema::{AppKind, GatewayKind};
use crate::{
    Acks, Anticipation, App, Crash, Direction, Errors, Flow, Gateway, HybridGateway, Link, Node,
    NodeKind, PacketClass, Probes, Processing, RandomErrors, Route, Scenario, SplitGateway,
    TcpSettings, TrafficClass, Way, run,
};

impl Serialize for Scenario {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let name_of = |index: usize| self.nodes.get(index).map_or("", |node| node.name.as_str());
        let mut fields = serializer.serialize_struct("Scenario", 11)?;
        fields.serialize_field("name", &self.name)?;
        fields.serialize_field("description", &self.description)?;
        fields.serialize_field("duration_s", &self.duration.as_secs_f64())?;
        fields.serialize_field("seed", &self.seed)?;
        fields.serialize_field("ip", &self.ip)?;
        fields.serialize_field("nodes", &Each(&self.nodes, |item: &Node| node(item, self)))?;
        let places = run::places(self);
        let links: Vec<_> = self.links.iter().zip(0..).collect();
        fields.serialize_field(
            "links",
            &Each(&links, |(item, index): &(&Link, usize)| {
                let lag = |way| places.get(&(*index, way)).map(Access::lag);
                link(item, lag, self.duration, name_of)
            }),
        )?;
        let directions = self.direction_names();
        let routes = self.routes().unwrap_or_default();
        let flows: Vec<_> = self.flows.iter().zip(0..).collect();
        fields.serialize_field(
            "flows",
            &Each(&flows, |(item, index): &(&Flow, usize)| {
                let mut data = flow(item, name_of);
                data["route"] = route(routes.get(*index), &directions);
                data
            }),
        )?;
        fields.serialize_field(
            "classes",
            &Each(&self.classes, |item: &PacketClass| class(item, self)),
        )?;
        fields.serialize_field("host_timing", &self.host_timing)?;
        fields.serialize_field("probes", &probes(&self.probes))?;
        fields.end()
    }
}

/// A sequence whose items are created one at a time.
struct Each<'a, T, F>(&'a [T], F);

impl<T, F: Fn(&T) -> Value> Serialize for Each<'_, T, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut sequence = serializer.serialize_seq(Some(self.0.len()))?;
        for item in self.0 {
            sequence.serialize_element(&(self.1)(item))?;
        }
        sequence.end()
    }
}

fn node(node: &Node, scenario: &Scenario) -> Value {
    match &node.kind {
        NodeKind::Host(settings) => {
            json!({
                "name": node.name,
                "kind": "host",
                "tcp": tcp(&settings.tcp),
                "processing": processing(settings.processing),
            })
        }
        NodeKind::Gateway(Gateway::Router {
            icmp,
            processing: time,
        }) => {
            let processing = processing(*time);
            json!({ "name": node.name, "kind": "router", "icmp": icmp, "processing": processing })
        }
        NodeKind::Gateway(Gateway::Split(split)) => {
            let mut data = split_gateway(split, scenario);
            data["name"] = node.name.clone().into();
            data
        }
        NodeKind::Gateway(Gateway::Hybrid(hybrid)) => {
            let mut data = hybrid_gateway(hybrid, scenario);
            data["name"] = node.name.clone().into();
            data
        }
    }
}

fn split_gateway(split: &SplitGateway, scenario: &Scenario) -> Value {
    let class = |class: &Option<TrafficClass>| {
        class.as_ref().map(|class| {
            let name = |index: &usize| scenario.nodes[*index].name.as_str();
            json!({
                "ports": class.ports.as_ref().map(|ports| {
                    ports.iter().map(|range| [range.first, range.last]).collect::<Vec<_>>()
                }),
                "hosts": class.hosts.as_ref()
                    .map(|hosts| hosts.iter().map(name).collect::<Vec<_>>()),
            })
        })
    };
    json!({
        "kind": GatewayKind::Split,
        "facing": scenario.links[split.facing].name,
        "tcp": tcp(&split.tcp),
        "host_tcp": tcp(&split.host_tcp),
        "set_up": split.set_up,
        "close": split.close,
        "memory_bytes": split.memory.get(),
        "only": class(&split.only),
        "except": class(&split.except),
        "processing": processing(split.processing),
        "warm_path": split.warm_path,
        "multiplex": split.multiplex.map(|with| with.connections),
        "idle_timeout_s": split.idle_timeout.as_secs_f64(),
        "crashes": crashes(&split.crashes),
    })
}

fn hybrid_gateway(hybrid: &HybridGateway, scenario: &Scenario) -> Value {
    json!({
        "kind": GatewayKind::Hybrid,
        "facing": scenario.links[hybrid.facing].name,
        "receive_buffer_bytes": hybrid.receive_buffer.get(),
        "store_bytes": hybrid.store.get(),
        "memory_bytes": hybrid.memory.get(),
        "connections": hybrid.connections,
        "ack_timeout_s": hybrid.ack_timeout.as_secs_f64(),
        "ack_every": hybrid.ack_every,
        "anticipation": match hybrid.anticipation {
            Anticipation::Unlimited => json!("unlimited"),
            Anticipation::Strict => json!("strict"),
            Anticipation::Factor(factor) => json!(factor),
        },
        "tcp": hybrid.tcp.as_ref().map(tcp),
        "congestion_window": hybrid.tcp.is_some() && hybrid.congestion_window,
        "retransmission_timeout_s": hybrid.retransmission_timeout.map(Span::as_secs_f64),
        "give_up_s": hybrid.give_up.as_secs_f64(),
        "idle_timeout_s": hybrid.idle_timeout.as_secs_f64(),
        "processing": processing(hybrid.processing),
        "crashes": crashes(&hybrid.crashes),
    })
}

fn crashes(crashes: &[Crash]) -> Value {
    let each = |crash: &Crash| json!({ "at_s": crash.at.as_secs_f64(), "lasts_s": crash.lasts.as_secs_f64() });
    crashes.iter().map(each).collect()
}

fn processing(processing: Option<Processing>) -> Value {
    processing.map_or(Value::Null, |processing| {
        json!({
            "time_s": processing.time.as_secs_f64(),
            "queue_packets": processing.queue_packets,
        })
    })
}

fn tcp(tcp: &TcpSettings) -> Value {
    tcp.file.measured()
}

/// Returns a link as data; `lag` is the number of frames from a request of a direction to its
/// grant, if it has capacity on demand.
fn link<'a>(
    link: &Link,
    lag: impl Fn(Way) -> Option<u64>,
    duration: Span,
    name_of: impl Fn(usize) -> &'a str,
) -> Value {
    json!({
        "name": link.name,
        "between": link.between.map(&name_of),
        "far_ends": link.broadcast.then(|| link.far_ends().map(&name_of).collect::<Vec<_>>()),
        "mtu_bytes": link.mtu,
        "fragment": link.fragments,
        // Null if the directions differ.
        "framing": link.common_framing(),
        "arp": link.arp.map(|arp| json!({
            "timeout_s": arp.timeout.as_secs_f64(),
            "queue_packets": arp.queue_packets,
        })),
        "forward": direction(&link.forward, lag(Way::Forward), duration),
        "return": link.backward.as_ref().map(|back| direction(back, lag(Way::Return), duration)),
    })
}

fn direction(direction: &Direction, lag: Option<u64>, duration: Span) -> Value {
    let mut data = json!({
        "rate_bps": direction.rate.bits_per_second(),
        "delay_s": direction.delay.as_secs_f64(),
        "queue": direction.queue.measured(),
        "errors": errors(&direction.errors),
        "redundancy": direction.redundancy.get(),
        "access": direction.access.as_ref().zip(lag).map(|(of, lag)| access::on_demand(of, lag)),
        "acks": acks(direction.acks),
        "compression": direction.compression,
        "framing": direction.framing,
        "tunnel": direction.tunnel,
        "changes": direction.changes.as_ref().map(|of| changes::changes(direction, of, duration)),
    });
    if let Some(acm) = &direction.acm {
        data["acm"] = changes::acm(acm);
    }
    data
}

fn acks(acks: Acks) -> Value {
    let marks = acks.marks();
    let mode = match acks {
        Acks::Filter(mode) => Some(mode),
        _ => None,
    };
    let threshold = match acks {
        Acks::Reconstruction { threshold, .. } => Some(threshold.get()),
        _ => None,
    };
    json!({
        "kind": acks.kind(),
        "low": marks.map(|marks| marks.low),
        "high": marks.map(|marks| marks.high),
        "duplicates": marks.and_then(|marks| marks.duplicates),
        "mode": mode,
        "threshold_bytes": threshold,
        "spacing": acks.spacing(),
    })
}

fn class(class: &PacketClass, scenario: &Scenario) -> Value {
    let flows = class.flows.as_ref().map(|flows| {
        let names = flows.iter().map(|flow| scenario.flows[*flow].name.as_str());
        names.collect::<Vec<_>>()
    });
    let hosts = class.hosts.as_ref().map(|hosts| {
        let names = hosts.iter().map(|host| scenario.nodes[*host].name.as_str());
        names.collect::<Vec<_>>()
    });
    json!({
        "name": &*class.name,
        "flows": flows,
        "applications": class.applications,
        "hosts": hosts,
        "ports": (class.ports.as_ref())
            .map(|ports| ports.iter().map(ToString::to_string).collect::<Vec<_>>()),
    })
}

fn errors(errors: &Errors) -> Value {
    let (bit_error_rate, packet_loss_rate) = match errors.random {
        RandomErrors::None => (0.0, 0.0),
        RandomErrors::BitErrorRate(rate) => (rate, 0.0),
        RandomErrors::PacketLossRate(rate) => (0.0, rate),
        RandomErrors::Bursts(bursts) => (0.0, bursts.loss_rate),
    };
    let bursts = match errors.random {
        RandomErrors::Bursts(bursts) => Some(bursts),
        _ => None,
    };
    json!({
        "bit_error_rate": bit_error_rate,
        "packet_loss_rate": packet_loss_rate,
        "mean_burst_packets": bursts.map(|bursts| bursts.mean_length),
        "loss_in_burst": bursts.map(|bursts| bursts.loss_in_burst),
        "loss_between_bursts": bursts.map(|bursts| bursts.loss_between),
        "lost_packets": *errors.lost_packets,
    })
}

fn flow<'a>(flow: &Flow, name_of: impl Fn(usize) -> &'a str) -> Value {
    let app = app(&flow.app);
    json!({
        "name": flow.name,
        "from": name_of(flow.from),
        "to": name_of(flow.to),
        "channel": flow.channel,
        "start_s": flow.start.as_secs_f64(),
        "late": flow.late.map(|late| RandomLength(late).to_string()),
        "wait": flow.wait.map(|wait| RandomLength(wait).to_string()),
        "table": flow.table.as_ref(),
        "app": app,
    })
}

/// Returns the names of the directions that a flow's packets pass.
fn route(route: Option<&Route>, directions: &[String]) -> Value {
    let names = |path: &[usize]| -> Vec<&str> {
        let names = path
            .iter()
            .filter_map(|direction| directions.get(*direction));
        names.map(String::as_str).collect()
    };
    route.map_or(
        Value::Null,
        |[there, back]| json!({ "forward": names(there), "return": names(back) }),
    )
}

fn app(app: &App) -> Value {
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

fn probes(probes: &Probes) -> Value {
    let series = probes.series.iter();
    json!({
        "series": series
            .map(|probe| json!({ "name": probe.name, "unit": probe.of.unit() }))
            .collect::<Vec<_>>(),
        "interval_s": match probes.interval {
            Interval::Every(span) => Some(span.as_secs_f64()),
            Interval::EveryChange => None,
        },
        "averages_every_s": probes.averages_every.as_secs_f64(),
    })
}
