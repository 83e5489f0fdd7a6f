//! Scale and time: many held locks, a crowd at one lock and a steady stream of acquisitions, for as
//! long as asked, while the server is restarted; then everything is given back, and nothing may be
//! left, on the server or in this process.
//!
//! | module | what is in it |
//! |---|---|
//! | `asked` | how much, for how long, and what is planted to see a check fail |
//! | `checks` | every limit, and the judgement of what was seen, as one table |
//! | `outages` | when the server was away on purpose, and so which errors are the plan's |
//! | `witness` | what this process and the server have at a moment |
//! | `places` | names of locks, their kinds, and who is inside |
//! | `tally` | what happened so far, counted by everybody |
//! | `held`, `crowd`, `stream` | the three loads |
//! | `planted` | leaks on purpose |
//! | `run` | the whole, from the first connection to the last look |
//!
//! Layers, lowest first: asked, outages|witness, checks, places, tally, held|crowd|stream, planted,
//! run.

mod asked;
mod checks;
mod crowd;
mod held;
mod outages;
mod places;
mod planted;
mod run;
mod stream;
mod tally;
mod witness;

pub use asked::{Asked, Leak};
pub use checks::{Check, Seen, failed, judge, table};
pub use run::{SoakError, run};
