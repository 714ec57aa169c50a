//! Tests: the contents of each format, the line named in each error, and arbitrary input.

use bentpipe_link::{LossRates, RateCourse};
use bentpipe_types::{Span, Time};
use proptest::prelude::*;

use crate::changes::schema::{IrttColumn, TraceFormat};
use crate::quantity::time::LONGEST_DELAY;
use crate::traces::formats::parse;
use crate::traces::trace::{Reading, Trace, TraceError};

fn reading(format: TraceFormat) -> Reading {
    Reading {
        format,
        column: None,
        every: None,
    }
}

fn read(format: TraceFormat, text: &str) -> Trace {
    parse(text, reading(format)).expect("a sound file")
}

fn refused(format: TraceFormat, text: &str) -> (Option<usize>, String) {
    let wrong = parse(text, reading(format)).expect_err("a file that is not");
    (wrong.line, wrong.message)
}

fn irtt(column: IrttColumn, text: &str) -> Result<Trace, TraceError> {
    let column = Some(column);
    parse(
        text,
        Reading {
            column,
            ..reading(TraceFormat::Irtt)
        },
    )
}

fn ms(milliseconds: u64) -> Time {
    Time::ZERO + Span::from_millis(milliseconds)
}

fn delay_ms(trace: &Trace, at_ms: u64) -> f64 {
    let delay = trace
        .delay
        .as_ref()
        .and_then(|delay| delay.value(ms(at_ms)));
    delay.expect("from the start").as_millis_f64()
}

fn loss(trace: &Trace, at: Time) -> f64 {
    let losses = trace.losses.as_ref().expect("it says something of losses");
    losses.at(at).0.map_or(0.0, |rates| rates.packet)
}

#[test]
fn a_mahimahi_trace_is_a_list_of_milliseconds() {
    let trace = read(TraceFormat::Mahimahi, "0\n2\n2\n5\r\n");
    let Some(RateCourse::Opportunities(of)) = trace.rate else {
        unreachable!("that is what it is");
    };
    assert_eq!((of.count(), of.period()), (4, Span::from_millis(5)));
    let at = |text| refused(TraceFormat::Mahimahi, text);
    assert_eq!(
        at("1\n2\nthree\n"),
        (
            Some(3),
            r#"expected a time in whole milliseconds up to 72 h, got "three""#.to_owned()
        )
    );
    assert_eq!(
        at("1\n\n2\n"),
        (
            Some(2),
            r#"expected a time in whole milliseconds up to 72 h, got """#.to_owned()
        )
    );
    assert_eq!(
        at("1\n7\n6\n"),
        (
            Some(3),
            "expected 7 ms or later, as on the line before, got 6".to_owned()
        )
    );
    assert_eq!(at("0\n0\n").0, None);
    assert_eq!(at("").0, None);
    assert_eq!(at("1.5\n").0, Some(1));
    assert_eq!(at("-1\n").0, Some(1));
    assert_eq!(at("99999999999999999999\n").0, Some(1));
}

#[test]
fn leoreplayers_lines_are_slots_of_ten_milliseconds() {
    let trace = read(TraceFormat::LeoReplayer, "30\n30\n45\n140\n");
    let delays: Vec<f64> = (0..10)
        .map(|slot| delay_ms(&trace, 10 * slot + 9))
        .collect();
    let expected = [30.0, 30.0, 45.0, 140.0];
    assert_eq!(delays[..4], expected);
    assert_eq!(delays[4..8], expected);
    let at = |text| refused(TraceFormat::LeoReplayer, text);
    assert_eq!(at("30\nx\n").0, Some(2));
    assert_eq!(
        at("30\n-1\n"),
        (
            Some(2),
            "expected a delay from 0 ms to 1 h, got -1 ms".to_owned()
        )
    );
    assert_eq!(at("nan\n").0, Some(1));
    assert_eq!(at("").0, None);
}

#[test]
fn opensand_delays_are_interpolated_linearly() {
    // Out of order, and 20 s twice: OpenSAND keeps the lines in a map.
    let text = "# time delay\n\n20 300\n0 100\n10 200\n20 250\n";
    let trace = read(TraceFormat::OpenSand, text);
    for (at_ms, expected) in [
        (0, 100.0),
        (5_000, 150.0),
        (10_000, 200.0),
        (15_000, 225.0),
        (25_000, 150.0),
    ] {
        assert_eq!(delay_ms(&trace, at_ms), expected, "{at_ms} ms");
    }
    // The first delay also holds before the first line; a single line holds for ever.
    let late = read(TraceFormat::OpenSand, "4 80\n6 100\n");
    assert_eq!(
        (delay_ms(&late, 2_000), delay_ms(&late, 5_000)),
        (80.0, 90.0)
    );
    assert_eq!(
        delay_ms(&read(TraceFormat::OpenSand, "0 7\n"), 1_000_000),
        7.0
    );
    let at = |text| refused(TraceFormat::OpenSand, text);
    assert_eq!(at("0 1\n1\n").0, Some(2));
    assert_eq!(at("0 1\n1 2 3\n").0, Some(2));
    assert_eq!(at("0 1\nx 2\n").0, Some(2));
    assert_eq!(at("0 1\n-1 2\n").0, Some(2));
    assert_eq!(at("# nothing\n").0, None);
}

