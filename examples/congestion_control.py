"""A congestion control of your own: Reno that gives up a tenth of its window on a loss, not half.

`bentpipe run leo-pass --python examples/congestion_control.py
--set hosts.server.tcp.congestion_control=gentle` runs a scenario with it.
"""

import bentpipe


@bentpipe.congestion_control("gentle")
class Gentle:
    def on_ack(self, window, ack):
        # Congestion avoidance: a segment more each round trip. Windows are in bytes.
        window.congestion_window += window.segment * ack.acknowledged / window.congestion_window

    def on_congestion(self, window, event, flight_size, now_s):
        window.slow_start_threshold = max(0.9 * flight_size, 2 * window.segment)
        window.congestion_window = window.slow_start_threshold
        if event == "timeout":
            window.congestion_window = window.segment


if __name__ == "__main__":
    for name in ("reno", "gentle"):
        result = bentpipe.run("leo-pass", settings={"hosts.server.tcp.congestion_control": name})
        print(f"{name}: {result.flow().goodput_bps / 1e6:.1f} Mbit/s")
