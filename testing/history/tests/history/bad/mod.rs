//! Histories that each break one property. The checker finds it, counts it right, and finds no
//! other.

mod ends;
mod others;
mod overlaps;
mod tokens;
