//! Time that a node takes to process each packet.

use bentpipe_types::Span;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::fault::{Fault, fault};
use crate::quantity::count::QueueLimit;
use crate::quantity::time::Length;

/// Processing time of each packet that arrives.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProcessingFile {
    /// Time per packet; packets are processed one at a time. At most "1 s".
    pub time: Length,
    /// Capacity of the queue in front of the processor. Default: "1000 packets".
    pub queue: Option<QueueLimit>,
}

/// Processing of packets at a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Processing {
    /// Time per packet; above zero.
    pub time: Span,
    /// Capacity of the queue in front of the processor.
    pub queue_packets: u32,
}

const LONGEST_PROCESSING: Span = Span::from_secs(1);

const PROCESSING_QUEUE: u32 = 1_000;

/// Returns the processing of the node with this table.
pub(crate) fn resolve_processing(
    table: &str,
    name: &str,
    file: Option<&ProcessingFile>,
) -> Result<Option<Processing>, Fault> {
    file.map(|file| processor(table, name, file)).transpose()
}

fn processor(table: &str, name: &str, file: &ProcessingFile) -> Result<Processing, Fault> {
    let refuse =
        |key: &str, message: String| Err(fault(&[table, name, "processing", key], message));
    let Length(time) = file.time;
    if time == Span::ZERO || time > LONGEST_PROCESSING {
        let message = format!(
            r#"expected more than "0 s" and at most "1 s", got "{}""#,
            file.time
        );
        return refuse("time", message);
    }
    let queue_packets = match file.queue {
        None => PROCESSING_QUEUE,
        Some(QueueLimit::Packets(packets)) => packets,
        Some(limit) => {
            let message = format!(r#"expected packets such as "100 packets", got "{limit}""#);
            return refuse("queue", message);
        }
    };
    Ok(Processing {
        time,
        queue_packets,
    })
}

/// Converts to the type of agents.
pub(crate) fn engine_processing(processing: Processing) -> bentpipe_types::Processing {
    bentpipe_types::Processing {
        time: processing.time,
        queue_packets: processing.queue_packets as usize,
    }
}

pub(crate) fn processing_data(processing: Option<Processing>) -> Value {
    processing.map_or(Value::Null, |processing| {
        json!({
            "time_s": processing.time.as_secs_f64(),
            "queue_packets": processing.queue_packets,
        })
    })
}
