//! Rain attenuation in dB: rate and outages that follow from it, modes, margin and hysteresis.

use bentpipe_scenario::{RunOptions, Scenario};
use serde_json::Value;

/// Returns a download over a link whose forward direction has these keys.
fn file(forward: &str) -> String {
    format!(
        r#"
name = "rain"
duration = "60 s"
seed = 1
[hosts.server]
[hosts.client]
[links.sky]
between = ["server", "client"]
delay = "250 ms"
[links.sky.return]
rate = "5 Mbit/s"
[links.sky.forward]
{forward}
[flows.download]
from = "server"
to = "client"
app = {{ kind = "bulk" }}
"#
    )
}

fn parse(text: &str) -> Result<Scenario, String> {
    Scenario::parse(text, "rain.toml", &[]).map_err(|error| error.to_string())
}

fn run(text: &str) -> Value {
    let output = parse(text)
        .expect("it is understood")
        .run(&RunOptions::default());
    serde_json::to_value(&output.expect("it runs").summary).expect("it is JSON")
}

/// 10 Mbaud of DVB-S2 with 15 dB in clear sky: 32APSK 3/4, whose threshold of 12.73 dB plus 1.5 dB
/// is below that.
const ACM: &str = r#"acm = { modes = "dvb-s2", symbol_rate = "10 Mbaud", es_n0 = "15 dB" }"#;

const FADE: &str = r#"
schedule = [
    { at = "10 s", attenuation = "5 dB" },      # 10 dB: 16APSK 2/3, 8.97 and 1
    { at = "20 s", attenuation = "18 dB" },     # -3 dB: none
    { at = "30 s", attenuation = "17 dB" },     # -2 dB: none yet, for QPSK 1/4 needs -0.85 from there
    { at = "35 s", attenuation = "15 dB" },     # 0 dB: QPSK 1/4
    { at = "40 s", attenuation = "2 dB" },      # 13 dB: 16APSK 5/6, 11.61 and 1.5 are too much; 16APSK 4/5
    { at = "50 s", attenuation = "0 dB" },
]"#;

/// The same as a schedule that was computed by hand: efficiencies times 10 Mbaud.
const BY_HAND: &str = r#"
rate = "37032950 bit/s"
schedule = [
    { at = "10 s", rate = "26372010 bit/s" },
    { at = "20 s", rate = "4902430 bit/s" },
    { at = "40 s", rate = "31656230 bit/s" },
    { at = "50 s", rate = "37032950 bit/s" },
]
outages = [{ at = "20 s", lasts = "15 s" }]"#;

