//! Short words for Arrow fields, so that a schema reads like a table.

use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use std::sync::Arc;

/// A column that is never null.
pub(crate) fn col(name: &str, kind: DataType) -> FieldRef {
    Arc::new(Field::new(name, kind, false))
}

/// A column that may be null.
pub(crate) fn opt(name: &str, kind: DataType) -> FieldRef {
    Arc::new(Field::new(name, kind, true))
}

/// A text column.
pub(crate) fn text(name: &str) -> FieldRef {
    col(name, DataType::Utf8)
}

/// A list column without nulls inside.
pub(crate) fn list(name: &str, item: DataType) -> FieldRef {
    col(name, DataType::List(Arc::new(Field::new("item", item, false))))
}

/// A struct type.
pub(crate) fn record(fields: Vec<FieldRef>) -> DataType {
    DataType::Struct(Fields::from(fields))
}

/// The columns of [`crate::Provenance`], as one struct column.
pub(crate) fn provenance() -> FieldRef {
    col(
        "provenance",
        record(vec![
            text("run_id"),
            col("round", DataType::Int32),
            text("attempt"),
            text("code_version"),
            col("seed", DataType::Int64),
        ]),
    )
}
