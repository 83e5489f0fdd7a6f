//! The compiler's errors for wrong attributes, and their positions.
//!
//! `TRYBUILD=overwrite` records the present errors.

#[test]
fn mistakes_are_shown_where_they_are() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
