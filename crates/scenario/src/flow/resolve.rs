//! Flows, and the check that a route joins their ends.

use std::sync::Arc;

use bentpipe_types::{Span, Time};

use crate::application::datagrams::Datagrams;
use crate::application::resolve::resolve_application;
use crate::application::schema::AppKind;
use crate::application::settings::App;
use crate::application::words::TransportName;
use crate::directory::{Directory, member_name};
use crate::error::quoted;
use crate::fault::{Fault, fault};
use crate::flow::ends::{Destination, flow_ends};
use crate::flow::schema::FlowFile;
use crate::flow::settings::Flow;
use crate::group::resolve::Groups;
use crate::hints;
use crate::mix::resolve::{Mixes, find_mix};
use crate::named::Named;
use crate::quantity::time::Length;

/// Returns the flows in the order of the file.
pub(crate) fn resolve_flows(
    flows: &Named<FlowFile>,
    nodes: &Directory<'_>,
    groups: &Groups<'_>,
    mixes: &Mixes,
    datagrams: Datagrams<'_>,
    duration: Span,
) -> Result<Vec<Flow>, Fault> {
    let mut resolved = Vec::new();
    let mut channels = 0..;
    for (name, flow) in flows.iter() {
        let table: Arc<str> = Arc::from(name);
        let ends = flow_ends(name, flow, nodes, groups)?;
        let count = ends.count;
        let (start, late) = match flow.start.constant() {
            Some(Length(start)) => (start, None),
            None => (Span::ZERO, Some(flow.start.0)),
        };
        let (spacing, wait) = match flow.spacing.constant() {
            Some(Length(spacing)) => (spacing, None),
            None => (Span::ZERO, Some(flow.spacing.0)),
        };
        if (spacing > Span::ZERO || wait.is_some()) && count.is_none() {
            let message =
                "has no effect: there is one flow, as neither it nor one of its ends has a count";
            return Err(fault(&["flows", name, "spacing"], message));
        }
        let after = |n: usize| start + spacing * n as u64;
        if flow.start.0.mean() >= duration.as_secs_f64() {
            let message = format!(
                r#"expected before the end (duration = "{}"), got "{}""#,
                Length(duration),
                flow.start
            );
            return Err(fault(&["flows", name, "start"], message));
        }
        let last = after(count.unwrap_or(1).saturating_sub(1));
        if last >= duration {
            let message = format!(
                r#"expected the last of them to start before the end (duration = "{}"), not at "{}""#,
                Length(duration),
                Length(last)
            );
            return Err(fault(&["flows", name, "spacing"], message));
        }
        let app = match (&flow.app, &flow.mix) {
            (Some(app), None) => resolve_application(app, datagrams)
                .map_err(|(key, message)| fault(&["flows", name, "app", key], message))?,
            (None, Some(mix)) => {
                let traffic = find_mix(mixes, mix)
                    .map_err(|message| fault(&["flows", name, "mix"], message))?;
                App::Mix(Arc::from(mix.as_str()), traffic)
            }
            (Some(_), Some(_)) => {
                let message = "has no effect: `app` sets the application of the flow";
                return Err(fault(&["flows", name, "mix"], message));
            }
            (None, None) => {
                let expected = hints::expected("app").unwrap_or_default();
                let message = format!("missing; expected {expected}");
                return Err(fault(&["flows", name, "app"], message));
            }
        };
        let transport = flow.app.as_ref().and_then(|app| app.transport);
        let quic = transport == Some(TransportName::Quic);
        let channel = match &ends.to {
            Destination::Hosts(_) => None,
            Destination::Group(_) => {
                check_multicast(name, flow, &app)?;
                channels.next()
            }
        };
        resolved.extend((0..ends.made()).map(|n| Flow {
            name: member_name(name, count, n),
            from: ends.nth(n).0,
            to: ends.nth(n).1,
            channel,
            start: Time::ZERO + after(n),
            late,
            wait,
            table: Arc::clone(&table),
            app: app.clone(),
            quic,
        }));
    }
    Ok(resolved)
}

/// Refuses connections to a group: only datagrams can be sent by multicast.
fn check_multicast(name: &str, flow: &FlowFile, app: &App) -> Result<(), Fault> {
    let message = match app {
        App::Other(_, traffic) if traffic.is_one_way() => return Ok(()),
        App::Other(AppKind::Packets, _) => {
            let message = format!(
                "expected \"udp\": {} is a group, and a TCP connection has two ends",
                quoted(&flow.to)
            );
            return Err(fault(&["flows", name, "app", "transport"], message));
        }
        App::Mix(..) => {
            let message = format!("expected one host: {} is a group", quoted(&flow.to));
            return Err(fault(&["flows", name, "to"], message));
        }
        App::Bulk { .. } | App::Other(..) => format!(
            "expected \"carousel\" or \"packets\": {} is a group, to which only datagrams can be sent",
            quoted(&flow.to)
        ),
    };
    Err(fault(&["flows", name, "app", "kind"], message))
}
