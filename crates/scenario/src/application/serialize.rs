//! Applications as data.

use bentpipe_sim::Traffic;
use bentpipe_sim::applications;
use serde_json::{Value, json};

use crate::application::resolve::traffic_data;
use crate::application::settings::App;
use crate::quantity::random::RandomLength;

pub(crate) fn app_data(app: &App) -> Value {
    match app {
        App::Bulk { size } => {
            json!({ "kind": "bulk", "size_bytes": size.map(bentpipe_types::Bytes::get) })
        }
        App::Other(_, traffic) => traffic_data(traffic),
        App::Mix(name, Traffic::Mix(mix)) => {
            let share = |share: &applications::Share| {
                json!({
                    "name": share.name.as_ref(),
                    "share": share.weight,
                    "app": traffic_data(&share.traffic),
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
