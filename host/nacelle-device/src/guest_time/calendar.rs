// SPDX-License-Identifier: Apache-2.0
//! Whose turn it is: what each guest has asked the calendar for, and what it is told. Without sockets and devices.
//!
//! Simulated time stands still while a guest runs, and one runs at a time. So guests begin one after the other, by their numbers: what they do in
//! their first moment has an order, too.

use super::protocol::{Message, Op};

/// What a guest has done that no guest may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// Its time is not the calendar's.
    #[error("its time has gone back, or ahead of the calendar's")]
    Time,
    /// It says that it begins while it is there, or something else before.
    #[error("it began twice, or spoke before it began")]
    Start,
    /// It has said what only a calendar says.
    #[error("it sent what only a calendar sends")]
    Direction,
    /// There is no such operation.
    #[error("it sent what is no message")]
    Operation,
}

/// Where a guest is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It has not come yet.
    Expected,
    /// It has come, and is not let begin yet.
    Beginning(Message),
    Running,
    Waiting,
    Gone,
}

#[derive(Debug, Clone, Copy)]
struct Guest {
    state: State,
    /// When it wants to run.
    request: Option<u64>,
    /// The newest time that it knows.
    told: u64,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// A guest runs, or has not come yet: that one.
    Busy(usize),
    /// All wait; this one is to run first, at this time.
    Run(usize, u64),
    /// All wait, and none of them for a time.
    Asleep,
    /// All have gone.
    Over,
}

/// The calendar of some guests. Times are in nanoseconds.
#[derive(Debug)]
pub(crate) struct Calendar {
    now: u64,
    time_of_day: u64,
    runs: u32,
    guests: Vec<Guest>,
}

impl Calendar {
    /// For so many guests, none of which has come. The time of day is in nanoseconds since 1970, at simulated time 0.
    pub(crate) fn new(guests: usize, time_of_day: u64) -> Self {
        let guest = Guest { state: State::Expected, request: None, told: 0 };
        Self { now: 0, time_of_day, runs: 0, guests: vec![guest; guests] }
    }

    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// How often guests were told to run.
    pub(crate) fn runs(&self) -> u32 {
        self.runs
    }

    /// Whether a guest has said that it begins.
    pub(crate) fn has_come(&self, guest: usize) -> bool {
        self.guests[guest].state != State::Expected
    }

    /// Lets time pass, to what no guest has asked to run before.
    pub(crate) fn reach(&mut self, time: u64) {
        debug_assert!(self.guests.iter().all(|guest| guest.request.is_none_or(|request| request >= time)), "{time}");
        self.now = self.now.max(time);
    }

    /// A guest that is expected has said that it begins. It is answered when it may ([`admit`](Self::admit)).
    pub(crate) fn begins(&mut self, number: usize, message: Message) -> Result<(), Violation> {
        match self.guests.get_mut(number) {
            Some(guest) if guest.state == State::Expected && message.op == Op::Start => {
                guest.state = State::Beginning(message);
                Ok(())
            }
            _ => Err(Violation::Start),
        }
    }

    /// The next guest that may begin, if one may: all before it wait, or have gone. With what it is told.
    pub(crate) fn admit(&mut self) -> Option<(usize, Message)> {
        let settled = |guest: &Guest| matches!(guest.state, State::Waiting | State::Gone);
        let next = self.guests.iter().position(|guest| !settled(guest))?;
        let State::Beginning(message) = self.guests[next].state else { return None };
        self.guests[next].state = State::Running;
        self.guests[next].told = self.now;
        Some((next, message.answered(self.now)))
    }

    /// What a guest that has begun says. The answer, unless it is one.
    pub(crate) fn handle(&mut self, number: usize, message: Message) -> Result<Option<Message>, Violation> {
        let (now, time_of_day) = (self.now, self.time_of_day);
        let guest = &mut self.guests[number];
        if !matches!(guest.state, State::Running | State::Waiting) {
            return Err(Violation::Start);
        }
        let mut time = message.time;
        match message.op {
            Op::Ack => return Ok(None),
            Op::Start => return Err(Violation::Start),
            Op::Run => return Err(Violation::Direction),
            Op::Request if time < guest.told => return Err(Violation::Time),
            // One that has not asked for the time since wants to run at once.
            Op::Request => guest.request = Some(time.max(now)),
            Op::Wait => guest.state = State::Waiting,
            // Nobody has let it run by itself, so its time is the one that it was told.
            Op::Update if time < guest.told || time > now => return Err(Violation::Time),
            Op::Update => {}
            Op::Get => {
                guest.told = now;
                time = now;
            }
            Op::GetTimeOfDay => time = time_of_day.saturating_add(now),
        }
        Ok(Some(message.answered(time)))
    }

    /// A guest has gone, for whatever reason.
    pub(crate) fn gone(&mut self, number: usize) {
        self.guests[number] = Guest { state: State::Gone, request: None, told: 0 };
    }

    /// What comes next.
    pub(crate) fn next(&self) -> Next {
        let mut first = Next::Over;
        for (number, guest) in self.guests.iter().enumerate() {
            first = match (guest.state, guest.request, first) {
                (State::Expected | State::Beginning(_) | State::Running, ..) => return Next::Busy(number),
                (State::Gone, _, first) => first,
                // The one with the lower number, if they want the same time.
                (State::Waiting, Some(time), Next::Run(_, earlier)) if earlier <= time => first,
                (State::Waiting, Some(time), _) => Next::Run(number, time),
                (State::Waiting, None, Next::Over) => Next::Asleep,
                (State::Waiting, None, first) => first,
            };
        }
        first
    }

