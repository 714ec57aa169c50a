# Flows that share one bottleneck in ns-2, set up like the transfer of cells.tcl. They send until the end.
#
#   ns shared.tcl key value ...
#
# Keys, with their defaults, are in `options` below. Prints a line for each flow: "flow", in-order segments at its
# client, retransmissions, timeouts; then "drops", at the bottleneck's queue and at the return link's. With `trace`,
# the packets on the bottleneck come before that, in ns-2's format, both directions: near is node 0, far 1.
#
#   server-i -- 100 Mbit/s, access_delays_s(i) -- near ====== far -- 100 Mbit/s, 1 ms -- client-i

array set options {
    rate_bps            2000000
    delay_s             0.25
    back_bps            2000000
    back_delay_s        0.25
    queue_packets       50
    back_queue_packets  100000
    red_minimum         0
    red_maximum         0
    red_probability     0.1
    red_weight          0.002
    ecn                 0
    variant             Newreno
    congestion_control  hybla
    rtt0_ms             25
    delayed_ack_s       0.2
    window_segments     1000
    threshold_segments  1000
    initial_window      4
    starts_s            "0.0 1.0"
    access_delays_s     "0.001 0.002"
    lost                ""
    minimum_rto_s       1.0
    duration_s          100
    seed                1
    limited_transmit    1
    bug_fix             0
    exit_recovery_fix   1
    reset_rto           0
    trace               0
}
source [file join [file dirname [info script]] options.tcl]
source [file join [file dirname [info script]] agents.tcl]

if {$options(variant) eq "Linux"} {
    # No SYN, since TCP-Linux sends data with it.
    Agent/TCP set syn_ false
    Agent/TCP set delay_growth_ false
    Agent/TCPSink set SYN_immediate_ack_ false
    Agent/TCP/Linux set minrto_ $options(minimum_rto_s)
}
Agent/TCP set singledup_ $options(limited_transmit)
Agent/TCP set ecn_ $options(ecn)
# By default, ns-2 keeps the backed-off timer until a segment is acknowledged that was not retransmitted, even if timestamps
# measure retransmitted ones.
Agent/TCP set ts_resetRTO_ [expr {$options(reset_rto) ? "true" : "false"}]
Agent/TCP/Reno set bugFix_ $options(bug_fix)
# RFC 6582 section 3.2 step 3 permits two windows at the end of recovery: this is the first, as in bentpipe.
Agent/TCP/Newreno set exit_recovery_fix_ $options(exit_recovery_fix)

$defaultRNG seed $options(seed)
set ns [new Simulator]
set near [$ns node]
set far [$ns node]
Queue set limit_ 1000000
set red [expr {$options(red_maximum) > 0}]
if {$red} {
    # As in queues.tcl.
    foreach {setting value} [list thresh_ $options(red_minimum) maxthresh_ $options(red_maximum) \
        q_weight_ $options(red_weight) linterm_ [expr {1.0 / $options(red_probability)}] gentle_ true \
        mean_pktsize_ 1500 bytes_ false queue_in_bytes_ false setbit_ $options(ecn) adaptive_ 0 cautious_ 0 wait_ false] {
        Queue/RED set $setting $value
    }
}
$ns simplex-link $near $far $options(rate_bps) $options(delay_s) [expr {$red ? "RED" : "DropTail"}]
$ns simplex-link $far $near $options(back_bps) $options(back_delay_s) DropTail
# ns-2's limit includes the packet in transmission.
$ns queue-limit $near $far $options(queue_packets)
$ns queue-limit $far $near $options(back_queue_packets)
foreach {name from to} [list there $near $far back $far $near] {
    set monitor($name) [new QueueMonitor]
    set snoop($name) [new SnoopQueue/Drop]
    $snoop($name) set-monitor $monitor($name)
    $snoop($name) target [$ns set nullAgent_]
    [[$ns link $from $to] queue] drop-target $snoop($name)
}
if {$options(lost) ne ""} {
    # By number on the link, from 0, including a SYN.
    set errors [new ErrorModel/List]
    $errors droplist $options(lost)
    $errors drop-target [new Agent/Null]
    $ns link-lossmodel $errors $near $far
}
if {$options(trace)} {
    $ns trace-queue $near $far stdout
    $ns trace-queue $far $near stdout
}

set kind [expr {$options(variant) in {Sack1 Linux} ? "/Sack1" : ""}]
if {$options(delayed_ack_s) > 0} {
    Agent/TCPSink${kind}/DelAck set interval_ $options(delayed_ack_s)
    append kind /DelAck
}
set flows 0
foreach start $options(starts_s) access_delay $options(access_delays_s) {
    set server [$ns node]
    set client [$ns node]
    $ns duplex-link $server $near 100Mb $access_delay DropTail
    $ns duplex-link $far $client 100Mb 0.001 DropTail
    set tcp($flows) [new Agent/TCP/$options(variant)]
    set sink($flows) [new Agent/TCPSink${kind}]
    $tcp($flows) set fid_ $flows
    $sink($flows) set fid_ $flows
    $ns attach-agent $server $tcp($flows)
    $ns attach-agent $client $sink($flows)
    $ns connect $tcp($flows) $sink($flows)
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp($flows)
    # Set here, since Simulator::run resets the agents.
    $ns at 0.0 "$tcp($flows) set ssthresh_ $options(threshold_segments)"
    if {$options(variant) eq "Linux"} {
        if {$options(congestion_control) eq "hybla"} {
            $ns at 0.0 "$tcp($flows) set_ca_default_param hybla rtt0 $options(rtt0_ms)"
        }
        $ns at 0.0 "$tcp($flows) select_ca $options(congestion_control)"
    }
    $ns at $start "$ftp start"
    incr flows
}

proc finish {} {
    global ns tcp sink flows monitor
    $ns flush-trace
    for {set i 0} {$i < $flows} {incr i} {
        # The SYN adds less than a segment.
        puts "flow [expr {int([$sink($i) set bytes_]) / 1500}] [$tcp($i) set nrexmitpack_] [$tcp($i) set nrexmit_]"
    }
    puts "drops [$monitor(there) set pdrops_] [$monitor(back) set pdrops_]"
    exit 0
}
$ns at $options(duration_s) finish
$ns run
