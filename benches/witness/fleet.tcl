# Benchmark for ns-2: NewReno flows sharing one drop-tail bottleneck.
#
#   ns fleet.tcl key value ...
#
# Keys, with their defaults, are in `options` below. Prints one line of "key value"
# pairs: delivered (data packets, in order, at the clients, all flows together),
# drops, retransmissions, timeouts. Wall time and memory are measured from outside.
#
#   server-1  --+                                          +--  client-1
#      ...      +-- left ====== bottleneck ====== right ---+      ...
#   server-n  --+                                          +--  client-n
#
# The defaults: 100 flows over 100 Mbit/s and 600 ms of round trip without queueing
# (5 ms on each access link, 290 ms on the bottleneck, each way), 1500-byte packets,
# and a queue of one bandwidth-delay product, 5000 packets, in front of the
# bottleneck. ns-2's limit includes the packet in transmission. All other queues are
# long enough never to drop. The flows start one after another over `start_spread_s`.

array set options {
    flows                   100
    rate_bps                100000000
    access_rate_bps         1000000000
    access_delay_s          0.005
    round_trip_s            0.6
    duration_s              200
    start_spread_s          10
    queue_packets           5000
    window_segments         10000
    initial_window          10
    packet_bytes            1500
    ack_bytes               52
    delayed_ack_s           0
    min_rto_s               1.0
    all_headers             0
    scheduler               Calendar
}
source [file join [file dirname [info script]] options.tcl]

# ns-2 at its best: nothing is traced, and packets carry only the headers that TCP
# uses. By default they carry those of every protocol in ns-2, which makes the bulk
# transfer about four times as slow.
if {!$options(all_headers)} {
    remove-all-packet-headers
    add-packet-header IP TCP Flags
}

Agent/TCP set useHeaders_ false
Agent/TCP set packetSize_ $options(packet_bytes)
Agent/TCP set syn_ false
Agent/TCP set delay_growth_ false
Agent/TCP set windowInitOption_ 1
Agent/TCP set windowInit_ $options(initial_window)
Agent/TCP set overhead_ 0
# Never a limit. ns-2 sets the initial slow start threshold to it, which is therefore none either.
Agent/TCP set window_ $options(window_segments)
Agent/TCP set tcpTick_ 0.001
Agent/TCP set minrto_ $options(min_rto_s)
Agent/TCPSink set packetSize_ $options(ack_bytes)
Agent/TCPSink set SYN_immediate_ack_ false
Agent/TCPSink/DelAck set interval_ $options(delayed_ack_s)
Queue set limit_ 1000000

set ns [new Simulator]
$ns use-scheduler $options(scheduler)

# --- the bottleneck ------------------------------------------------------------
set left [$ns node]
set right [$ns node]
set bottleneck_delay_s [expr {$options(round_trip_s) / 2.0 - 2 * $options(access_delay_s)}]
$ns duplex-link $left $right $options(rate_bps) $bottleneck_delay_s DropTail
$ns queue-limit $left $right $options(queue_packets)

# Drops are counted where they happen, which costs nothing for other packets.
set monitor [new QueueMonitor]
set snoop [new SnoopQueue/Drop]
$snoop set-monitor $monitor
$snoop target [$ns set nullAgent_]
[[$ns link $left $right] queue] drop-target $snoop

# --- the flows -----------------------------------------------------------------
for {set i 0} {$i < $options(flows)} {incr i} {
    set server [$ns node]
    set client [$ns node]
    $ns duplex-link $server $left $options(access_rate_bps) $options(access_delay_s) DropTail
    $ns duplex-link $right $client $options(access_rate_bps) $options(access_delay_s) DropTail

    set tcp($i) [new Agent/TCP/Newreno]
    if {$options(delayed_ack_s) > 0} {
        set sink($i) [new Agent/TCPSink/DelAck]
    } else {
        # Every packet is acknowledged.
        set sink($i) [new Agent/TCPSink]
    }
    $ns attach-agent $server $tcp($i)
    $ns attach-agent $client $sink($i)
    $ns connect $tcp($i) $sink($i)
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp($i)
    $ns at [expr {double($options(start_spread_s)) * $i / $options(flows)}] "$ftp start"
}

proc finish {} {
    global tcp sink monitor options
    set delivered 0
    set retransmissions 0
    set timeouts 0
    for {set i 0} {$i < $options(flows)} {incr i} {
        incr delivered [expr {[$sink($i) set bytes_] / $options(packet_bytes)}]
        incr retransmissions [$tcp($i) set nrexmitpack_]
        incr timeouts [$tcp($i) set nrexmit_]
    }
    puts [format "delivered %d drops %d retransmissions %d timeouts %d" \
        $delivered [$monitor set pdrops_] $retransmissions $timeouts]
    exit 0
}

$ns at $options(duration_s) "finish"
$ns run
