use proptest::prelude::*;

use super::*;

const TEXT: &str = r#"
name = "t"
duration = "20 s"
hosts = { server = {}, client = {} }
[links.satellite]
between = ["server", "client"]
rate = "2 Mbit/s"
delay = "250 ms"
[flows.download]
from = "server"
to = "client"
app = { kind = "bulk", size = "500 kB" }
"#;

fn ask(engine: &mut Engine, request: Value) -> Value {
    let reply = engine.answer(request.to_string().as_bytes());
    serde_json::from_str(&reply).expect("an object")
}

fn finished(engine: &mut Engine, start: Value) -> (u32, Value) {
    let run = ask(engine, start)["run"].as_u64().expect("a number");
    let mut steps = 0;
    loop {
        let reply = ask(
            engine,
            json!({ "do": "advance", "run": run, "events": 100 }),
        );
        steps += 1;
        if reply["ended"] == true {
            break;
        }
    }
    assert!(steps > 5, "{steps}");
    (
        run as u32,
        ask(engine, json!({ "do": "finish", "run": run })),
    )
}

#[test]
fn a_run_in_steps_has_the_results_of_a_run() {
    let mut engine = Engine::default();
    let start = json!({ "do": "start", "source": { "text": TEXT }, "packets": true });
    let (run, reply) = finished(&mut engine, start);
    let scenario = Scenario::parse(TEXT, "t", &[]).expect("valid");
    let native = scenario.run(&RunOptions::default()).expect("runs");
    let native = serde_json::to_string(&native.summary).expect("JSON");
    assert_eq!(reply["summary_json"], native);

    let named = |name: &str| {
        let series = reply["series"].as_array().expect("series");
        series
            .iter()
            .position(|one| one["name"] == name)
            .expect("recorded")
    };
    let delivered = named("download.acknowledged");
    let summary: Value = serde_json::from_str(&native).expect("JSON");
    let finish_s = summary["flows"][0]["finish_s"].as_f64().expect("finished");
    let reply = ask(
        &mut engine,
        json!({ "do": "series", "run": run, "indices": [delivered], "range_s": [0.0, finish_s + 1.0], "columns": 50 }),
    );
    let samples = reply["lengths"][0].as_u64().expect("a number") as usize;
    assert_eq!(engine.values().len(), NUMBERS * samples);
    assert!((40..=102).contains(&samples), "{samples}");
    assert_eq!(engine.values().last(), Some(&500_000.0));

    let at = ask(
        &mut engine,
        json!({ "do": "at", "run": run, "time_s": finish_s + 1.0 }),
    );
    assert_eq!(at["values"][delivered], 500_000.0);

    let rows = ask(
        &mut engine,
        json!({ "do": "packets", "run": run, "from_s": 0.2, "most": 3 }),
    );
    assert_eq!(rows["rows"].as_array().map(Vec::len), Some(3));
    let first = &rows["rows"][0];
    assert_eq!(first["node"], "client");
    assert_eq!(first["event"], "received");
    assert!(
        first["text"]
            .as_str()
            .expect("text")
            .starts_with("Flags [S]"),
        "{first}"
    );

    assert_eq!(
        ask(&mut engine, json!({ "do": "close", "run": run }))["closed"],
        true
    );
    assert_eq!(
        ask(&mut engine, json!({ "do": "close", "run": run }))["closed"],
        false
    );
}

#[test]
fn a_refusal_has_line_and_column() {
    let text = TEXT.replace("rate = \"2 Mbit/s\"", "  rate = 2");
    let reply = ask(
        &mut Engine::default(),
        json!({ "do": "check", "source": { "text": text } }),
    );
    let refusal = &reply["refusal"];
    assert_eq!(refusal["line"], 7);
    // The value is what is wrong.
    assert_eq!(refusal["column"], 10);
    assert_eq!(refusal["key"], "links.satellite.rate");
    let broken = ask(
        &mut Engine::default(),
        json!({ "do": "check", "source": { "text": "name = \"t\"\nµ = = 1" } }),
    );
    assert_eq!(broken["refusal"]["line"], 2);
}

#[test]
fn requests_for_nothing_are_errors() {
    let mut engine = Engine::default();
    for request in [
        json!({ "do": "advance", "run": 7, "events": 1 }),
        json!({ "do": "finish", "run": 7 }),
        json!({ "do": "at", "run": 7, "time_s": 1.0 }),
        json!({ "do": "dance" }),
        json!(3),
    ] {
        assert!(
            ask(&mut engine, request.clone())["error"].is_string(),
            "{request}"
        );
    }
    let start = json!({ "do": "start", "source": { "text": TEXT }, "series": false });
    let mut last = Value::Null;
    for _ in 0..=MOST_RUNS {
        last = ask(&mut engine, start.clone());
    }
    assert_eq!(last["error"], "more than 64 runs are held");
}

proptest! {
    #[test]
    fn random_requests_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        Engine::default().answer(&bytes);
    }

    #[test]
    fn random_numbers_do_not_panic(
        from in any::<f64>(),
        until in any::<f64>(),
        columns in any::<usize>(),
        index in 0..40usize,
    ) {
        let mut engine = Engine::default();
        let (run, _) = finished(&mut engine, json!({ "do": "start", "source": { "text": TEXT } }));
        let request = json!({
            "do": "series", "run": run, "indices": [index], "range_s": [from, until], "columns": columns,
            "averages": index % 2 == 0,
        });
        ask(&mut engine, request);
        ask(&mut engine, json!({ "do": "at", "run": run, "time_s": from }));
        ask(&mut engine, json!({ "do": "packets", "run": run, "from_s": until, "most": columns }));
    }
}

#[test]
fn trace_files_are_those_that_the_page_provides() {
    let mut engine = Engine::default();
    let text = TEXT.replace(
        "rate = \"2 Mbit/s\"",
        "traces = [{ file = \"traces/rate.csv\" }]",
    );
    let check = json!({ "do": "check", "source": { "text": text } });
    let refusal = ask(&mut engine, check.clone());
    assert_eq!(refusal["refusal"]["key"], "links.satellite.traces.file");
    assert_eq!(
        refusal["refusal"]["message"],
        "traces/rate.csv: no such file: choose it, or drop it on the page"
    );

    let wrong = engine.provide(
        "rate.csv".to_owned(),
        b"time (s), rate (Mbit/s)\n0,x\n".to_vec(),
    );
    assert_eq!(wrong, r#"{"files":1}"#);
    let refusal = ask(&mut engine, check.clone());
    let message = refusal["refusal"]["message"].as_str().expect("refused");
    assert!(message.starts_with("traces/rate.csv:2: "), "{message}");

    engine.provide(
        "rate.csv".to_owned(),
        b"time (s), rate (Mbit/s)\n0,2\n5,1\n".to_vec(),
    );
    assert_eq!(ask(&mut engine, check)["counts"]["links"], 1);
    let start = json!({ "do": "start", "source": { "text": text } });
    assert!(ask(&mut engine, start)["run"].is_u64());

    let refused = engine.provide("long.csv".to_owned(), vec![0; MOST_FILE_BYTES + 1]);
    assert_eq!(refused, r#"{"error":"more than 128 MiB of trace files"}"#);
}
