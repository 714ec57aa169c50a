//! The subcommands about a gateway that runs: requests through its control socket.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::console::{CommandError, Console, print_pretty};
use super::options::{ClientAction, ClientOptions, duration};
use super::report::{bytes, count, seconds};
use super::scenario_source::reason;
use super::table::{Table, terminal_width};

/// Longest wait for an answer.
const ANSWER_TIME: Duration = Duration::from_secs(15);

/// Sends the request of a subcommand, and prints the answer.
pub(super) fn run(action: &ClientAction, console: &mut dyn Console) -> Result<u8, CommandError> {
    let options = action.options();
    let request = match action {
        ClientAction::Status(_) => json!({ "request": "status" }),
        ClientAction::Metrics(_) => json!({ "request": "metrics" }),
        ClientAction::Reload(_) => json!({ "request": "reload" }),
        ClientAction::Drain(drain) => {
            let within = duration("--within", &drain.within)?;
            json!({ "request": "drain", "within_s": within.as_secs_f64() })
        }
        ClientAction::Connections(page) => {
            json!({ "request": "connections", "first": page.first, "limit": page.limit })
        }
    };
    let answer = ask(options, &request)?;
    if options.json {
        print_pretty(console, &answer)?;
        return Ok(0);
    }
    let text = match action {
        ClientAction::Status(_) => status(&answer),
        ClientAction::Metrics(_) => answer["text"].as_str().unwrap_or_default().to_owned(),
        ClientAction::Reload(_) => reload(&answer),
        ClientAction::Drain(_) => format!(
            "draining: new connections are forwarded, {} are left\n",
            count(&answer["open"])
        ),
        ClientAction::Connections(_) => connections(&answer),
    };
    console.print(&text)?;
    Ok(0)
}

fn ask(options: &ClientOptions, request: &Value) -> Result<Value, CommandError> {
    let path = Path::new(&options.socket);
    let failed = |error: std::io::Error| {
        let (shown, why) = (path.display(), reason(&error));
        CommandError::Failed(format!(
            "{shown}: {why}: expected the control socket of a gateway that runs (--socket)"
        ))
    };
    let mut socket = UnixStream::connect(path).map_err(failed)?;
    socket.set_read_timeout(Some(ANSWER_TIME)).map_err(failed)?;
    socket
        .write_all(format!("{request}\n").as_bytes())
        .map_err(failed)?;
    let mut line = String::new();
    BufReader::new(socket)
        .read_line(&mut line)
        .map_err(failed)?;
    let mut answer: Value = serde_json::from_str(&line)
        .map_err(|_| CommandError::Failed("the gateway has closed the connection".to_owned()))?;
    if answer["ok"] != true {
        let error = answer["error"].as_str().unwrap_or("no answer").to_owned();
        return Err(CommandError::Failed(error));
    }
    if let Some(fields) = answer.as_object_mut() {
        fields.remove("ok");
    }
    Ok(answer)
}

fn status(answer: &Value) -> String {
    let mut text = String::new();
    for side in answer["sides"].as_array().into_iter().flatten() {
        text += &format!("{}\n", side.as_str().unwrap_or_default());
    }
    let state = if answer["draining"] == true {
        "draining"
    } else {
        "running"
    };
    let up = seconds(&answer["uptime_s"], 1.0);
    let version = answer["version"].as_str().unwrap_or_default();
    text += &format!("{state} for {up}, version {version}\n");
    let mut table = Table::new(&["gateway", "counter", "value"], 2);
    for kind in ["gauges", "counters"] {
        for (gateway, all) in answer[kind].as_object().into_iter().flatten() {
            for (name, value) in all.as_object().into_iter().flatten() {
                if value.as_u64().is_some_and(|value| value > 0) {
                    table.add(vec![gateway.clone(), name.clone(), count(value)]);
                }
            }
        }
    }
    if !table.is_empty() {
        text += "\n";
        text += &table.text(terminal_width());
    }
    for (why, number) in answer["refused"].as_object().into_iter().flatten() {
        if number.as_u64().is_some_and(|number| number > 0) {
            text += &format!("refused, {why}: {}\n", count(number));
        }
    }
    text
}

fn reload(answer: &Value) -> String {
    let mut text = "new connections have the settings of the file\n".to_owned();
    for note in answer["notes"].as_array().into_iter().flatten() {
        text += &format!("note: {}\n", note.as_str().unwrap_or_default());
    }
    text
}

fn connections(answer: &Value) -> String {
    let headings = [
        "opened by",
        "to",
        "state",
        "age",
        "idle",
        "leg",
        "round trip",
        "window",
        "in flight",
        "held",
        "received",
        "delivered",
        "again",
    ];
    let mut table = Table::new(&headings, 3);
    for connection in answer["connections"].as_array().into_iter().flatten() {
        for leg in connection["legs"].as_array().into_iter().flatten() {
            if leg.is_null() {
                continue;
            }
            let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            table.add(vec![
                word(&connection["opener"]),
                word(&connection["responder"]),
                word(&leg["state"]),
                seconds(&connection["age_s"], 1.0),
                seconds(&connection["idle_s"], 1.0),
                if leg["is_facing"] == true {
                    "facing".to_owned()
                } else {
                    "host".to_owned()
                },
                seconds(&leg["round_trip_s"], 1.0),
                bytes(&leg["congestion_window_bytes"]),
                bytes(&leg["in_flight_bytes"]),
                bytes(&leg["held_bytes"]),
                bytes(&leg["received_bytes"]),
                bytes(&leg["delivered_bytes"]),
                count(&leg["retransmitted_segments"]),
            ]);
        }
    }
    if table.is_empty() {
        return "no connections\n".to_owned();
    }
    let mut text = table.text(terminal_width());
    if let Some(next) = answer["next"].as_u64() {
        text += &format!("more: --first {next}\n");
    }
    text
}