    /// Has a guest run that waits, at the time that it has asked for; what it is told.
    pub(crate) fn run(&mut self, number: usize) -> Message {
        let guest = &mut self.guests[number];
        debug_assert_eq!(guest.state, State::Waiting);
        self.now = self.now.max(guest.request.take().unwrap_or(self.now));
        guest.state = State::Running;
        guest.told = self.now;
        self.runs = self.runs.wrapping_add(1);
        Message { op: Op::Run, number: self.runs, time: self.now }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(calendar: &mut Calendar, guest: usize, op: Op, time: u64) -> Result<Option<u64>, Violation> {
        let message = Message { op, number: 7, time };
        let answer = calendar.handle(guest, message)?;
        Ok(answer.map(|answer| {
            assert_eq!((answer.op, answer.number), (Op::Ack, 7));
            answer.time
        }))
    }

    fn begin(calendar: &mut Calendar, guest: usize) {
        calendar.begins(guest, Message { op: Op::Start, number: 1, time: guest as u64 }).unwrap();
    }

    /// Guests that have begun and wait for these times.
    fn waiting(times: &[u64]) -> Calendar {
        let mut calendar = Calendar::new(times.len(), 0);
        for (guest, time) in times.iter().enumerate() {
            begin(&mut calendar, guest);
            assert_eq!(calendar.admit().map(|(number, _)| number), Some(guest));
            say(&mut calendar, guest, Op::Request, *time).unwrap();
            say(&mut calendar, guest, Op::Wait, u64::MAX).unwrap();
        }
        calendar
    }

    #[test]
    fn guests_begin_by_their_numbers_in_whatever_order_they_come() {
        let mut calendar = Calendar::new(3, 0);
        begin(&mut calendar, 2);
        begin(&mut calendar, 1);
        assert_eq!((calendar.admit(), calendar.next()), (None, Next::Busy(0)));
        begin(&mut calendar, 0);
        for guest in 0..3 {
            let (number, answer) = calendar.admit().unwrap();
            assert_eq!((number, answer.op, answer.number), (guest, Op::Ack, 1));
            assert_eq!((calendar.admit(), calendar.next()), (None, Next::Busy(guest)));
            say(&mut calendar, guest, Op::Wait, 0).unwrap();
        }
        assert_eq!(calendar.next(), Next::Asleep);
    }

    #[test]
    fn the_earliest_runs_and_of_equals_the_first() {
        let mut calendar = waiting(&[30, 10, 10]);
        assert_eq!(calendar.next(), Next::Run(1, 10));
        assert_eq!(calendar.run(1), Message { op: Op::Run, number: 1, time: 10 });
        assert_eq!((calendar.now(), calendar.next()), (10, Next::Busy(1)));
        say(&mut calendar, 1, Op::Request, 40).unwrap();
        say(&mut calendar, 1, Op::Wait, 0).unwrap();
        assert_eq!(calendar.next(), Next::Run(2, 10));
    }

    #[test]
    fn a_later_request_replaces_one_and_an_interrupt_asks_for_now() {
        let mut calendar = waiting(&[1000]);
        calendar.reach(400);
        assert_eq!(say(&mut calendar, 0, Op::Get, u64::MAX), Ok(Some(400)));
        say(&mut calendar, 0, Op::Request, 400).unwrap();
        assert_eq!(calendar.next(), Next::Run(0, 400));
    }

    #[test]
    fn time_that_goes_back_or_ahead_is_refused() {
        let mut calendar = waiting(&[100]);
        calendar.run(0);
        for (op, time) in [(Op::Request, 99), (Op::Update, 99), (Op::Update, 101)] {
            assert_eq!(say(&mut calendar, 0, op, time), Err(Violation::Time), "{op:?} {time}");
        }
        assert_eq!(say(&mut calendar, 0, Op::Update, 100), Ok(Some(100)));
        assert_eq!(say(&mut calendar, 0, Op::Request, u64::MAX), Ok(Some(u64::MAX)));
    }

    #[test]
    fn what_no_guest_says_is_refused() {
        let mut calendar = Calendar::new(2, 0);
        assert_eq!(say(&mut calendar, 0, Op::Get, 0), Err(Violation::Start));
        assert_eq!(calendar.begins(2, Message { op: Op::Start, number: 0, time: 2 }), Err(Violation::Start));
        assert_eq!(calendar.begins(0, Message { op: Op::Get, number: 0, time: 0 }), Err(Violation::Start));
        begin(&mut calendar, 0);
        assert_eq!(calendar.begins(0, Message { op: Op::Start, number: 0, time: 0 }), Err(Violation::Start));
        // Before it is let begin.
        assert_eq!(say(&mut calendar, 0, Op::Wait, 0), Err(Violation::Start));
        calendar.admit().unwrap();
        assert_eq!(say(&mut calendar, 0, Op::Run, 0), Err(Violation::Direction));
        assert_eq!(say(&mut calendar, 0, Op::Start, 0), Err(Violation::Start));
    }

    #[test]
    fn who_goes_holds_nobody_up() {
        let mut calendar = waiting(&[10, 20]);
        calendar.run(0);
        calendar.gone(0);
        assert_eq!(calendar.next(), Next::Run(1, 20));
        calendar.gone(1);
        assert_eq!(calendar.next(), Next::Over);
    }
}
