// SPDX-License-Identifier: Apache-2.0
//! A connection under test: what happens to it, and what is expected of it.

use std::collections::HashMap;
use std::time::Duration;

use fastrand::Rng;
use nacelle_roce::{Completion, ConnId, Instant};

use crate::caller::Caller;
use crate::pair::Pair;
use crate::plan::Plan;
use crate::report::Report;
use crate::world::World;

/// Why a connection may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// One of its nodes was down.
    Crash,
    /// The way between its nodes was cut for longer than retries bridge.
    Cut,
    /// One side has closed it.
    Closed,
}

/// What is known of a connection.
pub(crate) struct Watch {
    pub(crate) serial: u64,
    pub(crate) nodes: [usize; 2],
    pub(crate) cause: Option<Cause>,
    /// Since when it is about to end.
    pub(crate) ending: Option<Instant>,
    /// When it last made progress, or could do so again.
    pub(crate) moved: Instant,
}

impl Watch {
    /// It has begun to end, if it has not before.
    pub(crate) fn end(&mut self, now: Instant) {
        self.ending.get_or_insert(now);
    }

    /// It may fail from now on.
    pub(crate) fn excuse(&mut self, cause: Cause) {
        self.cause.get_or_insert(cause);
    }
}

/// What is around a connection.
pub(crate) struct Around<'a> {
    pub(crate) world: &'a mut World,
    pub(crate) rng: &'a mut Rng,
    pub(crate) report: &'a mut Report,
    pub(crate) plan: &'a Plan,
    /// Whose a connection of a node is, and which side.
    pub(crate) owners: &'a mut HashMap<(usize, ConnId), (u64, usize)>,
}

/// What is done on it.
pub(crate) enum Body {
    /// Between two endpoints.
    Pair(Box<Pair>),
    /// Of an endpoint with a device.
    Caller(Caller),
}

/// A connection.
pub(crate) struct Session {
    pub(crate) watch: Watch,
    pub(crate) body: Body,
}

impl Session {
    /// The endpoint that the connection was opened to is asked for it.
    pub(crate) fn requested(&mut self, around: &mut Around<'_>, conn: ConnId) -> bool {
        match &mut self.body {
            Body::Pair(pair) => pair.requested(around, &self.watch, conn),
            Body::Caller(_) => false,
        }
    }

    pub(crate) fn connected(&mut self, around: &mut Around<'_>, side: usize) {
        self.watch.moved = around.world.now;
        match &mut self.body {
            Body::Pair(pair) => pair.connected(side),
            Body::Caller(caller) => caller.connected(around, &self.watch),
        }
    }

    pub(crate) fn completed(&mut self, around: &mut Around<'_>, side: usize, completion: &Completion) {
        self.watch.moved = around.world.now;
        match &mut self.body {
            Body::Pair(pair) => pair.completed(around, &mut self.watch, side, completion),
            Body::Caller(caller) => caller.completed(around, &mut self.watch, completion),
        }
    }

    /// A side has no connection any more, because its endpoint says so.
    pub(crate) fn ended(&mut self, around: &mut Around<'_>, side: usize, why: &str) {
        assert!(
            self.watch.cause.is_some(),
            "at {:?} side {side} failed without a cause, {why}: {}",
            around.world.now,
            self.describe()
        );
        *around.report.ends.entry(why.to_owned()).or_default() += 1;
        if let Some(since) = self.watch.ending {
            around.report.worst_end = around.report.worst_end.max(around.world.now - since);
        }
        self.watch.end(around.world.now);
        match &mut self.body {
            Body::Pair(pair) => pair.ended(around, side),
            Body::Caller(caller) => caller.ended(around, &self.watch),
        }
    }

    /// A node has crashed.
    pub(crate) fn crashed(&mut self, now: Instant, node: usize) {
        if !self.watch.nodes.contains(&node) {
            return;
        }
        self.watch.excuse(Cause::Crash);
        let doomed = match &mut self.body {
            Body::Pair(pair) => pair.crashed(node),
            Body::Caller(caller) => caller.crashed(node, &self.watch),
        };
        if doomed {
            self.watch.end(now);
        }
    }

    /// Goes on with the work of one side. Returns when to be asked again.
    pub(crate) fn act(&mut self, around: &mut Around<'_>, side: usize) -> Option<Duration> {
        if self.watch.ending.is_some() {
            return None;
        }
        match &mut self.body {
            Body::Pair(pair) => pair.act(around, &mut self.watch, side),
            Body::Caller(caller) => caller.act(around, &mut self.watch),
        }
        Some(around.plan.think(around.rng))
    }

    /// Does little more of what was to be done.
    pub(crate) fn hurry(&mut self) {
        match &mut self.body {
            Body::Pair(pair) => pair.hurry(),
            Body::Caller(caller) => caller.hurry(),
        }
    }

    /// One side closes it now, whatever it is doing.
    pub(crate) fn close(&mut self, around: &mut Around<'_>) {
        match &mut self.body {
            Body::Pair(pair) => pair.close(around, &mut self.watch),
            Body::Caller(caller) => caller.close(around, &mut self.watch),
        }
    }

    /// Whether no side has it any more.
    pub(crate) fn is_over(&self) -> bool {
        match &self.body {
            Body::Pair(pair) => pair.is_over(),
            Body::Caller(caller) => caller.is_over(),
        }
    }

    /// Looks at what is left when it is over.
    pub(crate) fn finish(&self) {
        if let Body::Pair(pair) = &self.body {
            pair.finish(&self.watch);
        }
    }

    /// Its state in one line.
    pub(crate) fn describe(&self) -> String {
        let Watch { serial, nodes, cause, ending, moved } = &self.watch;
        let body = match &self.body {
            Body::Pair(pair) => pair.describe(),
            Body::Caller(caller) => caller.describe(),
        };
        format!("connection {serial} of nodes {nodes:?}, cause {cause:?}, ending {ending:?}, moved {moved:?}: {body}")
    }
}
