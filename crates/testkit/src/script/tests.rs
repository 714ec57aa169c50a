use super::*;
use proptest::prelude::*;

fn script(source: &str) -> Script {
    parse(source, &Defines::new()).unwrap_or_else(|e| panic!("{e}"))
}

fn packet(source: &str) -> PacketSpec {
    let script = script(&format!("+0 {source}"));
    match &script.events[..] {
        [
            Event {
                action: Action::Packet(packet),
                ..
            },
        ] => packet.clone(),
        other => panic!("{other:?}"),
    }
}

fn fails(source: &str) -> ParseError {
    parse(source, &Defines::new()).expect_err(source)
}

#[test]
fn times() {
    const MS: u64 = 1_000_000;
    for (source, time) in [
        ("0 close(3) = 0", When::Absolute(0)),
        ("+.1 close(3) = 0", When::Relative(100 * MS)),
        ("+1 close(3) = 0", When::Relative(1000 * MS)),
        ("1.000001 close(3) = 0", When::Absolute(1_000_001_000)),
        ("* > . 1:1(0) ack 1", When::Any),
        (
            "+.3~+.310 > . 1:1(0) ack 1",
            When::RelativeRange(300 * MS, 310 * MS),
        ),
        (
            ".3~.31 > . 1:1(0) ack 1",
            When::AbsoluteRange(300 * MS, 310 * MS),
        ),
    ] {
        assert_eq!(script(source).events[0].time, time, "{source}");
    }
    for source in [
        "-1 close(3) = 0",
        "+.3~.31 > . 1:1(0)",
        "+.4~+.3 > . 1:1(0)",
        "* < . 1:1(0)",
        "+0~+1 close(3) = 0",
        "99999999999 close(3) = 0",
    ] {
        fails(source);
    }
}

#[test]
fn packets() {
    let p = packet("> S. 0:0(0) ack 1 <mss 1460,nop,nop,sackOK,nop,wscale 8>");
    assert_eq!(p.flags, Flags::SYN.with(Flags::ACK));
    assert_eq!(p.acknowledgment, 1);
    assert_eq!(p.options.map(|o| o.len()), Some(6));
    assert_eq!(packet("> . 1:1(0) ack 1 <...>").options, None);
    let p = packet("< [ce] FPE. 1:1001(1000) ack 7 win 257 <sack 1:2 3:4,nop,nop>");
    assert_eq!(p.ecn, EcnSpec::Is(bentpipe_types::Ecn::Congestion));
    assert_eq!((p.sequence, p.length, p.window), (1, 1000, Some(257)));
    let sack = OptionSpec::Sack(vec![(1, 2), (3, 4)]);
    assert_eq!(
        p.options,
        Some(vec![sack, OptionSpec::Nop, OptionSpec::Nop])
    );
    assert_eq!(packet("< U. 1:2(1) ack 1 urg 5").urgent, 5);
    assert_eq!(packet("< - 1:2(1) win 5").flags, Flags::NONE);
    let p = packet("> S 0:0(0) <mss 1460,sackOK,TS val 100 ecr 0,nop,wscale 8,FO 0102,nop>");
    assert!(
        p.options
            .is_some_and(|o| o.contains(&OptionSpec::FastOpen(vec![1, 2])))
    );
    for source in [
        "< . 1:3(1)",
        "< X 1:1(0)",
        "< . 1:1(0) ack",
        "< . 1:1(0) <...>",
    ] {
        fails(&format!("+0 {source}"));
    }
}

#[test]
fn calls() {
    let script = script(
        "+.1...0.200 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)\n\
         +0 sendmsg(4, {msg_name(...)=..., msg_iov(1)=[{..., 40}], msg_flags=0}, MSG_MORE|A) = 40\n\
         +0 poll([{fd=4, events=POLLIN, revents=POLLIN}], 1, 0x3) = 1",
    );
    let call = |n: usize| match &script.events[n].action {
        Action::Call(call) => call,
        other => panic!("{other:?}"),
    };
    assert_eq!(call(0).until, Some(200_000_000));
    assert_eq!(call(0).errno.as_deref(), Some("EINPROGRESS"));
    assert!(matches!(&call(1).arguments[2], Expression::Or(all) if all.len() == 2));
    assert!(matches!(&call(2).arguments[0], Expression::List(all) if all.len() == 1));
}

