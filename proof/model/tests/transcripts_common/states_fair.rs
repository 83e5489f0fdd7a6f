//! A constructed line of a fair lock: our waiters and another library's, their notes, and whose
//! turn it is.

use super::states::{State, THEIRS, WAITERS};

const ENDS: &str = "redisson_lock_timeout:{it}";
const CHANNEL: &str = "redisson_lock__channel:{it}";

impl State<'_> {
    pub(super) fn fair_line(&mut self) {
        let (owners, _) = self.places();
        let now = self.now / 1_000;
        let mut line: Vec<String> = owners.to_vec();
        line.extend(THEIRS.map(str::to_owned));
        for at in (1..line.len()).rev() {
            let other = usize::try_from(self.rng.below(at as u64 + 1)).unwrap();
            line.swap(at, other);
        }
        let many = usize::try_from(self.rng.between(0, 4)).unwrap();
        for owner in line.into_iter().take(many) {
            let native = owner.contains("8c70-a705");
            if self.rng.permille(930) {
                self.put(&["RPUSH", "redisson_lock_queue:{it}", &owner]);
            }
            let deadline = now
                + *self.rng.pick(&[
                    300_000, 300_000, 600_000, -7_200_000, -7_200_001, -7_199_999, 0,
                ]);
            let deadline = deadline.to_string();
            if self.rng.permille(900) {
                self.put(&["ZADD", ENDS, &deadline, &owner]);
            }
            if native {
                self.ours(&owner, now);
            } else {
                self.theirs(&owner, &deadline, now);
            }
        }
        if self.rng.permille(350) {
            self.turn(now);
        }
        if self.rng.permille(700) {
            let left = *self.rng.pick(&["59999", "60000", "60001", "100000", "1"]);
            self.put(&["PEXPIRE", WAITERS, left]);
        }
    }

    fn ours(&mut self, owner: &str, now: i64) {
        let until = now + *self.rng.pick(&[-1, 0, 1, 1, 1_000, 30_000]);
        let tokens = *self.rng.pick(&["0", "1", "16"]);
        let letter = *self.rng.pick(&["f", "f", "f", "f", "f", "x"]);
        let inbox = owner
            .trim_end_matches(['1', '2'])
            .chars()
            .last()
            .unwrap_or('a');
        if self.rng.permille(900) {
            let record = format!("{until} 60000 {tokens} 1 {letter} inbox:{{it}}:{inbox}");
            self.put(&["HSET", WAITERS, owner, &record]);
        }
        if self.rng.permille(850) {
            let came = (now + *self.rng.pick(&[-1_000, -4_000, -5_000, -3_000, 0, 1])) * 1_000
                + *self.rng.pick(&[0, 999]);
            let note = match self.rng.below(3) {
                0 => format!("{came} {}", THEIRS[0]),
                _ => came.to_string(),
            };
            self.put(&["HSET", WAITERS, &format!("#{owner}"), &note]);
        }
    }

    fn theirs(&mut self, owner: &str, deadline: &str, now: i64) {
        if self.rng.permille(500) {
            self.listen(&format!("{CHANNEL}:{owner}"), 1);
        }
        if self.rng.permille(500) {
            let since = now - *self.rng.pick(&[2_000, 2_001, 1_999, 0, -1, 60_000]);
            let looks = self.rng.between(0, 4);
            let before = if self.rng.permille(800) {
                deadline
            } else {
                "-"
            };
            let note = format!("{since} {looks} {before}");
            self.put(&["HSET", WAITERS, &format!("?{owner}"), &note]);
        }
    }

    fn turn(&mut self, now: i64) {
        let since = now
            - *self.rng.pick(&[
                3_000, 3_001, 2_999, 30_000, 30_001, 29_999, 0, 4_000, -1, 7_000,
            ]);
        let seen = match self.rng.below(3) {
            0 => now - *self.rng.pick(&[3_000, 3_001, 2_999, 0, -1]),
            1 => since + *self.rng.pick(&[3_000, 3_001, 2_999, 0]),
            _ => now - 1,
        };
        let deadline = (now + 300_000).to_string();
        let before = if self.rng.permille(850) {
            deadline.as_str()
        } else {
            "-"
        };
        let owner = *self.rng.pick(&THEIRS);
        let turn = format!("{since} {seen} {before} {owner}");
        self.put(&["HSET", WAITERS, "!turn", &turn]);
    }
}
