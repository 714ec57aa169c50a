//! Meaningless scripts terminate without a panic.

use bentpipe_testkit::{Defines, check};
use proptest::prelude::*;

/// A line of a script, with numbers from a few significant values.
fn line() -> impl Strategy<Value = String> {
    let number = prop::sample::select(vec![
        "0",
        "1",
        "2",
        "99",
        "100",
        "1000",
        "1001",
        "2001",
        "65535",
        "4294967295",
        "2147483648",
        "50",
        "3",
        "4",
        "5",
    ]);
    let time = prop::sample::select(vec![
        "+0", "+.1", "+1", "0", "*", "+0~+1", "+100", "2.5", "+0...1", "+90000",
    ]);
    let flags = prop::sample::select(vec![
        "S", "S.", ".", "F.", "R", "R.", "P.", "-", "SEW", "U.",
    ]);
    let options = prop::sample::select(vec![
        "",
        "<mss 1000>",
        "<mss 0,sackOK,TS val 1 ecr 0,nop,wscale 14>",
        "<mss 536,nop,nop,sackOK>",
        "<sack 1:1001,nop,nop>",
        "<sack 1001:2001 3001:4001 4294967295:1>",
        "<nop,nop,TS val 5 ecr 1>",
        "<FO,nop,nop>",
        "<FO 01020304>",
        "<...>",
    ]);
    let packet = (
        prop::sample::select(vec!["<", "<", "<", ">"]),
        flags,
        number.clone(),
        prop::sample::select(vec![0_u16, 1, 100, 1000, 10_000, 65_000]),
        number.clone(),
        number.clone(),
        options,
    )
        .prop_map(|(way, flags, sequence, length, ack, window, options)| {
            let sequence: u32 = sequence.parse().unwrap_or(0);
            let length = if sequence > u32::MAX - 70_000 {
                0
            } else {
                length
            };
            let end = sequence + u32::from(length);
            let window: u32 = window.parse().unwrap_or(0);
            let window = window.min(65_535);
            format!("{way} {flags} {sequence}:{end}({length}) ack {ack} win {window} {options}")
        });
    let call = (
        prop::sample::select(vec![
            "read(4, ..., N) = N",
            "write(4, ..., N) = N",
            "write(3, ..., N) = N",
            "send(4, ..., N, MSG_MORE) = N",
            "send(4, ..., N, MSG_EOR) = N",
            "sendto(3, ..., N, MSG_FASTOPEN, ..., ...) = N",
            "close(4) = 0",
            "close(3) = 0",
            "shutdown(4, SHUT_WR) = 0",
            "accept(3, ..., ...) = 4",
            "connect(3, ..., ...) = 0",
            "listen(3, N) = 0",
            "socket(..., SOCK_STREAM, IPPROTO_TCP) = 3",
            "fcntl(4, F_SETFL, O_NONBLOCK) = 0",
            "setsockopt(4, SOL_TCP, TCP_NODELAY, [N], 4) = 0",
            "setsockopt(4, SOL_TCP, TCP_CORK, [N], 4) = 0",
            "setsockopt(4, SOL_SOCKET, SO_SNDBUF, [N], 4) = 0",
            "setsockopt(3, SOL_SOCKET, SO_RCVBUF, [N], 4) = 0",
            "setsockopt(3, SOL_TCP, TCP_MAXSEG, [N], 4) = 0",
            "setsockopt(4, SOL_TCP, TCP_USER_TIMEOUT, [N], 4) = 0",
            "poll([{fd=4, events=POLLIN|POLLOUT, revents=N}], 1, N) = 1",
            "epoll_create(1) = 5",
            "epoll_ctl(5, EPOLL_CTL_ADD, 4, {events=EPOLLIN|EPOLLET, fd=N}) = 0",
            "epoll_wait(5, {events=N, fd=4}, 1, 0) = 0",
            "ioctl(4, SIOCINQ, [N]) = 0",
        ]),
        number,
    )
        .prop_map(|(call, number)| call.replace('N', number));
    let action = prop_oneof![
        4 => packet,
        2 => call,
        1 => Just("%{ assert tcpi_snd_cwnd >= 1 and tcpi_rtt >= 0 }%".to_owned()),
        1 => Just("`sysctl -q net.ipv4.tcp_timestamps=0`".to_owned()),
    ];
    (time, action).prop_map(|(time, action)| {
        // Ranges apply to outgoing packets, and blocking to calls.
        let call = !action.starts_with(['<', '>', '%', '`']);
        let outbound = action.starts_with('>');
        match time {
            "*" | "+0~+1" if !outbound => format!("+0 {action}"),
            "+0...1" if !call => format!("+0 {action}"),
            time => format!("{time} {action}"),
        }
    })
}

const BEGINNINGS: [&str; 3] = [
    "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
     +0 < S 0:0(0) win 65535 <mss 1000,sackOK,nop,nop,nop,wscale 7>\n\
     +0 > S. 0:0(0) ack 1 <...>\n+.05 < . 1:1(0) ack 1 win 1000\n+0 accept(3, ..., ...) = 4\n\
     +0 write(4, ..., 20000) = 20000\n",
    "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n",
    "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 fcntl(3, F_SETFL, O_NONBLOCK) = 0\n\
     +0 connect(3, ..., ...) = -1 EINPROGRESS\n+0 > S 0:0(0) <...>\n",
];

/// Runs lines in sequence, each after only those earlier lines that passed, so that a script
/// continues beyond its first failed expectation.
fn run_as_far_as_it_goes(beginning: &str, lines: &[String]) {
    let mut script = format!("`defaults.sh`\n{beginning}");
    for line in lines {
        let longer = format!("{script}{line}\n");
        if check(&longer, &Defines::new()) == bentpipe_testkit::Verdict::Passed {
            script = longer;
        }
    }
}

proptest! {
    #[test]
    fn no_script_panics(
        beginning in prop::sample::select(BEGINNINGS.to_vec()),
        lines in prop::collection::vec(line(), 1..25),
    ) {
        run_as_far_as_it_goes(beginning, &lines);
    }
}
