# Benchmark for ns-2: one loss-free bulk transfer over a chain of equal links.
#
#   ns bulk.tcl key value ...
#
# Keys, with their defaults, are in `options` below. Prints one line of "key value"
# pairs: delivered (data packets, in order, at the client), drops, retransmissions,
# timeouts. Wall time and memory are measured from outside.
#
# The defaults: 100 Mbit/s, 600 ms of round trip without queueing, 1500-byte
# packets: 5000 packets fill the pipe, and the window is a little larger.

array set options {
    links                   1
    rate_bps                100000000
    round_trip_s            0.6
    duration_s              600
    window_segments         5200
    slow_start_threshold    0
    initial_window          10
    packet_bytes            1500
    ack_bytes               52
    delayed_ack_s           0
    queue_packets           10000
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
Agent/TCP set window_ $options(window_segments)
Agent/TCP set tcpTick_ 0.001
Agent/TCP set minrto_ $options(min_rto_s)
Agent/TCPSink set packetSize_ $options(ack_bytes)
Agent/TCPSink set SYN_immediate_ack_ false
Queue set limit_ $options(queue_packets)

set ns [new Simulator]
$ns use-scheduler $options(scheduler)

# --- the chain -----------------------------------------------------------------
set link_delay_s [expr {$options(round_trip_s) / 2.0 / $options(links)}]
set nodes [list [$ns node]]
for {set i 0} {$i < $options(links)} {incr i} {
    lappend nodes [$ns node]
    $ns duplex-link [lindex $nodes $i] [lindex $nodes end] \
        $options(rate_bps) $link_delay_s DropTail
}

# --- the transfer --------------------------------------------------------------
set tcp [new Agent/TCP/Newreno]
if {$options(delayed_ack_s) > 0} {
    Agent/TCPSink/DelAck set interval_ $options(delayed_ack_s)
    set sink [new Agent/TCPSink/DelAck]
} else {
    # Every packet is acknowledged.
    set sink [new Agent/TCPSink]
}
$ns attach-agent [lindex $nodes 0] $tcp
$ns attach-agent [lindex $nodes end] $sink
$ns connect $tcp $sink
# 0 keeps ns-2's default, which is the window.
if {$options(slow_start_threshold) > 0} {
    $tcp set ssthresh_ $options(slow_start_threshold)
}
set ftp [new Application/FTP]
$ftp attach-agent $tcp

# Drops are counted where they happen, which costs nothing on a loss-free path.
set monitor [new QueueMonitor]
for {set i 0} {$i < $options(links)} {incr i} {
    foreach {from to} [list $i [expr {$i + 1}] [expr {$i + 1}] $i] {
        set snoop [new SnoopQueue/Drop]
        $snoop set-monitor $monitor
        $snoop target [$ns set nullAgent_]
        [[$ns link [lindex $nodes $from] [lindex $nodes $to]] queue] drop-target $snoop
    }
}

# The sink's byte count is an int, which overflows within 600 s.
set delivered 0
proc tally {} {
    global ns sink delivered options
    incr delivered [expr {[$sink set bytes_] / $options(packet_bytes)}]
    $sink set bytes_ 0
    $ns at [expr {[$ns now] + 10.0}] "tally"
}

proc finish {} {
    global tcp monitor delivered
    tally
    puts [format "delivered %d drops %d retransmissions %d timeouts %d" \
        $delivered [$monitor set pdrops_] [$tcp set nrexmitpack_] [$tcp set nrexmit_]]
    exit 0
}

$ns at 0.0 "$ftp start"
$ns at 10.0 "tally"
$ns at $options(duration_s) "finish"
$ns run
