# One bulk transfer over a satellite link with random losses, by ns-2's TCP-Linux:
# the witness for Hybla, Westwood+, Reno and CUBIC.
#
#   ns vanzara2014.tcl key value ...
#
# Keys, with their defaults, are in `options` below. Every `report_every_s` it prints
# a line
#
#   time_s T delivered_packets N congestion_window W slow_start_threshold T
#
# where N counts the packets delivered in order since the start, and at the end a line
#
#   final delivered_packets N retransmissions R timeouts T recoveries C
#       queue_drops Q error_drops E
#
# (on one line). linux_tcp.md describes TCP-Linux and its differences from today's
# Linux and from the RFCs.

array set options {
    congestion_control      hybla
    bit_error_rate          0
    seed                    1
    rate_bps                100000000
    round_trip_s            0.6
    duration_s              600
    report_every_s          10
    mss                     1448
    header_bytes            52
    ack_bytes               52
    queue_packets           20000
    window_segments         65535
    slow_start_threshold    0
    initial_window          10
    delayed_ack_s           0
    min_rto_s               1.0
    rtt0_ms                 25
    trace_window            0
    trace_packets           -
}
source [file join [file dirname [info script]] options.tcl]
set packet_bytes [expr {$options(mss) + $options(header_bytes)}]

# Packets carry only the headers that TCP uses: four times as fast.
remove-all-packet-headers
add-packet-header IP TCP Flags

# --- sizes on the wire ---------------------------------------------------------
# packetSize_ is the whole packet; SACK blocks lengthen an ACK by 8 bytes each.
Agent/TCP set useHeaders_ false
Agent/TCP set packetSize_ $packet_bytes
Agent/TCPSink set packetSize_ $options(ack_bytes)

# --- the sender ----------------------------------------------------------------
# No SYN exchange: data flows from 0 s. The module's `init` runs at the first ACK.
Agent/TCP set syn_ false
Agent/TCP set delay_growth_ false
Agent/TCP set windowInitOption_ 1
Agent/TCP set windowInit_ $options(initial_window)
Agent/TCP set overhead_ 0
# The most the modules let the window grow to, and their initial slow start
# threshold if none is given.
Agent/TCP set window_ $options(window_segments)
Agent/TCP/Linux set minrto_ $options(min_rto_s)
# One round trip sample per ACK, and an echo as RFC 7323 has it.
Agent/TCP set timestamps_ true
Agent/TCPSink set ts_echo_rfc1323_ true
Agent/TCPSink set SYN_immediate_ack_ false
Queue set limit_ 1000000

set ns [new Simulator]
$ns use-scheduler Calendar

# --- the link ------------------------------------------------------------------
set server [$ns node]
set client [$ns node]
$ns duplex-link $server $client $options(rate_bps) [expr {$options(round_trip_s) / 2.0}] DropTail
$ns queue-limit $server $client $options(queue_packets)

# Drops are counted where they happen, which costs nothing for other packets.
foreach kind {queue error} {
    set monitor($kind) [new QueueMonitor]
    set snoop($kind) [new SnoopQueue/Drop]
    $snoop($kind) set-monitor $monitor($kind)
    $snoop($kind) target [$ns set nullAgent_]
}
[[$ns link $server $client] queue] drop-target $snoop(queue)

