//! Consistency of the network: names and combinations.

use super::check;

#[test]
fn names() {
    check(&[
        (
            r#"["server", "hub"]"#,
            r#"["sever", "hub"]"#,
            r#"geo.toml:16: links.satellite.between: no node is named "sever"; did you mean "server"?"#,
        ),
        (
            r#"["server", "hub"]"#,
            "[\n  \"server\",\n  \"moon\",\n]",
            r#"geo.toml:18: links.satellite.between: no node is named "moon"; known: server, client, hub"#,
        ),
        (
            r#"["server", "hub"]"#,
            r#"["server"]"#,
            r#"geo.toml:16: links.satellite.between: expected two nodes such as ["server", "client"], got an array of 1"#,
        ),
        (
            r#"["server", "hub"]"#,
            r#"["hub", "hub"]"#,
            r#"geo.toml:16: links.satellite.between: expected two different nodes, got "hub" twice"#,
        ),
        (
            r#"["hub", "client"]"#,
            r#"["hub", "client-4"]"#,
            r#"geo.toml:20: links.access.between: no node is named "client-4": there are client-1 to client-3"#,
        ),
        (
            r#"["hub", "client"]"#,
            r#"["client-1", "client"]"#,
            r#"geo.toml:20: links.access.between: expected two different nodes, got "client-1" twice"#,
        ),
        (
            r#"to = "client""#,
            r#"to = "cleint""#,
            r#"geo.toml:27: flows.download.to: no node is named "cleint"; did you mean "client"?"#,
        ),
        (
            r#"to = "client""#,
            r#"to = "hub""#,
            r#"geo.toml:27: flows.download.to: expected a host, got "hub", a gateway: flows begin and end at hosts"#,
        ),
        (
            r#"to = "client""#,
            r#"to = "server""#,
            r#"geo.toml:27: flows.download.to: expected another host than from, got "server""#,
        ),
        (
            r#"["hub", "client"]"#,
            r#"["hub", "client-1"]"#,
            r#"geo.toml:27: flows.download.to: no route from "server" to "client-2": links and gateways do not join them"#,
        ),
        (
            "[gateways.hub]",
            "[gateways.server]\n[gateways.hub]",
            "geo.toml:12: gateways.server: expected another name: a host is called this, too",
        ),
        (
            "[gateways.hub]",
            "[gateways.client-2]\n[gateways.hub]",
            "geo.toml:12: gateways.client-2: expected another name: count = 3 makes client-1 to client-3",
        ),
        (
            "[hosts.client]",
            "[hosts.other]\ncount = 2\n[links.odd]\nbetween = [\"other\", \"client\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 s\"\n[hosts.client]",
            "geo.toml:12: links.odd.between: expected the same count at both ends, got 2 other and 3 client",
        ),
        (
            "satellite.forward.queue",
            "satelite.forward.queue",
            r#"geo.toml:34: probes.series: no link is named "satelite"; did you mean "satellite"?"#,
        ),
        (
            "satellite.forward.queue",
            "satellite.foward.queue",
            r#"geo.toml:34: probes.series: no direction of a link is "foward"; did you mean "forward"?"#,
        ),
        (
            "satellite.forward.queue",
            "satellite.queue",
            r#"geo.toml:34: probes.series: "satellite" is a link: expected "satellite.forward.queue", got "satellite.queue""#,
        ),
        (
            "download.congestion_window",
            "download.congestion-windw",
            r#"geo.toml:33: probes.series: no series of a flow is "congestion-windw"; did you mean "congestion_window"?"#,
        ),
        (
            "download.congestion_window",
            "everything",
            r#"geo.toml:33: probes.series: expected a series such as "download.goodput" or "satellite.forward.queue", got "everything""#,
        ),
        (
            "\"download.congestion_window\",",
            "\"download.goodput\", \"download-2.goodput\",",
            r#"geo.toml:33: probes.series: "download-2.goodput" stands twice in the array"#,
        ),
    ]);
}

