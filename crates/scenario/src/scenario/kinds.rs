//! The kinds of things that a scenario file may name, and their properties.

use bentpipe_tcp::congestion::WindowRule;
use serde_json::{Value, json};

use crate::application::schema::AppKind;
use crate::gateway::schema::GatewayKind;
use crate::queue::schema::QueueKind;

/// Returns the properties of every window rule, queue, application and kind of gateway, by name,
/// for closed forms and advice.
#[must_use]
pub fn kinds() -> Value {
    macro_rules! facts {
        ($words:ident) => {{
            let all = $words::ALL.iter();
            all.map(|kind| (kind.to_string(), json!(kind.facts())))
                .collect::<Value>()
        }};
    }
    json!({
        "window_rules": facts!(WindowRule),
        "queues": facts!(QueueKind),
        "applications": facts!(AppKind),
        "gateways": facts!(GatewayKind),
    })
}
