//! What a person sees of a round: a line a step, alerts as they are raised, a summary of them at the end, and rows of the
//! metrics table.

use super::Session;
use crate::inputs::Inputs;
use rollmill_schema::Metric;
use rollmill_train::StepMetrics;
use rollmill_train::alerts::{self, Alert, NAMES, Observed, Thresholds};
use std::collections::BTreeMap;

/// What was seen so far, over all rounds.
pub struct Observer {
    thresholds: Thresholds,
    steps: Vec<Observed>,
    /// Alerts of this process by name: how often, and the last message.
    raised: BTreeMap<&'static str, (u64, String)>,
}

/// Before every name in the table.
const PREFIX: &str = "train/";

impl Observer {
    pub fn new(thresholds: Thresholds) -> Observer {
        Observer { thresholds, steps: vec![], raised: BTreeMap::new() }
    }

    /// Takes in the rows of steps that were made before.
    pub fn recall(&mut self, round: u32, rows: &[Metric]) {
        let mut steps: BTreeMap<i64, Observed> = BTreeMap::new();
        for row in rows {
            if let (Some(name), Some(value)) = (row.name.strip_prefix(PREFIX), row.value) {
                let step = steps.entry(row.step).or_insert_with(|| Observed { round, ..Observed::default() });
                step.metrics.insert(name.to_owned(), value);
            }
        }
        self.steps.extend(steps.into_values());
    }

    /// A step of this process: prints it, and gives its rows, alerts included.
    pub fn see(&mut self, session: &Session, step: &StepMetrics, number: u32, inputs: &Inputs) -> Vec<Metric> {
        let mut values = step.values.clone();
        values.extend(inputs.facts.clone());
        values.insert("global_step".to_owned(), step.step as f64);
        print(session.round, number, step);
        step.skipped.iter().for_each(|what| eprintln!("train: skipped an update: {what}"));
        self.steps.push(Observed { round: session.round, metrics: values.clone() });
        let alerts = alerts::raised(&self.steps, &self.thresholds);
        self.tell(&alerts);
        let of_alert = |name: &&str| f64::from(u8::from(alerts.iter().any(|a| a.name == *name)));
        values.extend(NAMES.iter().map(|name| (format!("alert/{name}"), of_alert(name))));
        let row = |(name, value): (String, f64)| Metric {
            name: format!("{PREFIX}{name}"),
            scope: "all".into(),
            split: "train".into(),
            step: i64::from(number),
            value: Some(value).filter(|v| v.is_finite()),
            count: inputs.experiences.len() as i64,
            provenance: session.run.provenance(session.round, 0),
            ..Metric::default()
        };
        values.into_iter().map(row).collect()
    }

    /// An alert that goes on is not repeated at every step.
    fn tell(&mut self, alerts: &[Alert]) {
        for alert in alerts {
            let (times, message) = self.raised.entry(alert.name).or_default();
            if *times == 0 {
                eprintln!("train: alert {}: {}", alert.name, alert.message);
            }
            *times += 1;
            message.clone_from(&alert.message);
        }
    }

    /// What was raised, for the end of the log.
    pub fn summary(&self) {
        for (name, (times, message)) in &self.raised {
            eprintln!("train: alert {name} at {times} steps, last: {message}");
        }
    }
}

fn print(round: u32, number: u32, step: &StepMetrics) {
    let shown = [
        ("reward", 3),
        ("policy_loss", 4),
        ("reward_model_loss", 4),
        ("pair_accuracy", 2),
        ("approx_kl", 4),
        ("entropy", 3),
        ("explained_variance", 2),
        ("tokens_per_second", 0),
    ];
    let part = |(name, digits): (&str, usize)| {
        let value = step.values.get(name)?;
        Some(format!("  {} {value:.digits$}", name.replace('_', " ")))
    };
    let parts: String = shown.into_iter().filter_map(part).collect();
    eprintln!("train: round {round} step {number}{parts}");
}
