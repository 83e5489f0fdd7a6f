//! Random courses: the requests of the shipped backend, as in the comparison with real servers.

use std::sync::Arc;

use locktopus_core::{LockKind, MutexProfile};
use locktopus_model::Rng;
use locktopus_model::transcripts::course::{Course, Step};
use locktopus_model::transcripts::play::REPLID;

use crate::random::calling::Callers;
use crate::random::focus::Focus;
use crate::random::recorder::{Recorder, locked};
use crate::random::steps::{self, shipped};

/// The number of requests in a course.
const REQUESTS: [usize; 3] = [6, 12, 24];

/// So many courses about each shipped text.
pub(super) fn courses(of_each: u64, seed: u64) -> Vec<Course> {
    let texts = shipped();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let mut rng = Rng::new(seed);
    runtime.block_on(async {
        let recorder = Recorder::new(&texts, REPLID);
        locked(&recorder).dumped_every = usize::MAX;
        let callers = Callers::connect(&recorder).await;
        let mut courses = Vec::new();
        for text in &texts {
            for _ in 0..of_each {
                let name = *rng.pick(&text.names);
                let mut focus = Focus::on(name, &mut rng);
                if focus.kind == LockKind::Mutex(Arc::default()) && rng.permille(300) {
                    focus.kind = LockKind::Mutex(Arc::new(MutexProfile::single_key()));
                }
                let requests = *rng.pick(&REQUESTS);
                let among = *rng.pick(&[(2, 5), (1, 3), (1, 2)]);
                callers.call_among(&focus, &mut rng, requests, among).await;
                let course = taken(&recorder, &texts);
                if course.scripts().next().is_some() {
                    courses.push(course);
                }
            }
        }
        courses
    })
}

/// The steps since the last call. It empties the server.
fn taken(recorder: &Arc<std::sync::Mutex<Recorder>>, texts: &[steps::Shipped]) -> Course {
    let mut recorder = locked(recorder);
    let done = std::mem::take(&mut recorder.done);
    recorder.modelled.server.keys.clear();
    recorder.modelled.server.take_published();
    recorder.modelled.server.take_changes();
    let listening = recorder.listening.iter().map(|one| Step::Listen {
        sharded: one.sharded,
        channel: one.channel.clone(),
        count: recorder
            .listening
            .iter()
            .filter(|it| (it.sharded, &it.channel) == (one.sharded, &one.channel))
            .count(),
    });
    let mut steps: Vec<(Step, Vec<String>)> = Vec::new();
    let done: Vec<Step> = done
        .into_iter()
        .filter_map(|one| step(one.step, texts))
        .collect();
    // Only channels in use: a script may get one to publish on.
    let used = |channel: &[u8]| {
        done.iter().any(|step| match step {
            Step::Call { arguments, .. } => arguments.iter().any(|word| word == channel),
            _ => false,
        })
    };
    for step in listening {
        if let Step::Listen { channel, .. } = &step
            && used(channel)
            && !steps.iter().any(|(known, _)| *known == step)
        {
            steps.push((step, Vec::new()));
        }
    }
    steps.extend(done.into_iter().map(|step| (step, Vec::new())));
    Course {
        why: String::new(),
        advances: false,
        steps,
    }
}

/// Pauses show in the clocks of later calls.
fn step(step: steps::Step, texts: &[steps::Shipped]) -> Option<Step> {
    match step {
        steps::Step::Call {
            script,
            keys,
            arguments,
            clock,
        } => Some(Step::Call {
            script: texts[script].names[0].to_owned(),
            clock,
            keys,
            arguments,
        }),
        steps::Step::Command(words) => Some(Step::Command(words)),
        steps::Step::Lapse(_) => None,
    }
}
