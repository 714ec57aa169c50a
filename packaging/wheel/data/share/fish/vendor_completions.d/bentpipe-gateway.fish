# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_bentpipe_gateway_global_optspecs
    string join \n gateway= link= interface= shape= address= peer= duration= check clean seed= set= pcap= snap= json h/help V/version
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
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -l gateway -d 'The file\'s gateway that this machine is' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -l link -d 'Or the link that it is, with its delay and losses: a satellite for a laboratory' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -l interface -d 'The interface behind which a link of the gateway is (or, of --link, a node). Twice or more' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -l shape -d 'Send there at the file\'s rate, from the file\'s queue. Repeatable' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -l address -d 'With multiplex: this gateway\'s end of the persistent connections. An address of the network on its hosts\' side that nobody has' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -l peer -d 'The other gateway\'s, likewise' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -l duration -d 'End after so long, such as "60 s". [default: on a signal]' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -l seed -d 'Instead of the file\'s seed' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -l set -d 'Change a key, such as links.satellite.forward.rate=8Mbit/s. Repeatable' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -l pcap -d 'Capture this link\'s packets in LINK.pcapng. Repeatable' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -l snap -d 'Capture at most so many bytes of each packet; 100 holds all headers' -r
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -l check -d 'Say what would be set up, and what is in the way'
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -l clean -d 'Remove what a killed one has left, and do nothing else'
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -l json -d 'Print one JSON object and nothing else'
complete -c bentpipe-gateway -n "__fish_bentpipe_gateway_using_subcommand check" -s h -l help -d 'Print help'
