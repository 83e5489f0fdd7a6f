//! Histories that break one property each: it is found, counted right, and nothing else is.

mod ends;
mod others;
mod overlaps;
mod tokens;
