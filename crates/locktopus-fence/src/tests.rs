use std::cmp::Ordering;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering as Atomic};

use locktopus_contract::{FencingToken, LockKind, LockName, LockTarget, OwnerId};

use super::*;

fn target(name: &str) -> LockTarget {
    LockTarget::new(LockName::new(name).unwrap(), LockKind::Reentrant)
}

fn fence(name: &str, token: u64) -> Fence {
    Fence::new(&target(name), FencingToken::new(token).unwrap())
}

fn owner(id: &str) -> OwnerId {
    OwnerId::from_bytes(id.as_bytes())
}

#[test]
fn words_come_back_as_they_were() {
    for name in ["a", "invoice:42", "{t}:\n.", "\u{1f419}", &"x".repeat(1024)] {
        for fence in [
            fence(name, 1),
            fence(name, (1 << 53) - 1),
            fence(name, 7).held_by(&OwnerId::generate()),
        ] {
            let word = fence.to_string();
            let fits = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
            assert!(word.bytes().all(fits), "{word}");
            assert_eq!(word.parse::<Fence>().unwrap(), fence);
        }
    }
}

/// Each is one step away from a good word.
#[test]
fn other_words_are_refused() {
    let good = "locktopus-fence1.lock.YQ.17.00000000000000ff";
    assert_eq!(good.parse::<Fence>().unwrap().to_string(), good);
    for bad in [
        "",
        "17",
        "locktopus-fence2.lock.YQ.17",
        "locktopus1.lock.YQ.17",
        "locktopus-fence1.Lock.YQ.17",
        "locktopus-fence1..YQ.17",
        "locktopus-fence1.lock..17",
        "locktopus-fence1.lock.YQ==.17",
        "locktopus-fence1.lock.YR.17",
        "locktopus-fence1.lock.gA.17",
        "locktopus-fence1.lock.YQ",
        "locktopus-fence1.lock.YQ.",
        "locktopus-fence1.lock.YQ.0",
        "locktopus-fence1.lock.YQ.017",
        "locktopus-fence1.lock.YQ.+17",
        "locktopus-fence1.lock.YQ.-17",
        "locktopus-fence1.lock.YQ.17 ",
        " locktopus-fence1.lock.YQ.17",
        "locktopus-fence1.lock.YQ.9007199254740992",
        "locktopus-fence1.lock.YQ.99999999999999999999999",
        "locktopus-fence1.lock.YQ.17.",
        "locktopus-fence1.lock.YQ.17.ff",
        "locktopus-fence1.lock.YQ.17.00000000000000FF",
        "locktopus-fence1.lock.YQ.17.+0000000000000ff",
        "locktopus-fence1.lock.YQ.17.00000000000000ff.",
    ] {
        let error = bad.parse::<Fence>().unwrap_err();
        assert!(error.to_string().contains(&format!("{bad:?}")), "{error}");
    }
    let endless = "x".repeat(1 << 20).parse::<Fence>().unwrap_err();
    assert!(endless.to_string().len() < 200, "{endless}");
}

#[test]
fn only_fences_of_one_lock_have_an_order() {
    assert!(fence("a", 1) < fence("a", 2));
    assert_eq!(fence("a", 1).partial_cmp(&fence("b", 2)), None);
    let mutex = LockTarget::new(
        LockName::new("a").unwrap(),
        LockKind::Mutex(Default::default()),
    );
    let of_mutex = Fence::new(&mutex, FencingToken::new(2).unwrap());
    assert_eq!(fence("a", 1).partial_cmp(&of_mutex), None);
    assert!(of_mutex.is_for(&mutex) && !of_mutex.is_for(&target("a")));

    let [x, y] = ["x", "y"].map(|id| fence("a", 3).held_by(&owner(id)));
    assert_eq!(x.partial_cmp(&y), None);
    assert_eq!(x.partial_cmp(&x.clone()), Some(Ordering::Equal));
    assert!(x < fence("a", 4).held_by(&owner("y")));
}

/// The start of the output of `printf "locktopus holder mark:" | sha1sum`: others can recompute it.
#[test]
fn marks_are_stable_and_show_no_id() {
    assert_eq!(HolderMark::of(&owner("")).to_string(), "3f3fcb2ceff2638e");
    let id = OwnerId::generate();
    let text = String::from_utf8(id.expose().to_vec()).unwrap();
    assert!(!text.contains(&HolderMark::of(&id).to_string()));
    assert_ne!(HolderMark::of(&id), HolderMark::of(&OwnerId::generate()));
}

#[test]
fn a_gate_refuses_the_past() {
    let gate = FenceGate::new();
    gate.admit(&fence("a", 5)).unwrap();
    gate.admit(&fence("a", 5)).unwrap();
    gate.admit(&fence("b", 1)).unwrap();
    let mut ran = false;
    let error = gate.with(&fence("a", 4), || ran = true).unwrap_err();
    assert_eq!(
        (error.cause(), error.newest().get()),
        (StaleCause::Overtaken, 5)
    );
    assert_eq!(error.fence(), &fence("a", 4));
    assert!(!ran);
    assert_eq!(
        error.to_string(),
        r#"token 4 of lock "a" is stale: a later holder has been here (newest 5)"#
    );
    assert_eq!(gate.newest(&target("a")).map(FencingToken::get), Some(5));
    assert_eq!(gate.newest(&target("c")), None);
}