#[test]
fn the_rest_of_a_script() {
    let script = script(
        "// a comment\n--tolerance_usecs=10000\n--ip_version=ipv6\n--define=N=7\n--local_ip=fd::1\n\
         `defaults.sh`\n/* another\n one */ +0 close(N) = 0\n+0 %{ assert 1 }%\n\
         +0 < icmp unreachable frag_needed mtu 800\n+0 `true`\n`cleanup`",
    );
    assert_eq!(script.options.len(), 3);
    assert_eq!(script.options[2].value.as_deref(), Some("fd::1"));
    assert_eq!(script.commands.len(), 2);
    assert_eq!(script.events[0].line, 8);
    let [_, code, icmp, command] = &script.events[..] else {
        panic!("{:?}", script.events);
    };
    assert_eq!(code.action, Action::Code("assert 1".to_owned()));
    let too_big = IcmpSpec {
        error: IcmpError::TooBig { mtu: 800 },
        sequence: 0,
    };
    assert_eq!(icmp.action, Action::Icmp(too_big));
    assert_eq!(command.action, Action::Command("true".to_owned()));
    let Action::Call(close) = &script.events[0].action else {
        panic!("{:?}", script.events[0]);
    };
    assert_eq!(close.arguments, [Expression::Integer(7)]);
}

#[test]
fn icmp_as_packetdrill_writes_it() {
    let action = |text: &str| {
        let mut parsed = script(text);
        parsed.events.remove(0).action
    };
    for (text, error, sequence) in [
        ("unreachable", IcmpError::NetworkUnreachable, 0),
        (
            "unreachable port_unreachable [7:9(2)]",
            IcmpError::PortUnreachable,
            7,
        ),
        (
            "packet_too_big mtu 1400 [1:2(1)]",
            IcmpError::TooBig { mtu: 1400 },
            1,
        ),
        ("time_exceeded", IcmpError::TimeExceeded, 0),
    ] {
        let expected = Action::Icmp(IcmpSpec { error, sequence });
        assert_eq!(action(&format!("+0 < icmp {text}")), expected);
    }
    for text in [
        "< icmp echo_request id 7",
        "< icmp source_quench",
        "< icmp unreachable code_77",
        "< icmp unreachable port_unreachable [udp (7)]",
        "> icmp unreachable port_unreachable",
    ] {
        assert!(
            matches!(action(&format!("+0 {text}")), Action::Unsupported(_)),
            "{text}"
        );
    }
    assert_eq!(
        fails("\n+0 < icmp unreachable port_unreachable mtu 7").line,
        2
    );
}

#[test]
fn errors_have_lines() {
    assert_eq!(fails("\n\n+0 close(3 = 0").line, 3);
    assert_eq!(fails("+0 close(3) = 0\n%{").line, 2);
    assert_eq!(fails("+0 `").line, 1);
}

#[test]
fn size_and_depth_are_bounded() {
    const DEEP: &str = "nested too deeply";
    for (source, message) in [
        ("[".repeat(100_000), "expected a time, found '['"),
        (format!("+0 f({}", "[".repeat(100_000)), DEEP),
        (format!("+0 f({}", "g(".repeat(100_000)), DEEP),
        (format!("+0 f({}", "a=".repeat(100_000)), DEEP),
        (
            " ".repeat(LONGEST_SCRIPT + 1),
            "the script is longer than 4 MiB",
        ),
    ] {
        let error = fails(&source);
        assert_eq!((error.line, error.message.as_str()), (1, message));
    }
    // Alternatives are a list, however many they are.
    let flat = script(&format!("+0 f(1{}) = 0", "|1".repeat(100_000)));
    let Action::Call(call) = &flat.events[0].action else {
        panic!("a call");
    };
    assert!(matches!(&call.arguments[0], Expression::Or(all) if all.len() == 100_001));
}

proptest! {
    #[test]
    fn arbitrary_text_does_not_panic(source in "\\PC{0,200}") {
        let _ = parse(&source, &Defines::new());
    }

    #[test]
    fn random_script_tokens_do_not_panic(
        words in prop::collection::vec(prop::sample::select(vec![
            "+", "0", ".1", "~", "*", "<", ">", "S", ".", "1:2(1)", "ack", "win", "urg", "...",
            "<mss 1460", "sack 1:2", ",", "wscale", "TS val", "ecr", "FO", "0102", "é", "(", ")",
            "close", "=", "-1", "EAGAIN", "{", "}", "[", "]", "|", "fd=", "%{", "}%", "`", "\"",
            "--define=A=1", "--x", "\n", "//", "/*", "*/", "[ect0]", "icmp", "0x", "99999999999",
        ]), 0..40)
    ) {
        let _ = parse(&words.join(" "), &Defines::new());
        let _ = parse(&words.concat(), &Defines::new());
    }
}
