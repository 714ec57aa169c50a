//! `bentpipe-live witness`: runs the kernel's congestion control over one of our links.

use bentpipe_live::witness::{self, Request};
use bentpipe_types::{BitRate, Span};
use lexopt::prelude::*;

use super::Outcome;

pub(super) const USAGE: &str = "\
bentpipe-live witness --congestion-control NAME [--rate BIT/S] [--delay MS] [--queue PACKETS]
                      [--return-rate BIT/S] [--return-queue PACKETS] [--loss P]
                      [--seed N] [--mtu BYTES] [--seconds S] [--upload]
                      [--receive-buffer 'N N N'] [--send-buffer 'N N N'] [--capture DIR]

  One connection of the kernel's, over a link with this rate, one-way delay and drop-tail queue.
  With --upload the receiver sends, too, over a connection that is opened a second later.
  Packets towards the receiver are lost with probability P. The buffers are tcp_rmem and tcp_wmem:
  without the options so large that they never limit. Writes a JSON object: what had arrived by when.
";

pub(super) fn run(mut arguments: lexopt::Parser) -> Outcome {
    let mut request = Request {
        congestion_control: String::new(),
        rate: BitRate::new(10_000_000).ok_or("no rate")?,
        delay: Span::from_millis(50),
        return_rate: BitRate::new(10_000_000).ok_or("no rate")?,
        loss: 0.0,
        seed: 1,
        buffers: [
            witness::UNLIMITED_BUFFERS.to_owned(),
            witness::UNLIMITED_BUFFERS.to_owned(),
        ],
        queue_packets: 100,
        return_queue_packets: 100,
        mtu: 1500,
        duration: Span::from_secs(30),
        upload: false,
        interval: Span::from_millis(100),
        capture: None,
    };
    let mut return_rate = None;
    let mut return_queue = None;
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("congestion-control") => {
                request.congestion_control = arguments.value()?.string()?
            }
            Long("rate") => {
                let rate = BitRate::new(arguments.value()?.parse()?);
                request.rate = rate.ok_or("--rate: not 0")?;
            }
            Long("return-rate") => {
                let rate = BitRate::new(arguments.value()?.parse()?);
                return_rate = Some(rate.ok_or("--return-rate: not 0")?);
            }
            Long("return-queue") => return_queue = Some(arguments.value()?.parse()?),
            Long("loss") => request.loss = arguments.value()?.parse()?,
            Long("seed") => request.seed = arguments.value()?.parse()?,
            Long("receive-buffer") => request.buffers[0] = arguments.value()?.string()?,
            Long("send-buffer") => request.buffers[1] = arguments.value()?.string()?,
            Long("delay") => request.delay = Span::from_millis(arguments.value()?.parse()?),
            Long("queue") => request.queue_packets = arguments.value()?.parse()?,
            Long("mtu") => request.mtu = arguments.value()?.parse()?,
            Long("seconds") => request.duration = Span::from_secs(arguments.value()?.parse()?),
            Long("upload") => request.upload = true,
            Long("capture") => request.capture = Some(arguments.value()?.into()),
            Long("help") => {
                print!("usage: {USAGE}");
                return Ok(true);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    request.return_rate = return_rate.unwrap_or(request.rate);
    request.return_queue_packets = return_queue.unwrap_or(request.queue_packets);
    if !(0.0..=1.0).contains(&request.loss) {
        return Err("--loss: from 0 to 1".into());
    }
    if request.congestion_control.is_empty() {
        return Err("--congestion-control is missing".into());
    }
    if let Some(directory) = &request.capture {
        std::fs::create_dir_all(directory)?;
    }
    let report = witness::run(&request)?;
    println!("{}", serde_json::to_string(&report)?);
    Ok(true)
}
