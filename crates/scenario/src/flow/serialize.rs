//! Flows as data.

use serde_json::{Value, json};

use crate::application::serialize::app_data;
use crate::flow::settings::Flow;
use crate::quantity::random::RandomLength;
use crate::scenario::routes::Route;

pub(crate) fn flow_data<'a>(flow: &Flow, name_of: impl Fn(usize) -> &'a str) -> Value {
    let mut app = app_data(&flow.app);
    if flow.quic {
        app["transport"] = "quic".into();
    }
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
pub(crate) fn route_data(route: Option<&Route>, directions: &[String]) -> Value {
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
