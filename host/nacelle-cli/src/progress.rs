// SPDX-License-Identifier: Apache-2.0
//! How far a long call has come, on a terminal.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use nacelle::{Call, Error, Transferred};

/// A call that ends earlier shows nothing.
const SHOWN_AFTER: Duration = Duration::from_secs(1);
/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const TEMPLATE: &str = "{msg:>9} [{bar:32}] {bytes} of {total_bytes}, {binary_bytes_per_sec}";

/// Waits for a call, and shows how far it has come if it takes long and stderr is a terminal, unless that is not wanted.
///
/// # Errors
/// Those of [`Call::wait`].
pub(crate) fn wait(call: &mut Call, unwanted: bool) -> Result<(), Error> {
    if unwanted || !std::io::stderr().is_terminal() {
        return call.wait();
    }
    if call.wait_timeout(SHOWN_AFTER)? {
        return Ok(());
    }
    let Transferred { to_send, to_receive, .. } = call.transferred();
    let bar = ProgressBar::new(to_send + to_receive);
    if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
        bar.set_style(style.progress_chars("=> "));
    }
    let ended = loop {
        let now = call.transferred();
        bar.set_message(phase(&now));
        bar.set_position(now.sent + now.received);
        match call.wait_timeout(LOOK_EVERY) {
            Ok(false) => {}
            ended => break ended.map(|_| ()),
        }
    };
    // What follows begins on an empty line.
    bar.finish_and_clear();
    ended
}

/// What the call does now.
fn phase(now: &Transferred) -> &'static str {
    if now.received > 0 {
        "receiving"
    } else if now.sent < now.to_send {
        "sending"
    } else {
        "computing"
    }
}