#[test]
fn a_fade_equals_a_schedule_of_its_rates() {
    let fade = run(&file(&format!("{ACM}{FADE}")));
    let by_hand = run(&file(BY_HAND));
    assert_eq!(fade["flows"], by_hand["flows"]);
    assert_eq!(fade["links"], by_hand["links"]);
    let lost = fade["links"][0]["counters"]["total"]["lost_to_outages"].as_u64();
    assert!(lost.is_some_and(|lost| lost > 0), "{lost:?}");
    // The same if packets wait for the end of the outage.
    let held = r#"sending = "held", in_flight = "arrive""#;
    let fade = file(&format!("{ACM}{FADE}")).replace("es_n0", &format!("{held}, es_n0"));
    let by_hand =
        file(&BY_HAND.replace(r#"lasts = "15 s""#, &format!(r#"lasts = "15 s", {held}"#)));
    let (fade, by_hand) = (run(&fade), run(&by_hand));
    assert_eq!(fade["flows"], by_hand["flows"]);
    assert_eq!(fade["links"], by_hand["links"]);
}

#[test]
fn a_table_of_attenuation_is_the_same_as_the_schedule() {
    let folder = std::env::temp_dir().join(format!("bentpipe-acm-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let table = "time (s),attenuation (dB)\n10,5\n20,18\n30,17\n35,15\n40,2\n50,0\n";
    std::fs::write(folder.join("rain.csv"), table).expect("a file");
    let text = file(&format!("{ACM}\ntraces = [{{ file = \"rain.csv\" }}]"));
    let path = folder.join("rain.toml");
    let parse = |text: &str| {
        let path = path.to_str().expect("a name");
        Scenario::parse(text, path, &[]).map_err(|error| error.to_string())
    };
    let scenario = parse(&text).expect("it is understood");
    let by_schedule = self::parse(&file(&format!("{ACM}{FADE}"))).expect("it is understood");
    assert_eq!(scenario.links, by_schedule.links);
    for (table, message) in [
        (
            "time (s),attenuation (dB)\n1,-3\n",
            "rain.csv:2: expected an attenuation from 0 to 200 dB, got -3",
        ),
        (
            "time (s),attenuation\n1,3\n",
            "rain.csv:1: expected a unit of attenuation",
        ),
        (
            "time (s),attenuation (dB)\n1,3\n1.0005,4\n",
            "rain.csv:3: expected 1 ms or more since the attenuation before it",
        ),
    ] {
        std::fs::write(folder.join("rain.csv"), table).expect("a file");
        let error = parse(&text).err().unwrap_or_default();
        assert!(
            error.contains("links.sky.forward.traces.file") && error.contains(message),
            "{error}"
        );
    }
    std::fs::remove_dir_all(&folder).expect("it was there");
}

#[test]
fn a_repeated_fade_starts_in_clear_sky() {
    let of = |forward: &str| run(&file(forward));
    let fade = of(&format!(
        "{ACM}\nschedule = [{{ at = \"5 s\", attenuation = \"5 dB\" }}, {{ at = \"8 s\", attenuation = \"20 dB\" }}]\nschedule_every = \"10 s\""
    ));
    let by_hand = of(
        "rate = \"37032950 bit/s\"\nschedule = [{ at = \"5 s\", rate = \"26372010 bit/s\" }, { at = \"8 s\", rate = \"4902430 bit/s\" }]\nschedule_every = \"10 s\"\noutages = [{ at = \"8 s\", lasts = \"2 s\", every = \"10 s\" }]",
    );
    assert_eq!(fade["flows"], by_hand["flows"]);
    assert_eq!(fade["links"], by_hand["links"]);
}

#[test]
fn the_mode_depends_on_margin_hysteresis_and_table() {
    let rate = |acm: &str| {
        let scenario = parse(&file(&format!(
            "acm = {{ symbol_rate = \"10 Mbaud\", {acm} }}"
        )));
        scenario.expect("it is understood").links[0]
            .forward
            .rate
            .bits_per_second()
    };
    // 256APSK 3/4 of DVB-S2X needs 19.57 dB plus margin and hysteresis.
    assert_eq!(rate(r#"es_n0 = "21.07 dB""#), 59_008_550);
    assert_eq!(rate(r#"es_n0 = "21.06 dB""#), 57_689_870);
    assert_eq!(
        rate(r#"es_n0 = "20.57 dB", hysteresis = "0 dB""#),
        59_008_550
    );
    assert_eq!(
        rate(r#"es_n0 = "19.57 dB", hysteresis = "0 dB", margin = "0 dB""#),
        59_008_550
    );
    // The last mode of DVB-S2 is 32APSK 9/10.
    assert_eq!(rate(r#"modes = "dvb-s2", es_n0 = "30 dB""#), 44_530_270);
    assert_eq!(rate(r#"es_n0 = "-1.35 dB""#), 4_348_410);
}

#[test]
fn incomplete_and_contradictory_acm_is_refused() {
    for (forward, message) in [
        (
            format!("{ACM}\nrate = \"5 Mbit/s\""),
            "rain.toml:14: links.sky.forward.rate: has no effect: acm makes the rate",
        ),
        (
            "rate = \"5 Mbit/s\"\nschedule = [{ at = \"1 s\", attenuation = \"3 dB\" }]".to_owned(),
            "rain.toml:14: links.sky.forward.schedule: has no effect without acm",
        ),
        (
            format!("{ACM}\nschedule = [{{ at = \"1 s\", rate = \"3 Mbit/s\" }}]"),
            "rain.toml:13: links.sky.forward.acm: expected no acm together with rates of schedule or traces",
        ),
        (
            format!("{ACM}\nschedule = [{{ at = \"1 s\", attenuation = \"-3 dB\" }}]"),
            r#"links.sky.forward.schedule.attenuation: expected "0 dB" or more, got "-3 dB""#,
        ),
        (
            format!(
                "{ACM}\nschedule = [{{ at = \"1 s\", attenuation = \"3 dB\" }}, {{ at = \"1.0005 s\", attenuation = \"4 dB\" }}]"
            ),
            "links.sky.forward.schedule.at: expected 1 ms or more since the attenuation before it",
        ),
        (
            ACM.replace("15 dB", "-2 dB"),
            r#"links.sky.forward.acm.es_n0: expected at least "-0.85 dB", from which the most robust mode works with margin and hysteresis, got "-2 dB""#,
        ),
        (
            ACM.replace("es_n0", "margin = \"-1 dB\", es_n0"),
            r#"links.sky.forward.acm.margin: expected "0 dB" or more, got "-1 dB""#,
        ),
        (
            ACM.replace("10 Mbaud", "10 Mbit/s"),
            r#"expected a symbol rate such as "20 Mbaud""#,
        ),
        (
            ACM.replace("15 dB", "15"),
            r#"expected decibels such as "12.5 dB""#,
        ),
        (
            ACM.replace("dvb-s2", "dvb-s3"),
            r#"expected one of "dvb-s2", "dvb-s2x""#,
        ),
    ] {
        let error = parse(&file(&forward)).err().unwrap_or_default();
        assert!(error.contains(message), "{forward}:\n{error}\n{message}");
    }
}
