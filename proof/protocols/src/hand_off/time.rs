//! Time passes, on the server and for the clients.

use super::model::HandOff;
use super::rules::{CALL, LEASE};
use super::state::{Phase, State, What};

impl HandOff {
    pub(super) fn tick(&self, state: &mut State) {
        let server = &mut state.server;
        server.holder.take_if(|hold| {
            hold.left -= 1;
            hold.left == 0
        });
        for place in &mut server.queue {
            place.left = place.left.saturating_sub(1);
        }
        for message in &mut state.messages {
            // For most messages it only matters whether they must arrive now; for attempts, whether
            // they are late.
            let most = match message.what {
                What::Attempt { .. } => CALL + 1,
                _ => 1,
            };
            message.age = (message.age + 1).min(most);
        }
        state.messages.sort_unstable();
        for client in &mut state.clients {
            match &mut client.phase {
                Phase::Waiting(waiting) => {
                    let older = |age: &mut u8| *age = (*age + 1).min(LEASE);
                    if let Some(age) = &mut waiting.asking {
                        older(age);
                    }
                    if let Some(place) = &mut waiting.place {
                        older(&mut place.age);
                    }
                    if waiting.pause != u8::MAX {
                        waiting.pause = waiting.pause.saturating_sub(1);
                    }
                }
                Phase::Holding { age, late } => {
                    *age += 1;
                    let (over, late) = (*age >= LEASE, *late);
                    if over {
                        client.leave(self.rules, late);
                    }
                }
                Phase::Leaving { pause, age, .. } => {
                    *age = (*age + 1).min(CALL);
                    if let Some(pause) = pause {
                        *pause = pause.saturating_sub(1);
                    }
                }
                _ => {}
            }
        }
        let waits = |phase: Phase| matches!(phase, Phase::Waiting(_));
        let idle = self.bounds.waits
            && state.believers().next().is_none()
            && state.clients.iter().any(|client| waits(client.phase));
        let most = self.most_idle(state) + 1;
        state.idle = if idle { most.min(state.idle + 1) } else { 0 };
    }
}
