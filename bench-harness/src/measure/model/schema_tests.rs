//! The checked-in schema against the model and against real output.

use super::{Report, SCHEMA, SCHEMA_VERSION, read_str, to_json};
use crate::measure::synthetic;

fn generated() -> String {
    let mut schema = serde_json::to_value(schemars::schema_for!(Report)).unwrap();
    schema["title"] = "locktopus-bench report".into();
    schema["properties"]["schema_version"]["const"] = SCHEMA_VERSION.into();
    serde_json::to_string_pretty(&schema).unwrap() + "\n"
}

/// Set `LOCKTOPUS_BENCH_BLESS=1` to rewrite the file after a deliberate change of the model.
#[test]
fn schema_file_is_what_the_model_generates() {
    let generated = generated();
    if std::env::var_os("LOCKTOPUS_BENCH_BLESS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/report.schema.json");
        std::fs::write(path, &generated).unwrap();
        return;
    }
    assert!(
        generated == SCHEMA,
        "the model changed but schema/report.schema.json did not; raise SCHEMA_VERSION unless old \
         files still load, then rerun with LOCKTOPUS_BENCH_BLESS=1"
    );
}

fn validator() -> jsonschema::Validator {
    jsonschema::validator_for(&serde_json::from_str(SCHEMA).unwrap()).unwrap()
}

#[test]
fn real_output_is_valid() {
    let validator = validator();
    for report in [synthetic::shared().clone(), synthetic::memory_only(7)] {
        let value = serde_json::from_str(&to_json(&report)).unwrap();
        let errors: Vec<_> = validator
            .iter_errors(&value)
            .map(|e| e.to_string())
            .collect();
        assert!(errors.is_empty(), "{errors:#?}");
    }
}

#[test]
fn schema_rejects_what_the_model_does_not_know() {
    let validator = validator();
    let mut value: serde_json::Value = serde_json::from_str(&to_json(synthetic::shared())).unwrap();
    value["cells"][0]["rounds"][0]["surprise"] = 1.into();
    assert!(!validator.is_valid(&value));
}

#[test]
fn schema_rejects_another_version() {
    let mut value: serde_json::Value = serde_json::from_str(&to_json(synthetic::shared())).unwrap();
    value["schema_version"] = (SCHEMA_VERSION + 1).into();
    assert!(!validator().is_valid(&value));
}

/// A file of the first release. As long as [`SCHEMA_VERSION`] is 1 it has to load and to be valid,
/// so new fields need a default.
#[test]
fn stored_files_of_this_version_still_load() {
    let text = include_str!("../../../tests/data/report-v1.json");
    let report = read_str(text, "report-v1.json").unwrap();
    assert_eq!(report.schema_version, SCHEMA_VERSION);
    let value = serde_json::from_str(text).unwrap();
    assert!(validator().is_valid(&value));
}
