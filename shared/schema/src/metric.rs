//! `metrics`: numbers by name, from evaluation and from training.

use crate::columns::{col, opt, provenance, text};
use crate::{Provenance, Row};
use arrow::datatypes::{DataType, FieldRef};
use serde::{Deserialize, Serialize};

/// One number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// What is measured, such as `pass@1` or `train/entropy`.
    pub name: String,
    /// Over what: `all`, `ability:strings`, `task:<id>`.
    pub scope: String,
    /// The set or stage: `heldout`, `train`.
    pub split: String,
    /// Update within the round for training; 0 for evaluation.
    pub step: i64,
    /// The value; null where there is nothing to measure.
    pub value: Option<f64>,
    /// Lower end of the 95 % interval.
    pub low: Option<f64>,
    /// Upper end of the 95 % interval.
    pub high: Option<f64>,
    /// How many items it rests on.
    pub count: i64,
    /// Where the row comes from.
    pub provenance: Provenance,
}

impl Row for Metric {
    const TABLE: &'static str = "metrics";
    const VERSION: u32 = 1;

    fn columns() -> Vec<FieldRef> {
        vec![
            text("name"),
            text("scope"),
            text("split"),
            col("step", DataType::Int64),
            opt("value", DataType::Float64),
            opt("low", DataType::Float64),
            opt("high", DataType::Float64),
            col("count", DataType::Int64),
            provenance(),
        ]
    }

    fn key(&self) -> String {
        format!("{}|{}|{}", self.name, self.scope, self.step)
    }
}
