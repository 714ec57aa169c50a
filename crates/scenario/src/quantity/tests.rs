use std::fmt::{Debug, Display};
use std::str::FromStr;

use bentpipe_types::{BitRate, Bytes, Span};
use proptest::prelude::*;

use super::*;
use crate::quantity::scalar::Scalar;

fn read<T: FromStr<Err = QuantityError>>(text: &str) -> T {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn refused<T: FromStr<Err = QuantityError> + Debug>(text: &str) -> String {
    text.parse::<T>().unwrap_err().to_string()
}

#[test]
fn rates() {
    let bits = |text| read::<Rate>(text).0.bits_per_second();
    assert_eq!(bits("1.536 Mbit/s"), 1_536_000);
    assert_eq!(bits("28.8kbit/s"), 28_800);
    assert_eq!(bits("  4000   bit/s "), 4_000);
    assert_eq!(bits("1e-3 Gbit/s"), 1_000_000);
    assert_eq!(bits("0.4 Gbit/s"), 400_000_000);
    assert_eq!(
        refused::<Rate>("10 Mbps"),
        r#"expected a rate such as "10 Mbit/s" (units: bit/s, kbit/s, Mbit/s, Gbit/s), got "10 Mbps"; did you mean "10 Mbit/s"?"#
    );
    let range = |text| format!(r#"expected a rate from 1 bit/s to 1000 Gbit/s, got "{text}""#);
    assert_eq!(refused::<Rate>("0 bit/s"), range("0 bit/s"));
    assert_eq!(refused::<Rate>("0.4 bit/s"), range("0.4 bit/s"));
    assert_eq!(refused::<Rate>("1e400 bit/s"), range("1e400 bit/s"));
}

#[test]
fn times() {
    let nanos = |text| read::<Length>(text).0.as_nanos();
    assert_eq!(nanos("250 ms"), 250_000_000);
    assert_eq!(nanos("0 s"), 0);
    assert_eq!(nanos("1.5 min"), 90_000_000_000);
    assert_eq!(nanos("72 h"), 72 * 3_600_000_000_000);
    assert_eq!(nanos("0.333333333333 s"), 333_333_333);
    assert!(refused::<Length>("72.001 h").contains("up to 72 h"));
    for wrong in [
        "", "s", "-1 s", "NaN s", "inf s", "1 e s", "1. s", ".5 s", "1 second", "1,5 s",
    ] {
        assert!(
            refused::<Length>(wrong).contains("units: ns, us, ms, s, min, h"),
            "{wrong}"
        );
    }
}

#[test]
fn sizes() {
    let bytes = |text| read::<Size>(text).0.get();
    assert_eq!(bytes("64 KiB"), 65_536);
    assert_eq!(bytes("64 kB"), 64_000);
    assert_eq!(bytes("64 KB"), 64_000);
    assert_eq!(bytes("1.5 GiB"), 1_610_612_736);
    assert!(refused::<Size>("64 kb").contains("units: B, kB"));
    assert!(refused::<Size>("2000000 GB").contains("up to"));
}

#[test]
fn counts() {
    assert_eq!(read::<QueueLimit>("100 packets"), QueueLimit::Packets(100));
    assert_eq!(read::<QueueLimit>("1 packet"), QueueLimit::Packets(1));
    assert_eq!(
        read::<QueueLimit>("64 KiB"),
        QueueLimit::Bytes(Bytes::new(65_536))
    );
    assert!(refused::<QueueLimit>("0 packets").contains("from 1 to"));
    assert!(refused::<QueueLimit>("1.5 packets").contains("a whole number"));
    assert!(refused::<QueueLimit>("10 segments").contains("\"100 packets\""));
    assert!(refused::<QueueLimit>("0 B").contains("\"100 packets\""));
    let fixed = |text| LinkQueueLimit::Fixed(read::<QueueLimit>(text));
    for text in ["100 packets", "64 KiB"] {
        assert_eq!(read::<LinkQueueLimit>(text), fixed(text));
    }
    let time = read::<LinkQueueLimit>("100 ms");
    assert_eq!(time, LinkQueueLimit::Time(Span::from_millis(100)));
    let holds = |bits| time.at(BitRate::new(bits).expect("a rate"));
    assert_eq!(holds(10_000_000), QueueLimit::Bytes(Bytes::new(125_000)));
    assert_eq!(holds(9), QueueLimit::Bytes(Bytes::new(1)));
    assert!(refused::<LinkQueueLimit>("0 ms").contains("\"100 ms\""));
    assert!(refused::<LinkQueueLimit>("0 packets").contains("from 1 to"));
    assert!(refused::<QueueLimit>("100 ms").contains("\"64 KiB\""));
    assert_eq!(read::<Window>("10 segments"), Window::Segments(10));
    assert_eq!(
        read::<Window>("10 segments").bytes(Bytes::new(1448)),
        Bytes::new(14_480)
    );
    assert_eq!(
        read::<Window>("4 KiB").bytes(Bytes::new(1448)),
        Bytes::new(4_096)
    );
    assert!(refused::<Window>("10 packets").contains("\"10 segments\""));
}

#[test]
fn words_or_times() {
    assert_eq!(read::<DelayedAck>("off"), DelayedAck::Off);
    assert_eq!(
        read::<DelayedAck>("40 ms"),
        DelayedAck::After(Span::from_millis(40))
    );
    assert!(refused::<DelayedAck>("0 ms").contains("\"off\""));
    assert!(refused::<DelayedAck>("501 ms").contains("up to 500 ms"));
    assert_eq!(read::<Interval>("every-change"), Interval::EveryChange);
    assert!(refused::<Interval>("1 ns").contains("1 us or more"));
}

#[test]
fn redundancy() {
    let vsat = read::<Redundancy>("16/15");
    assert_eq!((vsat.numerator(), vsat.denominator()), (16, 15));
    assert_eq!(read::<Redundancy>("32 / 30"), vsat);
    assert_eq!(Redundancy::from_number(1.25), Redundancy::new(5, 4));
    assert_eq!(Redundancy::from_number(1.0), Some(Redundancy::NONE));
    for wrong in [
        "15/16",
        "1/0",
        "0/0",
        "101/1",
        "16",
        "16:15",
        "+16/15",
        "99999999999/2",
    ] {
        assert!(
            refused::<Redundancy>(wrong).contains("from 1 to 100"),
            "{wrong}"
        );
    }
}

fn survives<T: FromStr<Err = QuantityError> + Display + PartialEq + Debug>(quantity: T) {
    assert_eq!(read::<T>(&quantity.to_string()), quantity, "{quantity}");
}

proptest! {
    #[test]
    fn written_quantities_read_back_unchanged(
        bits in 1..=1_000_000_000_000_u64,
        nanos in 0..=3 * 24 * 3_600_000_000_000_u64,
        bytes in 0..=1_000_000_000_000_000_u64,
        count in 1..=10_000_000_u32,
        ack_us in 1..=500_000_u64,
        (lower, upper) in (1..1_000_u32, 0..50_000_u32),
    ) {
        survives(Rate(BitRate::new(bits).unwrap()));
        survives(Length(Span::from_nanos(nanos)));
        survives(Interval::Every(Span::from_nanos(nanos + 1_000).min(Span::from_secs(259_200))));
        survives(Size(Bytes::new(bytes)));
        survives(QueueLimit::Packets(count));
        survives(QueueLimit::Bytes(Bytes::new(bytes + 1).min(Bytes::new(1_000_000_000_000_000))));
        survives(LinkQueueLimit::Fixed(QueueLimit::Packets(count)));
        survives(LinkQueueLimit::Time(Span::from_nanos(nanos + 1).min(Span::from_secs(259_200))));
        survives(Window::Segments(count));
        survives(DelayedAck::After(Span::from_micros(ack_us)));
        survives(Redundancy::new(lower + upper.min(99 * lower), lower).unwrap());
    }

    #[test]
    fn no_string_panics(text in ".{0,40}", number in "[0-9.eE+-]{0,12}", unit in "[a-zA-Z/ ]{0,8}") {
        for text in [&text, &format!("{number}{unit}")] {
            let _ = text.parse::<Rate>();
            let _ = text.parse::<Length>();
            let _ = text.parse::<Size>();
            let _ = text.parse::<QueueLimit>();
            let _ = text.parse::<LinkQueueLimit>();
            let _ = text.parse::<Window>();
            let _ = text.parse::<DelayedAck>();
            let _ = text.parse::<Interval>();
            let _ = text.parse::<Redundancy>();
        }
    }
}