#[test]
fn sense() {
    check(&[
        (
            r#"start = "1 s""#,
            r#"start = "20 s""#,
            r#"geo.toml:28: flows.download.start: expected before the end (duration = "20 s"), got "20 s""#,
        ),
        (
            r#"start = "1 s""#,
            r#"spacing = "10 s""#,
            r#"geo.toml:28: flows.download.spacing: expected the last of them to start before the end (duration = "20 s"), not at "20 s""#,
        ),
        (
            "count = 3",
            "count = 0",
            "geo.toml:10: hosts.client.count: expected 1 to 60000 hosts, got 0",
        ),
        (
            "count = 3",
            "count = -1",
            "geo.toml:10: hosts.client.count: expected 1 to 60000 hosts, got -1",
        ),
        (
            r#"start = "1 s""#,
            "count = -2",
            "geo.toml:28: flows.download.count: expected none: the hosts of one of its ends have a count, and make a flow each",
        ),
        (
            "count = 3",
            "count = 1e3",
            "geo.toml:10: hosts.client.count: expected a whole number, got 1000.0",
        ),
        (
            "count = 3",
            "count = 4294967295",
            "geo.toml:10: hosts.client.count: expected 1 to 60000 hosts, got 4294967295 (users may share a host and its link: give the count to their flow; or simulate a tenth of them at a tenth of the rate)",
        ),
        (
            "count = 3",
            "count = 59_000",
            "geo.toml:15: links: expected at most 60000 nodes and link directions together, got 177004 (users may share a host and its link: give the count to their flow; or simulate a tenth of them at a tenth of the rate)",
        ),
        (
            "{ packet_loss_rate = 0.001 }",
            "{ packet_loss_rate = 0.001, bit_error_rate = 1e-7 }",
            "geo.toml:23: links.access.errors.packet_loss_rate: expected bit_error_rate or packet_loss_rate, got both",
        ),
        (
            "{ packet_loss_rate = 0.001 }",
            "{ lost_packets = [20, 21] }",
            "geo.toml:23: links.access.errors.lost_packets: expected in forward or return: each direction counts its own packets",
        ),
        (
            "queue = {",
            "errors = { lost_packets = [0] }, queue = {",
            "geo.toml:17: links.satellite.forward.errors.lost_packets: expected numbers from 1: the first packet is 1",
        ),
        (
            "[links.access]",
            "rate = \"1 Mbit/s\"\n[links.access]",
            "geo.toml:19: links.satellite.rate: has no effect: forward.rate and return.rate overrule it",
        ),
        (
            "1448 B",
            "66000 B",
            r#"geo.toml:8: hosts.server.tcp.mss: expected "64 B" to "65000 B", got "66 kB""#,
        ),
        (
            "mss = \"1448 B\"",
            "send_memory = { initial = \"1 MiB\", maximum = \"64 KiB\" }",
            r#"geo.toml:8: hosts.server.tcp.send_memory.maximum: expected at least "1 MiB", got "64 KiB""#,
        ),
        (
            "mss = \"1448 B\"",
            "receive_buffer = \"1 MiB\"\nreceive_memory = { maximum = \"64 KiB\" }",
            r#"geo.toml:9: hosts.server.tcp.receive_memory.maximum: has no effect: the buffer is "1 MiB""#,
        ),
        (
            "mss = \"1448 B\"",
            "receive_memory = { initial = \"1 B\" }",
            r#"geo.toml:8: hosts.server.tcp.receive_memory.initial: expected at least "2304 B", got "1 B""#,
        ),
        (
            "mss = \"1448 B\"",
            "send_memory = { maximum = \"2 GiB\" }",
            r#"geo.toml:8: hosts.server.tcp.send_memory.maximum: expected at most "1 GiB", got "2 GiB""#,
        ),
        (
            "mss = \"1448 B\"",
            "send_buffer = \"1 kB\"",
            r#"geo.toml:8: hosts.server.tcp.send_buffer: expected at least one segment ("1448 B"), got "1 kB""#,
        ),
        (
            "mss = \"1448 B\"",
            "window_scaling = false\nreceive_buffer = \"64 KiB\"",
            r#"geo.toml:9: hosts.server.tcp.receive_buffer: expected at most "65535 B" without window_scaling, got "64 KiB""#,
        ),
        (
            "mss = \"1448 B\"",
            "window_scaling = false\nwindow_scale = 3",
            "geo.toml:9: hosts.server.tcp.window_scale: has no effect: window_scaling is false",
        ),
        (
            "mss = \"1448 B\"",
            "window_scale = 15",
            "geo.toml:8: hosts.server.tcp.window_scale: expected at most 14, got 15",
        ),
        (
            "mss = \"1448 B\"",
            "window_scale = 1\nreceive_buffer = \"195 kB\"",
            r#"geo.toml:9: hosts.server.tcp.receive_buffer: expected at most "131070 B" with window_scale = 1, got "195 kB""#,
        ),
        (
            "mss = \"1448 B\"",
            "window_scale = 14\nreceive_buffer = \"16 KiB\"",
            "geo.toml:8: hosts.server.tcp.window_scale: expected at most 13, so that two units fit into receive_buffer",
        ),
        (
            "mss = \"1448 B\"",
            "initial_rto = \"3 min\"",
            r#"geo.toml:8: hosts.server.tcp.initial_rto: expected at most maximum_rto ("2 min"), got "3 min""#,
        ),
        (
            "mss = \"1448 B\"",
            "minimum_rto = \"0 s\"",
            r#"geo.toml:8: hosts.server.tcp.minimum_rto: expected at least "1 ms", got "0 s""#,
        ),
        (
            "mss = \"1448 B\"",
            "timer_granularity = \"500 ms\"",
            r#"geo.toml:8: hosts.server.tcp.timer_granularity: has no effect: only rto_rule = "rfc6298" with profile "rfc" has it"#,
        ),
        (
            "mss = \"1448 B\"",
            "timer_granularity = \"2 s\"",
            r#"geo.toml:8: hosts.server.tcp.timer_granularity: expected "10 ms", "20 ms" and so on to "1 s", got "2 s""#,
        ),
        (
            "mss = \"1448 B\"",
            "ack_every = 1",
            "geo.toml:8: hosts.server.tcp.ack_every: expected 2 to 1000, got 1",
        ),
        (
            "mss = \"1448 B\"",
            "ack_every = 4\ndelayed_ack = \"off\"",
            r#"geo.toml:8: hosts.server.tcp.ack_every: has no effect with delayed_ack = "off""#,
        ),
        (
            r#"interval = "100 ms""#,
            r#"interval = "1 us""#,
            r#"geo.toml:36: probes.interval: expected a longer time between records: 4 series every "1 us" are 80000004 records, above 20000000"#,
        ),
    ]);
}
