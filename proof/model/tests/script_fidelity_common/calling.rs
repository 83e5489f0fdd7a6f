//! Random requests to the shipped backend: every operation, for each kind, in each mode.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use locktopus_core::{
    AcquireAttempt, Counters as _, Directory as _, Fence, FencingToken, Groups as _, Linger,
    LockBackend as _, LockKind, LockName, LockTarget, OwnerId, ReplicaNeed, SafetyMode, WakeStream,
    WakeUps as _,
};
use locktopus_model::{Rng, was_here};
use locktopus_protocol::{
    BackendOptions, Deployment, GuardedWriter, Keys, RedisBackend, RedisClient,
};
use tokio::time::Instant;

use super::focus::{Asked, Focus, KINDS, MODES, Mode, kind_named};
use super::recorder::{Recorder, Recording, locked};
use super::scene::{LEASES, PLACES, Process, Scene, permits};
use super::steps::Step;

const SECOND: Duration = Duration::from_secs(1);
/// Pauses between two calls, in milliseconds.
const LAPSES: [i64; 4] = [35_000, 35_000, 70_000, 140_000];
const NAMES: [&str; 3] = ["it", "{user:7}:cart", "a b"];

/// The callers: for each mode one that listens and one that does not.
#[derive(Debug)]
pub(crate) struct Callers {
    recorder: Arc<Mutex<Recorder>>,
    processes: Vec<Process>,
    /// Kept to stay subscribed.
    listening: Vec<WakeStream>,
}

impl Callers {
    pub(crate) async fn connect(recorder: &Arc<Mutex<Recorder>>) -> Self {
        let mut callers = Self {
            recorder: Arc::clone(recorder),
            processes: Vec::new(),
            listening: Vec::new(),
        };
        for (at, mode) in MODES.iter().flat_map(|mode| [*mode; 2]).enumerate() {
            let deployment = match mode {
                Mode::Cluster => Deployment::Cluster,
                _ => Deployment::Standalone,
            };
            let safety = match mode {
                Mode::Plain | Mode::Cluster => SafetyMode::Plain,
                Mode::Quarantine => SafetyMode::Quarantine {
                    max_lease: Duration::from_secs(200),
                },
                Mode::Replicated => SafetyMode::Replicated {
                    need: ReplicaNeed::All,
                    timeout: SECOND / 2,
                },
            };
            let options = BackendOptions {
                safety,
                ..BackendOptions::default()
            };
            let client: Arc<dyn RedisClient> = Arc::new(Recording::new(recorder, at, deployment));
            let backend = RedisBackend::new(Arc::clone(&client), options)
                .await
                .unwrap();
            // Every second caller listens.
            if at.is_multiple_of(2) {
                for (name, kind) in NAMES.iter().flat_map(|name| KINDS.map(|kind| (name, kind))) {
                    let target = LockTarget::new(LockName::new(*name).unwrap(), kind_named(kind));
                    if Keys::of(&target).channel.is_some() {
                        let stream = backend.subscribe(&target, Instant::now() + SECOND).await;
                        callers.listening.push(stream.unwrap());
                    }
                }
            }
            callers.processes.push(Process {
                mode,
                backend,
                writer: GuardedWriter::new(client),
            });
        }
        callers
    }

    /// Makes so many requests in a row. In between, time passes and another client changes keys.
    pub(crate) async fn call(&self, focus: &Focus, rng: &mut Rng, requests: usize) {
        self.call_among(focus, rng, requests, (2, 5)).await;
    }

