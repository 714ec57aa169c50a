# Agent settings of cells.tcl and shared.tcl. A script may change them afterwards.
#
#   source [file join [file dirname [info script]] agents.tcl]

# With a handshake. Its round trip is the first RTT sample, and its acknowledgment does not open the window.
Agent/TCP set syn_ true
Agent/TCP set delay_growth_ true
Agent/TCPSink set SYN_immediate_ack_ true
Agent/TCP set useHeaders_ false
Agent/TCP set packetSize_ 1500
Agent/TCPSink set packetSize_ 52
Agent/TCP set overhead_ 0
Agent/TCP set window_ $options(window_segments)
Agent/TCP set windowInitOption_ 1
Agent/TCP set windowInit_ $options(initial_window)
Agent/TCP set tcpTick_ 0.001
Agent/TCP set minrto_ $options(minimum_rto_s)
Agent/TCP set rtxcur_init_ 3.0
Agent/TCP set timestamps_ true
Agent/TCPSink set ts_echo_rfc1323_ true
# RFC 3042
Agent/TCP set singledup_ 1
# If on, Reno has one fast retransmit per window, as in RFC 6582 section 3.2 and not in RFC 5681.
Agent/TCP/Reno set bugFix_ false
