# One transfer over one bottleneck in ns-2, with settings as in the RFCs where ns-2 has a choice.
#
#   ns cells.tcl key value ...
#
# Keys, with their defaults, are in `options` below. Prints the trace of both access links, and then a line: "done",
# retransmissions, timeouts.
#
#   server -- 100 Mbit/s, 1 ms -- near ====== far -- 100 Mbit/s, 1 ms -- client

array set options {
    rate_bps            2000000
    delay_s             0.25
    back_bps            200000
    back_delay_s        0.25
    queue_packets       100000
    variant             Newreno
    delayed_ack_s       0.2
    window_segments     100
    segments            300
    initial_window      4
    lost                ""
    minimum_rto_s       1.0
}
source [file join [file dirname [info script]] options.tcl]
source [file join [file dirname [info script]] agents.tcl]

set ns [new Simulator]
foreach node {server near far client} { set $node [$ns node] }
Queue set limit_ 1000000
$ns duplex-link $server $near 100Mb 1ms DropTail
$ns duplex-link $far $client 100Mb 1ms DropTail
$ns simplex-link $near $far $options(rate_bps) $options(delay_s) DropTail
$ns simplex-link $far $near $options(back_bps) $options(back_delay_s) DropTail
# ns-2's limit includes the packet in transmission.
$ns queue-limit $near $far $options(queue_packets)
if {$options(lost) ne ""} {
    # By number on the link, from 0, which is the SYN.
    set errors [new ErrorModel/List]
    $errors droplist $options(lost)
    $errors drop-target [new Agent/Null]
    $ns link-lossmodel $errors $near $far
}

set kind [expr {$options(variant) eq "Sack1" ? "/Sack1" : ""}]
if {$options(delayed_ack_s) > 0} {
    Agent/TCPSink${kind}/DelAck set interval_ $options(delayed_ack_s)
    set sink [new Agent/TCPSink${kind}/DelAck]
} else {
    set sink [new Agent/TCPSink${kind}]
}
set tcp [new Agent/TCP/$options(variant)]
$ns attach-agent $server $tcp
$ns attach-agent $client $sink
$ns connect $tcp $sink
$ns at 0.0 "$tcp set ssthresh_ $options(window_segments)"
$ns at 0.0 "$tcp advanceby $options(segments)"

# Traces the packets on the two access links, node 0 to 1 and 2 to 3, in ns-2's format; segment 0 is the SYN.
$ns trace-queue $server $near stdout
$ns trace-queue $far $client stdout
proc finish {} {
    global ns
    $ns flush-trace
    exit 0
}
Agent/TCP instproc done {} {
    global ns
    $self instvar nrexmitpack_ nrexmit_
    puts "done $nrexmitpack_ $nrexmit_"
    $ns at [$ns now] finish
}
$ns at 3000 finish
$ns run
