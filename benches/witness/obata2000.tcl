# One TCP transfer over an asymmetric pair of links, as obata2000 simulates it,
# in ns-2: the witness for bentpipe's own simulation.
#
#   ns obata2000.tcl key value ...
#
# Keys, with their defaults, are in `options` below. Prints one line of
# "key value" pairs: time_s, data_packets, retransmissions, timeouts,
# acknowledgements.
#
# The sender is Agent/TCP/Reno without a SYN exchange and with an initial window
# of one segment, the receiver Agent/TCPSink/DelAck. ns-2's sender counts whole
# packets: there are no bytes in it. A short last segment is therefore sent at full
# length, and the time of its padding is subtracted, see `Arrival of the last byte`.

array set options {
    downlink_bps      2048000
    downlink_delay_s  0.25
    uplink_bps        64000
    uplink_delay_s    0.25
    window_segments   5
    file_bytes        1024000
    mss               1448
    header_bytes      52
    ack_bytes         52
    delayed_ack_s     0.2
    min_rto_s         1.0
    trace             ""
    keep_trace        0
}
source [file join [file dirname [info script]] options.tcl]
if {$options(trace) eq ""} {
    puts stderr "trace: the name of a file to write the packet trace to is needed"
    exit 2
}

# --- sizes on the wire ---------------------------------------------------------
# packetSize_ is the whole packet. (With useHeaders_ ns-2 adds the headers to every
# packet except number 0, which it takes for a SYN even where syn_ is off.)
Agent/TCP set useHeaders_ false
Agent/TCP set packetSize_ [expr {$options(mss) + $options(header_bytes)}]
Agent/TCPSink set packetSize_ $options(ack_bytes)

# --- the receiver --------------------------------------------------------------
Agent/TCPSink/DelAck set interval_ $options(delayed_ack_s)
# If on (the default since 2010), packet 0 is acknowledged at once, as a SYN is.
# Here it is data, and waits for the delayed-ACK timer like any single segment.
Agent/TCPSink set SYN_immediate_ack_ false

# --- the sender ----------------------------------------------------------------
# syn_ on (the default) would spend a round trip on a SYN, and delay_growth_ would
# put the window back to its initial value when that is acknowledged. overhead_
# would be a random delay before each packet.
Agent/TCP set syn_ false
Agent/TCP set delay_growth_ false
Agent/TCP set windowInitOption_ 1
Agent/TCP set windowInit_ 1
Agent/TCP set overhead_ 0
# The receiver's window, and also the initial slow start threshold. It does not
# end slow start early: below it cwnd grows by 1 per ACK, from it on window_ binds.
Agent/TCP set window_ $options(window_segments)
Agent/TCP set maxcwnd_ 0
# Timer granularity 1 ms; ns-2's 10 ms and 200 ms minimum could time out while
# the acknowledgements of a slow uplink queue up.
Agent/TCP set tcpTick_ 0.001
Agent/TCP set minrto_ $options(min_rto_s)
Agent/TCP set rtxcur_init_ 3.0

set ns [new Simulator]
set server [$ns node]
set client [$ns node]

# No queue ever drops: nothing is lost in obata2000.
Queue set limit_ 1000000
$ns simplex-link $server $client $options(downlink_bps) $options(downlink_delay_s) DropTail
$ns simplex-link $client $server $options(uplink_bps) $options(uplink_delay_s) DropTail

set trace [open $options(trace) w]
$ns trace-queue $server $client $trace
$ns trace-queue $client $server $trace

set tcp [new Agent/TCP/Reno]
set sink [new Agent/TCPSink/DelAck]
$ns attach-agent $server $tcp
$ns attach-agent $client $sink
$ns connect $tcp $sink

set segments [expr {($options(file_bytes) + $options(mss) - 1) / $options(mss)}]

# Called by ns-2 when the last segment is acknowledged.
Agent/TCP instproc done {} {
    global ns
    $ns at [$ns now] "finish"
}

proc finish {} {
    global ns trace options tcp segments server
    $ns flush-trace
    close $trace

    # The trace is exact to the microsecond: one line per packet event,
    # "event time from to type size flags flow source destination sequence id".
    set lines [open $options(trace) r]
    set first ""
    set last ""
    set data_packets 0
    set acknowledgements 0
    set drops 0
    while {[gets $lines line] >= 0} {
        foreach {event time from to type size flags flow src dst sequence id} $line break
        if {$event eq "d"} {
            incr drops
        } elseif {$type eq "tcp"} {
            if {$event eq "+"} {
                incr data_packets
                if {$first eq ""} { set first $time }
            } elseif {$event eq "r" && $sequence == $segments - 1 && $last eq ""} {
                set last $time
            }
        } elseif {$type eq "ack" && $event eq "r"} {
            incr acknowledgements
        }
    }
    close $lines
    if {!$options(keep_trace)} { file delete $options(trace) }
    if {$last eq "" || $drops > 0} {
        puts stderr "the transfer is not what it should be: last arrival '$last', $drops drops"
        exit 1
    }

    # Arrival of the last byte. Nothing follows the last segment, so sending it
    # short would change only its own transmission time.
    set padding_bytes [expr {$segments * $options(mss) - $options(file_bytes)}]
    set time_s [expr {$last - $first - 8.0 * $padding_bytes / $options(downlink_bps)}]

    puts [format "time_s %.6f data_packets %d retransmissions %d timeouts %d acknowledgements %d" \
        $time_s $data_packets [$tcp set nrexmitpack_] [$tcp set nrexmit_] $acknowledgements]
    exit 0
}

$ns at 0.0 "$tcp advanceby $segments"
$ns run
# Reached only if the events ran out before `finish`.
puts stderr "the transfer never finished"
exit 1
