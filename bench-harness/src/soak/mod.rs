//! Scale and time: many held locks, a crowd at one lock and a steady stream of acquisitions, for as
//! long as asked, while the server is restarted. Then everything is released, and nothing may be
//! left, on the server or in this process.
//!
//! | module | what is in it |
//! |---|---|
//! | `asked` | how much, how long, and which faults to plant |
//! | `checks` | every limit, and the judgement of the observations, as one table |
//! | `outages` | when the server was down on purpose, and which errors that explains |
//! | `witness` | what this process and the server have at a moment |
//! | `places` | names of locks, their kinds, and who is inside |
//! | `tally` | the shared counters of a run |
//! | `held`, `crowd`, `stream` | the three loads |
//! | `planted` | leaks on purpose |
//! | `run` | the whole, from the first connection to the last check |
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