# Whole packets are lost, each with the probability that one of its bits is wrong.
# ErrorModel's unit `bit` ignores the packet's own size, and drops nothing. The
# exponent, -n log(1-BER), is the start of a series: 1 - (1-BER)^n, as it stands,
# loses its digits at a BER of 1e-10.
if {$options(bit_error_rate) > 0} {
    set exponent [expr {8.0 * $packet_bytes * ($options(bit_error_rate)
        + $options(bit_error_rate) ** 2 / 2.0)}]
    set packet_loss_rate [expr {$exponent < 1e-6 ? $exponent : 1.0 - exp(-$exponent)}]

    # A substream for each seed. The first numbers after `seed 1`, `seed 2`, ... are
    # all close to 0, and would lose the first packets of every run.
    set rng [new RNG]
    $rng seed 12345
    for {set i 0} {$i < $options(seed)} {incr i} { $rng next-substream }
    set uniform [new RandomVariable/Uniform]
    $uniform use-rng $rng
    set errors [new ErrorModel]
    $errors unit pkt
    $errors set rate_ $packet_loss_rate
    $errors ranvar $uniform
    # After the link, so that a lost packet has taken its transmission time.
    $ns link-lossmodel $errors $server $client
    $errors drop-target $snoop(error)

    # Packet 0 stands for the handshake and is spared. TCP-Linux never initialises
    # snd_una, so that a duplicate ACK before the first real one would give Westwood
    # an arbitrary bandwidth sample.
    $errors set enable_ 0
    set packet_time_s [expr {8.0 * $packet_bytes / $options(rate_bps)}]
    $ns at [expr {$options(round_trip_s) / 2.0 + 1.5 * $packet_time_s}] "$errors set enable_ 1"
}

# "+ time ... sequence" when a data packet is offered to the link, "r ..." when it arrives.
if {$options(trace_packets) ne "-"} {
    $ns trace-queue $server $client [open $options(trace_packets) w]
}

# --- the transfer --------------------------------------------------------------
set tcp [new Agent/TCP/Linux]
if {$options(delayed_ack_s) > 0} {
    Agent/TCPSink/Sack1/DelAck set interval_ $options(delayed_ack_s)
    set sink [new Agent/TCPSink/Sack1/DelAck]
} else {
    # Every packet is acknowledged.
    set sink [new Agent/TCPSink/Sack1]
}
$ns attach-agent $server $tcp
$ns attach-agent $client $sink
$ns connect $tcp $sink
set ftp [new Application/FTP]
$ftp attach-agent $tcp

# Simulator::run resets the agents, including ssthresh_, and `select_ca` passes ssthresh_
# to the module: it must be set between the two.
if {$options(slow_start_threshold) > 0} {
    $ns at 0.0 "$tcp set ssthresh_ $options(slow_start_threshold)"
}
if {$options(congestion_control) eq "hybla"} {
    $ns at 0.0 "$tcp set_ca_default_param hybla rtt0 $options(rtt0_ms)"
}
$ns at 0.0 "$tcp select_ca $options(congestion_control)"
$ns at 0.0 "$ftp start"

if {$options(trace_window)} {
    # "time node ... cwnd_ value" lines on stdout, at every change.
    $tcp attach stdout
    $tcp trace cwnd_
    $tcp trace ssthresh_
}

# The sink's byte count is an int, which overflows within 600 s: it is reset at every report.
if {$options(report_every_s) * $options(rate_bps) / 8.0 >= 2**31} {
    puts stderr "report_every_s: too long for ns-2's count of bytes at this rate"
    exit 2
}
set delivered 0
proc tally {} {
    global ns tcp sink delivered options packet_bytes
    incr delivered [expr {[$sink set bytes_] / $packet_bytes}]
    $sink set bytes_ 0
    puts [format "time_s %g delivered_packets %d congestion_window %d slow_start_threshold %d" \
        [$ns now] $delivered [expr {int([$tcp set cwnd_])}] [expr {int([$tcp set ssthresh_])}]]
}
proc tally_regularly {} {
    global ns options
    tally
    $ns at [expr {[$ns now] + $options(report_every_s)}] "tally_regularly"
}

proc finish {} {
    global tcp monitor delivered
    puts [format "final delivered_packets %d retransmissions %d timeouts %d recoveries %d\
        queue_drops %d error_drops %d" \
        $delivered [$tcp set nrexmitpack_] [$tcp set nrexmit_] \
        [expr {[$tcp set ncwndcuts_] - [$tcp set nrexmit_]}] \
        [$monitor(queue) set pdrops_] [$monitor(error) set pdrops_]]
    exit 0
}

$ns at $options(report_every_s) "tally_regularly"
# After the last tally.
$ns at [expr {$options(duration_s) + 1e-6}] "finish"
$ns run