    /// The same for one or two names and so many owners: the fewer there are, the more the requests
    /// meet.
    pub(crate) async fn call_among(
        &self,
        focus: &Focus,
        rng: &mut Rng,
        requests: usize,
        (names, owners): (u64, usize),
    ) {
        let with_mode = self.processes.iter().filter(|it| it.mode == focus.mode);
        let first = rng.below(3);
        let scene = Scene {
            focus,
            names: [0, names - 1]
                .map(|at| NAMES[usize::try_from(first + at).unwrap() % NAMES.len()]),
            owners: (0..owners).map(|_| focus.kind.new_owner()).collect(),
            permit_owners: (0..owners)
                .map(|_| LockKind::PermitSemaphore.new_owner())
                .collect(),
            operations: [(); 4].map(|()| OwnerId::generate()).to_vec(),
            processes: with_mode.collect(),
        };
        let paces = [(); 7].map(|()| rng.between(1, 3_000)).to_vec();
        locked(&self.recorder).set_paces(paces);
        if focus.mode == Mode::Quarantine && rng.permille(700) {
            self.end_quarantine();
        }
        for _ in 0..requests {
            match rng.below(100) {
                0..6 => {
                    let millis = *rng.pick(&LAPSES);
                    locked(&self.recorder).run(Step::Lapse(millis));
                    let passed = Duration::from_millis(millis.unsigned_abs());
                    tokio::time::advance(passed).await;
                }
                6..9 => self.disturb(&scene, rng),
                _ => self.ask(&scene, rng).await,
            }
        }
    }

    fn end_quarantine(&self) {
        let mut recorder = locked(&self.recorder);
        let words = was_here(&recorder.modelled.server.replid);
        recorder.run(Step::Command(words));
    }

    /// Another client changes one of the keys.
    fn disturb(&self, scene: &Scene<'_>, rng: &mut Rng) {
        const DONE: [&[&str]; 11] = [
            &["DEL", ""],
            &["DEL", ""],
            &["SET", "", "x"],
            &["SET", "", "2"],
            &["HSET", "", "a", "b"],
            &["RPUSH", "", "x"],
            &["SADD", "", "x"],
            &["ZADD", "", "1", "x"],
            &["PERSIST", ""],
            &["PEXPIRE", "", "100000"],
            &["HSET", "", "mode", "read"],
        ];
        let names = Keys::of(&scene.target(rng)).names;
        let mut words: Vec<Vec<u8>> = rng
            .pick(&DONE)
            .iter()
            .map(|word| word.as_bytes().to_vec())
            .collect();
        words[1] = rng.pick(&names).clone().into_bytes();
        locked(&self.recorder).run(Step::Command(words));
    }

