# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_bentpipe_gateway_global_optspecs
    string join \n gateway= link= interface= shape= address= peer= duration= drain= socket= metrics= statistics= log= log-level= check clean seed= set= pcap= snap= json h/help V/version
end

function __fish_bentpipe_gateway_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_bentpipe_gateway_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_bentpipe_gateway_using_subcommand
    set -l cmd (__fish_bentpipe_gateway_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_needs_command" -l gateway -d 'The file\'s gateway that this machine is' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_needs_command" -l link -d 'Or the link that it is, with its delay and losses: a satellite for a laboratory' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_needs_command" -l interface -d 'The interface behind which a link of the gateway is (or, of --link, a node). Twice or more' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_needs_command" -l shape -d 'Send there at the file\'s rate, from the file\'s queue. Repeatable' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_needs_command" -l address -d 'With multiplex: this gateway\'s end of the persistent connections. An address of the network on its hosts\' side that nobody has' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_needs_command" -l peer -d 'The other gateway\'s, likewise' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_needs_command" -l duration -d 'End after so long, such as "60 s". [default: on a signal]' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_needs_command" -l drain -d 'On SIGTERM or SIGINT, forward new connections, and end when the others have ended, or after this time. [default: end at once]' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_needs_command" -l socket -d 'Open a control socket there, for the subcommands status, connections, metrics, reload and drain' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_needs_command" -l metrics -d 'Serve metrics for Prometheus over HTTP at this loopback address, such as 127.0.0.1:9435' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_needs_command" -l statistics -d 'Keep the counters in this file, so that metrics go on after a restart' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_needs_command" -l log -d 'Log with time and level, and with the connection: text, or json for an object in each line' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_needs_command" -l log-level -d 'With --log: error, warn, info, or debug, which names every connection. [default: info]' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_needs_command" -l seed -d 'Instead of the file\'s seed' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_needs_command" -l set -d 'Change a key, such as links.satellite.forward.rate=8Mbit/s. Repeatable' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_needs_command" -l pcap -d 'Capture this link\'s packets in LINK.pcapng. Repeatable' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_needs_command" -l snap -d 'Capture at most so many bytes of each packet; 100 holds all headers' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_needs_command" -l check -d 'Say what would be set up, and what is in the way'
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_needs_command" -l clean -d 'Remove what a killed one has left, and do nothing else'
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_needs_command" -l json -d 'Print one JSON object and nothing else'
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_needs_command" -s h -l help -d 'Print help'
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_needs_command" -s V -l version -d 'Print version'
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_needs_command" -a "check" -d 'Say what would be set up, and what is in the way; the same as --check'
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_needs_command" -a "run" -d 'Forward packets; the same as without a subcommand'
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_needs_command" -a "status" -d 'Show the counters of a gateway that runs'
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_needs_command" -a "connections" -d 'List the connections of a gateway that runs, with both legs of each'
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_needs_command" -a "metrics" -d 'Print the metrics of a gateway that runs, in Prometheus\' text format'
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_needs_command" -a "reload" -d 'Have a gateway that runs read its scenario file again. New connections have its settings'
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_needs_command" -a "drain" -d 'Have a gateway that runs forward new connections, and end when the others have ended'
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -l gateway -d 'The file\'s gateway that this machine is' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -l link -d 'Or the link that it is, with its delay and losses: a satellite for a laboratory' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -l interface -d 'The interface behind which a link of the gateway is (or, of --link, a node). Twice or more' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -l shape -d 'Send there at the file\'s rate, from the file\'s queue. Repeatable' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -l address -d 'With multiplex: this gateway\'s end of the persistent connections. An address of the network on its hosts\' side that nobody has' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -l peer -d 'The other gateway\'s, likewise' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -l duration -d 'End after so long, such as "60 s". [default: on a signal]' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -l drain -d 'On SIGTERM or SIGINT, forward new connections, and end when the others have ended, or after this time. [default: end at once]' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -l socket -d 'Open a control socket there, for the subcommands status, connections, metrics, reload and drain' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -l metrics -d 'Serve metrics for Prometheus over HTTP at this loopback address, such as 127.0.0.1:9435' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -l statistics -d 'Keep the counters in this file, so that metrics go on after a restart' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -l log -d 'Log with time and level, and with the connection: text, or json for an object in each line' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -l log-level -d 'With --log: error, warn, info, or debug, which names every connection. [default: info]' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -l seed -d 'Instead of the file\'s seed' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -l set -d 'Change a key, such as links.satellite.forward.rate=8Mbit/s. Repeatable' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -l pcap -d 'Capture this link\'s packets in LINK.pcapng. Repeatable' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -l snap -d 'Capture at most so many bytes of each packet; 100 holds all headers' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -l check -d 'Say what would be set up, and what is in the way'
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -l clean -d 'Remove what a killed one has left, and do nothing else'
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -l json -d 'Print one JSON object and nothing else'
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -s h -l help -d 'Print help'
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand run" -l gateway -d 'The file\'s gateway that this machine is' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand run" -l link -d 'Or the link that it is, with its delay and losses: a satellite for a laboratory' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand run" -l interface -d 'The interface behind which a link of the gateway is (or, of --link, a node). Twice or more' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand run" -l shape -d 'Send there at the file\'s rate, from the file\'s queue. Repeatable' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand run" -l address -d 'With multiplex: this gateway\'s end of the persistent connections. An address of the network on its hosts\' side that nobody has' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand run" -l peer -d 'The other gateway\'s, likewise' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand run" -l duration -d 'End after so long, such as "60 s". [default: on a signal]' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand run" -l drain -d 'On SIGTERM or SIGINT, forward new connections, and end when the others have ended, or after this time. [default: end at once]' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand run" -l socket -d 'Open a control socket there, for the subcommands status, connections, metrics, reload and drain' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand run" -l metrics -d 'Serve metrics for Prometheus over HTTP at this loopback address, such as 127.0.0.1:9435' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand run" -l statistics -d 'Keep the counters in this file, so that metrics go on after a restart' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand run" -l log -d 'Log with time and level, and with the connection: text, or json for an object in each line' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand run" -l log-level -d 'With --log: error, warn, info, or debug, which names every connection. [default: info]' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand run" -l seed -d 'Instead of the file\'s seed' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand run" -l set -d 'Change a key, such as links.satellite.forward.rate=8Mbit/s. Repeatable' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand run" -l pcap -d 'Capture this link\'s packets in LINK.pcapng. Repeatable' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand run" -l snap -d 'Capture at most so many bytes of each packet; 100 holds all headers' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand run" -l check -d 'Say what would be set up, and what is in the way'
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand run" -l clean -d 'Remove what a killed one has left, and do nothing else'
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand run" -l json -d 'Print one JSON object and nothing else'
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand run" -s h -l help -d 'Print help'
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand status" -l socket -d 'The control socket of the gateway' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand status" -l json -d 'Print one JSON object and nothing else'
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand status" -s h -l help -d 'Print help'
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand connections" -l socket -d 'The control socket of the gateway' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand connections" -l first -d 'Leave out so many connections' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand connections" -l limit -d 'List at most so many connections' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand connections" -l json -d 'Print one JSON object and nothing else'
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand connections" -s h -l help -d 'Print help'
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand metrics" -l socket -d 'The control socket of the gateway' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand metrics" -l json -d 'Print one JSON object and nothing else'
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand metrics" -s h -l help -d 'Print help'
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand reload" -l socket -d 'The control socket of the gateway' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand reload" -l json -d 'Print one JSON object and nothing else'
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand reload" -s h -l help -d 'Print help'
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand drain" -l socket -d 'The control socket of the gateway' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand drain" -l within -d 'Then end all the same, and reset the connections that are left' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand drain" -l json -d 'Print one JSON object and nothing else'
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand drain" -s h -l help -d 'Print help'
