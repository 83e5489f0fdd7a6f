//! What the compiler says about attributes that are wrong, and where.
//!
//! `TRYBUILD=overwrite` writes down what it says now.

#[test]
fn mistakes_are_shown_where_they_are() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