    async fn ask(&self, scene: &Scene<'_>, rng: &mut Rng) {
        const MOSTLY: [Asked; 16] = [
            Asked::Attempt,
            Asked::Attempt,
            Asked::Attempt,
            Asked::Attempt,
            Asked::Attempt,
            Asked::Release,
            Asked::Release,
            Asked::Release,
            Asked::Extend,
            Asked::Linger,
            Asked::Inspect,
            Asked::Evict,
            Asked::Count,
            Asked::Group,
            Asked::Count,
            Asked::List,
        ];
        let asked = if rng.permille(500) {
            scene.focus.asked
        } else {
            *rng.pick(&MOSTLY)
        };
        let process = *rng.pick(&scene.processes);
        let (backend, target) = (&process.backend, scene.target(rng));
        // The script refuses a request that is too late.
        let patience = *rng.pick(&[1_000_000, 1_000_000, 1_000_000, 1]);
        let deadline = Instant::now() + Duration::from_micros(patience);
        // Errors count as replies, and must be the same on both servers.
        match asked {
            Asked::Attempt => {
                let attempt = self.attempt(scene, rng, target, deadline);
                let _ = backend.attempt(&attempt).await;
            }
            Asked::Release | Asked::Linger => {
                let mut request = scene.release(rng, target, deadline);
                if asked == Asked::Linger && request.target.kind().can_linger() {
                    let heir = scene.owner(rng, request.target.kind());
                    let time = Duration::from_secs(20);
                    request.linger = Some(Linger { heir, time });
                }
                let _ = backend.release(&request).await;
            }
            Asked::Extend => {
                let shard = backend.shard(&target);
                let targets = [target.clone(), target.clone(), scene.target(rng)];
                let same =
                    |it: &LockTarget| backend.shard(it) == shard && it.kind() == target.kind();
                let batch = targets.into_iter().filter(same);
                let batch: Vec<_> = batch.map(|it| scene.extension(rng, it)).collect();
                let _ = backend.extend(&batch, deadline).await;
            }
            Asked::Inspect => drop(backend.inspect(&target, deadline).await),
            Asked::Evict => drop(backend.evict(&target, deadline).await),
            Asked::Count => drop(backend.counter(&scene.counter(rng, target, deadline)).await),
            Asked::Group => {
                let second = scene.member(rng, scene.names[0]);
                let targets = [second, scene.member(rng, scene.names[1])];
                let group = backend.group(&targets[0]);
                let members = targets.into_iter().filter(|it| backend.group(it) == group);
                let members = members.map(|it| self.attempt(scene, rng, it, deadline));
                let members: Vec<_> = members.collect();
                let _ = backend.attempt_all(&members).await;
            }
            Asked::Crowd => {
                // Only calls with as many arguments travel together.
                let like = self.attempt(scene, rng, target, deadline);
                let attempts = [(); 7].map(|()| {
                    let name = LockName::new(*rng.pick(&scene.names)).unwrap();
                    let target = LockTarget::new(name, LockKind::Reentrant);
                    AcquireAttempt {
                        place: like.place,
                        recall: like.recall,
                        first: like.first,
                        ..self.attempt(scene, rng, target, deadline)
                    }
                });
                let [a, b, c, d, e, f, g] = attempts.each_ref().map(|it| backend.attempt(it));
                let _ = tokio::join!(a, b, c, d, e, f, g);
            }
            Asked::Write => self.write(process, scene, rng).await,
            Asked::List => drop(backend.scan("", None, deadline).await),
        }
    }

    async fn write(&self, process: &Process, scene: &Scene<'_>, rng: &mut Rng) {
        let token = FencingToken::new(5 + rng.below(3)).unwrap();
        let target = scene.target(rng);
        let mut fence = Fence::new(&target, token);
        if rng.permille(700) {
            fence = fence.held_by(&scene.owner(rng, target.kind()));
        }
        let keep = *rng.pick(&[None, Some(60), Some(200)]);
        let writer = process.writer.clone();
        let writer = writer.keep_fences(keep.map(Duration::from_secs));
        let keys: [&[u8]; 3] = [b"doc", b"{user:7}:doc", b"it"];
        let key = *rng.pick(&keys);
        let ttl = Duration::from_secs(*rng.pick(&LEASES));
        let _ = match rng.below(4) {
            0 => writer.delete(&fence, key).await,
            1 => writer.set_expiring(&fence, key, b"x", ttl).await,
            _ => writer.set(&fence, key, b"value").await,
        };
    }

    fn attempt(
        &self,
        scene: &Scene<'_>,
        rng: &mut Rng,
        target: LockTarget,
        deadline: Instant,
    ) -> AcquireAttempt {
        let owner = scene.owner(rng, target.kind());
        let lease = Duration::from_secs(*rng.pick(&LEASES));
        let permits = permits(&target, &owner);
        let tokens = if target.kind().has_tokens() {
            *rng.pick(&[1, 1, 16])
        } else {
            0
        };
        let ahead = locked(&self.recorder).clock() + 5_000;
        let ahead = FencingToken::new(ahead.unsigned_abs());
        let place = *rng.pick(&[None, Some(PLACES[0]), Some(PLACES[1])]);
        AcquireAttempt {
            permits,
            tokens,
            floor: ahead.filter(|_| rng.permille(200)),
            place: place.map(Duration::from_secs),
            recall: rng.permille(400),
            first: rng.permille(300),
            ..AcquireAttempt::new(target, owner, lease, deadline)
        }
    }
}
