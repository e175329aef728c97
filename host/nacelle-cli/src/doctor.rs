// SPDX-License-Identifier: Apache-2.0
//! `nacelle doctor`: everything that a call needs, one step after the other, until one fails.

mod endpoint;
mod way;

use nacelle::{Error, LinkKind};
use serde::Serialize;

use crate::args::{Cli, DoctorArgs};
use crate::failure::Failure;
use crate::output::{print, print_json};

/// The steps on each link, in order.
const BY_UDP: [&str; 10] = [
    "address",
    "link",
    "route",
    "interface",
    "path MTU",
    "local port",
    "device's host",
    "connection",
    "description",
    "memory",
];
const BY_WIRE: [&str; 8] =
    ["address", "link", "wire", "path MTU", "device's host", "connection", "description", "memory"];
/// By shared memory, and on an interface.
const DIRECTLY: [&str; 7] = ["address", "link", "path MTU", "device's host", "connection", "description", "memory"];
/// By an RDMA NIC.
const BY_NIC: [&str; 8] =
    ["address", "link", "route", "RDMA device", "libraries", "connection", "description", "memory"];
/// The last step on all of them.
const LAST: &str = "round trip";

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Ok,
    Fail,
    /// Not tried, since an earlier one failed.
    Skipped,
}

#[derive(Debug, Serialize)]
struct Step {
    step: &'static str,
    outcome: Outcome,
    /// What was found.
    found: String,
    #[serde(rename = "try")]
    hint: Option<String>,
}

/// What is wrong, and what to do about it.
struct Fault {
    what: String,
    hint: String,
}

impl Fault {
    fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), hint: hint.into() }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::new(error.to_string(), error.hint())
    }
}

impl From<nacelle_link::LinkError> for Fault {
    fn from(error: nacelle_link::LinkError) -> Self {
        Error::from(error).into()
    }
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        Self::new(failure.message(), failure.hint())
    }
}

/// The steps so far.
struct Examination<'a> {
    cli: &'a Cli,
    args: &'a DoctorArgs,
    /// The link, once it is chosen.
    link: Option<LinkKind>,
    steps: Vec<Step>,
}

impl Examination<'_> {
    /// Does a step. `check` returns what later steps need, and what was found in words.
    fn step<T>(
        &mut self,
        step: &'static str,
        check: impl FnOnce() -> Result<(T, String), Fault>,
    ) -> Result<T, StepEnd> {
        let (value, step) = match check() {
            Ok((value, found)) => (Ok(value), Step { step, outcome: Outcome::Ok, found, hint: None }),
            Err(Fault { what, hint }) => {
                (Err(StepEnd::Stopped), Step { step, outcome: Outcome::Fail, found: what, hint: Some(hint) })
            }
        };
        self.tell(&step).map_err(StepEnd::Failed)?;
        self.steps.push(step);
        value
    }

    fn tell(&self, step: &Step) -> Result<(), Failure> {
        if self.cli.json {
            return Ok(());
        }
        let outcome = match step.outcome {
            Outcome::Ok => "ok",
            Outcome::Fail => "FAIL",
            Outcome::Skipped => "-",
        };
        print(&format!("{outcome:4}  {:13}  {}\n", step.step, step.found))
    }

    /// Notes the steps that were not tried.
    fn skip_rest(&mut self) -> Result<(), Failure> {
        let steps: &[_] = match self.link {
            Some(LinkKind::Wire) => &BY_WIRE,
            Some(LinkKind::Shm | LinkKind::Packet | LinkKind::Xdp) => &DIRECTLY,
            Some(LinkKind::Verbs) => &BY_NIC,
            Some(LinkKind::Udp) | None => &BY_UDP,
        };
        for step in steps.iter().copied().chain([LAST]).skip(self.steps.len()) {
            let step = Step { step, outcome: Outcome::Skipped, found: "not tried".into(), hint: None };
            self.tell(&step)?;
            self.steps.push(step);
        }
        Ok(())
    }
}

/// Why the steps do not go on.
enum StepEnd {
    /// One has failed, and those that follow need it.
    Stopped,
    /// The result cannot be printed.
    Failed(Failure),
}

pub(crate) fn doctor(cli: &Cli, args: &DoctorArgs) -> Result<(), Failure> {
    let mut examination = Examination { cli, args, link: None, steps: Vec::new() };
    let ended = way::examine(&mut examination).and_then(|device| endpoint::examine(&mut examination, &device));
    if let Err(StepEnd::Failed(failure)) = ended {
        return Err(failure);
    }
    let healthy = ended.is_ok();
    examination.skip_rest()?;
    let steps = &examination.steps;
    if cli.json {
        print_json(&serde_json::json!({ "device": args.device, "healthy": healthy, "steps": steps }))?;
    }
    match steps.iter().find(|step| step.outcome == Outcome::Fail) {
        Some(Step { step, found, hint, .. }) => {
            Err(Failure::diagnosed(format!("{step}: {found}"), hint.clone().unwrap_or_default()))
        }
        None => {
            eprintln!("{} can be called", args.device);
            Ok(())
        }
    }
}
