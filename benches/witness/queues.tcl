# Witness for the queues of crates/link: RED and DRR of ns-2 with the same packets.
#
#   ns queues.tcl QUEUE FILE
#
# QUEUE is red, red-bytes, red-average or drr; FILE is where ns-2 writes its trace of the queue. Prints one line
# per event at the queue of a 1 Mbit/s link: + arrives, - departs, d is dropped; then the time in
# microseconds, the flow, the bytes. For red-average also: a, time, the average. Everything random has
# a seed.
#
# crates/link/tests/ns2.rs runs this and compares.

set kind [lindex $argv 0]
set trace [open [lindex $argv 1] w]
set ns [new Simulator]
set router [$ns node]
set sink [$ns node]

Queue set limit_ 40
Queue/RED set thresh_ 5
Queue/RED set maxthresh_ 15
Queue/RED set q_weight_ 0.002
Queue/RED set linterm_ 10
Queue/RED set gentle_ true
Queue/RED set mean_pktsize_ 1000
Queue/RED set bytes_ false
Queue/RED set queue_in_bytes_ false
Queue/RED set setbit_ false
Queue/RED set adaptive_ 0
Queue/RED set cautious_ 0
# Off: if on, ns-2 leaves a gap after each drop, unlike the paper.
Queue/RED set wait_ false
if {$kind == "red-average"} {
    # No early drops, so that only the average is recorded. The largest weight of the paper makes
    # it change.
    Queue/RED set linterm_ 1e12
    Queue/RED set thresh_ 1000
    Queue/RED set maxthresh_ 3000
    Queue/RED set q_weight_ 0.02
    Queue set limit_ 1000
}
if {$kind == "red-bytes"} {
    Queue/RED set bytes_ true
    Queue/RED set queue_in_bytes_ true
}
Queue/DRR set buckets_ 16
Queue/DRR set blimit_ 12000
Queue/DRR set quantum_ 1500
Queue/DRR set mask_ 0

set class [expr {$kind == "drr" ? "DRR" : "RED"}]
$ns simplex-link $router $sink 1Mb 10ms $class
$ns trace-queue $router $sink $trace
set queue [[$ns link $router $sink] queue]
if {$kind == "red-average"} {
    set averages [open [lindex $argv 1].average w]
    $queue trace ave_
    $queue attach $averages
}

# Four sources, each on its own node (DRR distinguishes flows by address), with a negligible delay to the queue.
set sources {}
for {set i 0} {$i < 4} {incr i} {
    set node [$ns node]
    $ns simplex-link $node $router 1000000Mb 0ms DropTail
    set agent [new Agent/UDP]
    $agent set packetSize_ 2000
    $agent set fid_ $i
    $ns attach-agent $node $agent
    set null [new Agent/Null]
    $ns attach-agent $sink $null
    $ns connect $agent $null
    lappend sources $agent
}

# Poisson arrivals, in whole microseconds: at 1.2 times the link's rate for red, 2 times for drr, and
# for the average 0.95 times, in bursts with long idle times between.
set random [new RNG]
# With this seed, no packet arrives in the microsecond in which another departs. ns-2 would process the
# arrival first, and bentpipe the departure.
$random seed 8
set red [expr {$kind in {red red-bytes}}]
set mean_us [expr {$red ? 5000 : $kind == "drr" ? 3000 : 6300}]
set packets [expr {$red ? 20000 : 700}]
set now 1000
for {set n 0} {$n < $packets} {incr n} {
    incr now [expr {1 + round([$random exponential $mean_us])}]
    if {$kind == "red-average" && $n % 100 == 99} {
        incr now 900000
    }
    set flow [$random integer 4]
    # Flow 0 sends small packets, flow 3 the most.
    set bytes [expr {$kind == "drr" ? 200 + 400 * $flow : $kind == "red-bytes" ? 250 + 333 * $flow : 750}]
    if {$kind == "drr" && [$random uniform 0 1] < 0.4} {
        set flow 3
        set bytes 1400
    }
    $ns at [expr {$now * 1e-6}] "[lindex $sources $flow] send $bytes"
}
$ns at [expr {$now * 1e-6 + 2.0}] "finish"

proc finish {} {
    global ns
    $ns flush-trace
    exit 0
}
$ns run
