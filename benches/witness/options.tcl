# Reads a script's arguments, "key value ...", into its array `options`, which holds the keys with their defaults.
#
#   source [file join [file dirname [info script]] options.tcl]

foreach {key value} $argv {
    if {![info exists options($key)]} {
        puts stderr "unknown option: $key (known: [lsort [array names options]])"
        exit 2
    }
    set options($key) $value
}