#[test]
fn one_token_has_one_holder() {
    let gate = FenceGate::new();
    let by = |id, token| fence("a", token).held_by(&owner(id));
    gate.admit(&by("x", 5)).unwrap();
    let error = gate.admit(&by("y", 5)).unwrap_err();
    assert_eq!(error.cause(), StaleCause::SharedToken);
    // A fence without a mark is admitted, and changes nothing.
    gate.admit(&fence("a", 5)).unwrap();
    gate.admit(&by("y", 5)).unwrap_err();
    gate.admit(&by("x", 5)).unwrap();
    gate.admit(&by("y", 6)).unwrap();
    // A mark that comes later counts too.
    gate.admit(&fence("a", 7)).unwrap();
    gate.admit(&by("x", 7)).unwrap();
    gate.admit(&by("y", 7)).unwrap_err();
}

#[test]
fn several_fences_are_good_together_or_not_at_all() {
    let gate = FenceGate::new();
    gate.admit(&fence("b", 9)).unwrap();
    let error = gate
        .with_all(&[fence("a", 5), fence("b", 8)], || ())
        .unwrap_err();
    assert_eq!(error.fence(), &fence("b", 8));
    assert_eq!(
        gate.newest(&target("a")),
        None,
        "remembered in spite of the refusal"
    );
    gate.with_all(&[fence("a", 5), fence("b", 9)], || ())
        .unwrap();
    gate.with_all(&[fence("a", 7), fence("a", 6)], || ())
        .unwrap_err();
    assert_eq!(gate.newest(&target("a")).map(FencingToken::get), Some(5));
}

#[test]
fn a_panic_inside_leaves_the_gate_working() {
    let gate = FenceGate::new();
    let panics =
        std::panic::AssertUnwindSafe(|| gate.with(&fence("a", 5), || panic!("on purpose")));
    std::panic::catch_unwind(panics).map(drop).unwrap_err();
    gate.admit(&fence("a", 4)).unwrap_err();
    gate.admit(&fence("a", 5)).unwrap();
}

/// Even with little memory, a bounded gate never admits a fence that a gate with full memory
/// refuses.
#[test]
fn a_bounded_gate_forgets_nothing_that_matters() {
    let (bounded, full) = (FenceGate::bounded(16), FenceGate::new());
    let mut seed = 7_u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % below
    };
    let (mut forgotten, mut stale, mut admitted) = (0, 0, 0);
    for now in 100..20_000 {
        // Mostly new grants, and occasionally an old one.
        let age = if random(4) == 0 {
            random(90)
        } else {
            random(3)
        };
        let fence = fence(&format!("lock{}", random(64)), now - age)
            .held_by(&owner(["x", "x", "x", "y"][random(4) as usize]));
        match (bounded.admit(&fence), full.admit(&fence)) {
            (Ok(()), Ok(())) => admitted += 1,
            (Err(_), Err(_)) => stale += 1,
            (Err(error), Ok(())) => {
                assert_eq!(error.cause(), StaleCause::Forgotten);
                assert!(error.newest().get() >= fence.token().get());
                forgotten += 1;
            }
            (Ok(()), Err(error)) => panic!("admitted in spite of {error}"),
        }
    }
    let remembered = (0..64).filter(|n| bounded.newest(&target(&format!("lock{n}"))).is_some());
    assert!(remembered.count() <= 16);
    assert!(
        admitted > 10_000 && stale > 1_000 && forgotten > 100,
        "{admitted} {stale} {forgotten}"
    );
}

/// The gate remembers the holder that is writing, even if its token is old.
#[test]
fn a_full_gate_remembers_the_holder_before_it() {
    let gate = FenceGate::bounded(2);
    for (name, token) in [("a", 10), ("b", 20), ("c", 5)] {
        gate.admit(&fence(name, token)).unwrap();
    }
    gate.admit(&fence("c", 5)).unwrap();
    gate.admit(&fence("c", 4)).unwrap_err();
}

/// The last token of a forgotten lock may appear again, but its holder is unknown by then.
#[test]
fn a_forgotten_token_is_refused_to_everybody() {
    let gate = FenceGate::bounded(1);
    let by = |id| fence("a", 10).held_by(&owner(id));
    gate.admit(&by("x")).unwrap();
    gate.admit(&fence("b", 20)).unwrap();
    for id in ["x", "y"] {
        let error = gate.admit(&by(id)).unwrap_err();
        assert_eq!(
            (error.cause(), error.newest().get()),
            (StaleCause::Forgotten, 10)
        );
    }
    gate.admit(&fence("a", 11)).unwrap();
}

/// If check and write were separate, an older value could overwrite a newer one.
#[test]
fn check_and_write_are_one() {
    let (gate, next, written) = (FenceGate::new(), AtomicU64::new(1), Mutex::new(Vec::new()));
    let writer = || {
        for _ in 0..5_000 {
            let token = next.fetch_add(1, Atomic::Relaxed);
            // A thread that is overtaken here gets an error.
            let _ = gate.with(&fence("a", token), || written.lock().unwrap().push(token));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(writer);
        }
    });
    let written = written.into_inner().unwrap();
    assert!(
        written.is_sorted(),
        "an older holder wrote over a newer one"
    );
    assert_eq!(written.last(), Some(&20_000));
}
