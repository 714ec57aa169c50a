use super::*;
use proptest::prelude::*;

fn names() -> Names {
    [
        ("tcpi_snd_cwnd", 7_u64),
        ("tcpi_rtt", 20_000),
        ("TCP_CA_Open", 0),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), Value::from(value)))
    .collect()
}

fn run_code(code: &str) -> Result<(), Fault> {
    run(code, &names(), &mut Names::new())
}

#[test]
fn expressions_of_public_scripts_hold() {
    for code in [
        "assert tcpi_snd_cwnd == 7, tcpi_snd_cwnd",
        "\nassert 15000 <= tcpi_rtt <= 25000, 'rtt=%d' % tcpi_rtt\n",
        "print(tcpi_snd_cwnd); cwnd = 6; cwnd += 1; assert tcpi_snd_cwnd == cwnd, cwnd",
        "assert tcpi_rtt != 0, tcpi_rtt;\\\n   assert 0 == TCP_CA_Open, 1;\\\n",
        "# a comment\nassert True  # another",
        "assert (tcpi_snd_cwnd & 3) == 3 and not tcpi_rtt < 5 or nonsense(1)",
        "assert -7 // 2 == -4 and -7 % 3 == 2 and 2 ** 10 == 1024 and 7 / 2 == 3.5",
        "assert max(1, 5, 3) == 5 and abs(-2) == 2 and int(2.9) == 2",
        "assert (1 +\n 1) == 2",
        "assert 0x10 << 2 == 64",
    ] {
        assert_eq!(run_code(code), Ok(()), "{code}");
    }
}

#[test]
fn a_failed_assertion_reports_the_actual_value() {
    let fault = run_code("x = 1\nassert tcpi_snd_cwnd == 10, tcpi_snd_cwnd");
    let expected = Fault::Assertion {
        line: 1,
        expected: "tcpi_snd_cwnd == 10".to_owned(),
        got: "tcpi_snd_cwnd is 7".to_owned(),
    };
    assert_eq!(fault, Err(expected));
    let Err(Fault::Assertion { got, .. }) = run_code("assert tcpi_rtt < 5, 'rtt=%d' % tcpi_rtt")
    else {
        panic!("it holds");
    };
    assert_eq!(got, "tcpi_rtt is 20000, rtt=20000");
}

#[test]
fn unknown_names_are_reported() {
    for (code, part) in [
        ("import os", "import"),
        ("assert tcpi_nonsense == 1", "tcpi_nonsense"),
        ("assert sorted(1)", "sorted"),
    ] {
        let Err(Fault::Unsupported { message, .. }) = run_code(code) else {
            panic!("{code} is known");
        };
        assert!(message.contains(part), "{message}");
    }
    for code in [
        "assert 1 < 'a'",
        "assert 1 // 0",
        "x +=",
        "assert (1",
        "1 1",
        "'",
    ] {
        assert!(matches!(run_code(code), Err(Fault::Error { .. })), "{code}");
    }
}

#[test]
fn deep_nesting_is_an_error() {
    for code in [
        "(".repeat(100_000),
        format!("assert {}1", "2 ** ".repeat(100_000)),
        format!("assert {}1 == 1", "-".repeat(100_000)),
        format!("assert {}1 == 1", "not ".repeat(100_000)),
        format!("assert 1{}", " + 1".repeat(100_000)),
    ] {
        let _ = run_code(&code);
    }
}

proptest! {
    #[test]
    fn arbitrary_text_does_not_panic(code in "\\PC{0,80}") {
        let _ = run_code(&code);
    }

    #[test]
    fn random_python_tokens_do_not_panic(
        words in prop::collection::vec(prop::sample::select(vec![
            "assert", "x", "=", "+=", "(", ")", ",", "1", "170141183460469231731687303715884105727",
            "-", "**", "%", "'%d'", "//", "<<", ">>", "not", "and", "or", "==", "<", "2.5", "~",
            "\n", ";", "abs", "min", "int", "1e300", "0x", "\\\n", "#", "tcpi_rtt",
        ]), 0..30)
    ) {
        let _ = run_code(&words.join(" "));
        let _ = run_code(&words.concat());
    }
}
