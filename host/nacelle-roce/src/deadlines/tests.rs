// SPDX-License-Identifier: Apache-2.0
//! Deadlines against a list that is searched.

use super::Deadlines;
use crate::Instant;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// What is done with the deadlines.
#[derive(Clone, Copy, Debug)]
enum Step {
    BringForward(u32, u64),
    Clear(u32),
    /// So much time passes, and all that is due is taken.
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..40u32, 0..100u64).prop_map(|(number, after)| Step::BringForward(number, after)),
        1 => (0..40u32).prop_map(Step::Clear),
        1 => (0..60u64).prop_map(Step::Pass),
    ]
}

proptest! {
    /// Each deadline comes when its time has come and not before, the earliest first, and equal ones by their numbers.
    #[test]
    fn each_comes_in_its_time(steps in proptest::collection::vec(step(), 0..300)) {
        let mut deadlines = Deadlines::default();
        let mut model = BTreeMap::new();
        let mut now = 0;
        for step in steps {
            match step {
                Step::BringForward(number, after) => {
                    let at = now + after;
                    deadlines.bring_forward(number, Instant::from_nanos(at));
                    let kept = model.entry(number).or_insert(at);
                    *kept = at.min(*kept);
                }
                Step::Clear(number) => {
                    deadlines.clear(number);
                    model.remove(&number);
                }
                Step::Pass(time) => {
                    now += time;
                    let mut due: Vec<(u64, u32)> =
                        model.extract_if(.., |_, at| *at <= now).map(|(number, at)| (at, number)).collect();
                    due.sort_unstable();
                    let popped = std::iter::from_fn(|| deadlines.pop(Instant::from_nanos(now)));
                    let due: Vec<u32> = due.into_iter().map(|(_, number)| number).collect();
                    prop_assert_eq!(popped.collect::<Vec<_>>(), due);
                }
            }
            prop_assert_eq!(deadlines.first(), model.values().min().map(|at| Instant::from_nanos(*at)));
        }
    }
}