const IRTT: &str = "timestamp,rtt,uplink,downlink
1705744800616897349,0,0,-1
1705744800626565141,120.126123,72.439368,47.68675
1705744800636737402,109.976237,62.295097,47.681199
1705744800646307744,-1,0,0
1705744800656691526,90.032887,42.357473,47.67541
";

#[test]
fn an_irtt_log_has_both_directions() {
    let down = irtt(IrttColumn::Downlink, IRTT).expect("sound");
    let up = irtt(IrttColumn::Uplink, IRTT).expect("sound");
    let sent = [0, 9_667_792, 19_840_053, 29_410_395, 39_794_177].map(Time::from_nanos);
    // Unknown delays at the start take the first known one; later ones the previous one.
    let delays = |trace: &Trace| {
        let delay = trace.delay.clone().expect("there is one");
        sent.map(|at| delay.value(at).expect("from the start").as_nanos())
    };
    assert_eq!(
        delays(&down),
        [47_686_750, 47_686_750, 47_681_199, 47_681_199, 47_675_410]
    );
    assert_eq!(
        delays(&up),
        [72_439_368, 72_439_368, 62_295_097, 62_295_097, 42_357_473]
    );
    // A probe with an unknown direction of loss counts as lost on the uplink.
    assert_eq!(sent.map(|at| loss(&down, at)), [1.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(sent.map(|at| loss(&up, at)), [0.0, 0.0, 0.0, 1.0, 0.0]);
    // The trace repeats an average interval after the last line.
    let period = Span::from_nanos(39_794_177 + 39_794_177 / 4);
    assert_eq!(down.delay.and_then(|delay| delay.period()), Some(period));
}

#[test]
fn invalid_irtt_logs_are_refused() {
    let at = |text: &str| irtt(IrttColumn::Uplink, text).expect_err("not sound").line;
    assert_eq!(at("timestamp,rtt\n1,2\n"), Some(1));
    let with = |row: &str| at(&format!("{IRTT}{row}\n"));
    assert_eq!(with("1705744800656691526,90,42,47"), Some(7));
    assert_eq!(with("1705744800756691526,90,42"), Some(7));
    assert_eq!(with("1705744800756691526,90,-2,47"), Some(7));
    assert_eq!(with("1705744800756691526,90,inf,47"), Some(7));
    assert_eq!(with("soon,90,1,47"), Some(7));
    assert_eq!(with("2705744800756691526,90,1,47"), Some(7));
    assert_eq!(at("timestamp,rtt,uplink,downlink\n5,-1,0,0\n"), None);
    assert_eq!(refused(TraceFormat::Irtt, IRTT).0, None);
}

#[test]
fn a_table_has_units_in_its_first_line() {
    let text = "# a day of rain\ntime (s),rate (Mbit/s),delay (ms),packet_loss_rate\n0,20,270,0\n60,5,,0.01\n120.5,,280,\n";
    let trace = read(TraceFormat::Csv, text);
    let Some(RateCourse::Steps(rate)) = &trace.rate else {
        unreachable!("rates in steps");
    };
    let s = |seconds: u64| ms(1_000 * seconds);
    assert_eq!(rate.at(s(59)).0, Some(20_000_000));
    assert_eq!(rate.at(s(500)), (Some(5_000_000), None));
    assert_eq!(
        (delay_ms(&trace, 119_000), delay_ms(&trace, 121_000)),
        (270.0, 280.0)
    );
    assert_eq!((loss(&trace, s(59)), loss(&trace, s(200))), (0.0, 0.01));
    // The same table with other separators and units.
    let other = "\u{feff}time_ms;rate[kbps];delay_s;packet_loss_rate (%)\r\n0;20000;0.27;0\r\n60000;5000;;1\r\n120500;;0.28;\r\n";
    assert_eq!(read(TraceFormat::Csv, other), trace);
    let bits = read(
        TraceFormat::Csv,
        "time (s)\tbit_error_rate\tpacket_loss_rate\n1\t1e-6\t0.5\n2\t\t0\n",
    );
    let losses = bits.losses.expect("there are some");
    let rates = |packet, bit| LossRates { packet, bit };
    assert_eq!(
        losses.steps().iter().map(|step| step.1).collect::<Vec<_>>(),
        [rates(0.5, 1e-6), rates(0.0, 1e-6)]
    );
}

#[test]
fn invalid_tables_are_refused() {
    let at = |text: &str| refused(TraceFormat::Csv, text);
    let head = "time (s),rate (Mbit/s)\n";
    let row = |row: &str| at(&format!("{head}{row}\n"));
    assert_eq!(
        at("time (s),rte (Mbit/s)\n").1,
        r#"no column is called "rte (Mbit/s)"; did you mean "rate"?"#
    );
    assert_eq!(
        at("time,delay (ms)\n0,1\n").1,
        r#"expected a unit of time such as "time (ns)", one of ns, us, ms, s, min, h, got "time""#
    );
    assert_eq!(at("rate (Mbit/s)\n1\n").0, Some(1));
    assert_eq!(
        at("time (s),delay (ms),delay (s)\n").1,
        "expected one column of delay, got two"
    );
    assert_eq!(row("0,1,2").1, "expected 2 fields, got 3");
    assert_eq!(row("0,fast").1, r#"expected a number, got "fast""#);
    assert_eq!(
        row("0,-1").1,
        "expected a rate from 0 to 1000 Gbit/s, got -1000000"
    );
    assert_eq!(row("0,1\n0,2").0, Some(3));
    assert_eq!(row(",1").1, "expected a time, got nothing");
    assert_eq!(row("1e9,1").0, Some(2));
    assert_eq!(
        row("0,1\n0.00001,2").1,
        "expected steps of the rate 100 us apart or more"
    );
    assert_eq!(
        at("time (s),packet_loss_rate\n0,1.5\n").1,
        "expected a probability from 0 to 1, got 1.5"
    );
    assert_eq!(at(head).0, None);
    assert_eq!(at("").0, None);
    let every = Some(Span::from_secs(10));
    let reading = Reading {
        every,
        ..reading(TraceFormat::Csv)
    };
    assert!(parse(&format!("{head}0,1\n10,2\n"), reading).is_err());
    assert!(parse(&format!("{head}0,1\n9,2\n"), reading).is_ok());
}

/// Generates text that resembles what a reader expects.
fn nearly() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        6 => (0_u64..5_000).prop_map(|n| n.to_string()),
        2 => any::<f64>().prop_map(|n| n.to_string()),
        1 => any::<i64>().prop_map(|n| n.to_string()),
        1 => prop::sample::select(vec![
            "", " ", "-1", "nan", "inf", "1e400", "#", "time (s)", "rate (Mbit/s)", "delay (ms)",
            "packet_loss_rate", "bit_error_rate (%)", "timestamp", "rtt", "uplink", "downlink",
            "1705744800616897349", "\u{feff}", "\u{0}", "time(", "rate)(", "_", "delay_",
        ]).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    let separator = prop::sample::select(vec![",", " ", "\t", ";", "\n", "\r\n"]);
    let head = prop::sample::select(vec![
        "",
        "time (s),rate (Mbit/s),delay (ms),packet_loss_rate\n",
        "timestamp,rtt,uplink,downlink\n",
    ]);
    (head, prop::collection::vec((word, separator), 0..80)).prop_map(|(head, words)| {
        let text: String = words
            .iter()
            .flat_map(|(word, end)| [word.as_str(), end])
            .collect();
        format!("{head}{text}")
    })
}

proptest! {
    /// A reader returns a trace that can be queried at any time, or an error of one line.
    #[test]
    fn readers_handle_arbitrary_text(
        text in nearly(),
        column in prop::option::of(any::<bool>()),
        every in prop::option::of(1_u64..10_000_000_000),
        times in prop::collection::vec(any::<u64>(), 10),
    ) {
        for format in TraceFormat::ALL {
            let column = column.map(|up| if up { IrttColumn::Uplink } else { IrttColumn::Downlink });
            let reading = Reading { format: *format, column, every: every.map(Span::from_nanos) };
            match parse(&text, reading) {
                Ok(trace) => {
                    prop_assert!(trace != Trace::default());
                    for time in &times {
                        let now = Time::from_nanos(*time);
                        if let Some(delay) = &trace.delay {
                            prop_assert!(delay.value(now).is_none_or(|delay| delay <= LONGEST_DELAY));
                        }
                        if let Some(losses) = &trace.losses {
                            let rates = losses.at(now).0.unwrap_or_default();
                            prop_assert!((0.0..=1.0).contains(&rates.packet) && (0.0..=1.0).contains(&rates.bit));
                        }
                    }
                }
                Err(wrong) => {
                    prop_assert!(!wrong.message.contains('\n'), "{}", wrong.message);
                    prop_assert!(wrong.line.is_none_or(|line| (1..=text.lines().count().max(1)).contains(&line)));
                }
            }
        }
    }
}
