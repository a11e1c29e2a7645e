//! The list run against one sandbox after another, and the table of what came of it.
use std::fmt::Write;

use rollmill_sandbox::Sandbox;

use crate::{Attack, Bait, Verdict, all};

/// One backend's verdicts, in the order of [`all`]; none where the attack was not tried.
pub struct Row {
    /// The backend.
    pub name: String,
    /// By attack.
    pub verdicts: Vec<Option<Verdict>>,
}

/// Makes every attack, on the control those that are harmless there.
pub fn try_all(name: &str, sandbox: &dyn Sandbox, bait: &Bait, control: bool) -> Row {
    let tried = all().iter().map(|a| (!control || a.control).then(|| a.on(sandbox, bait))).collect();
    Row { name: name.into(), verdicts: tried }
}

/// Tables of how many attacks of each kind were tried and stopped, and of each attack by name.
pub fn markdown(rows: &[Row]) -> String {
    let attacks = all();
    let mut groups: Vec<&str> = attacks.iter().map(|a| a.group).collect();
    groups.dedup();
    let mut out = head("attacks", rows);
    for group in groups {
        let counts = rows.iter().map(|row| count(&attacks, row, |a| a.group == group));
        line(&mut out, group, counts);
    }
    line(&mut out, "**all**", rows.iter().map(|row| count(&attacks, row, |_| true)));
    out.push('\n');
    out.push_str(&head("attack", rows));
    for (at, attack) in attacks.iter().enumerate() {
        line(&mut out, attack.name, rows.iter().map(|row| word(row.verdicts[at].as_ref()).to_string()));
    }
    out
}

fn head(first: &str, rows: &[Row]) -> String {
    let mut out = String::new();
    line(&mut out, first, rows.iter().map(|r| r.name.clone()));
    line(&mut out, "---", rows.iter().map(|_| "---".to_string()));
    out
}

fn line(out: &mut String, first: &str, cells: impl Iterator<Item = String>) {
    let cells: String = cells.map(|cell| format!(" {cell} |")).collect();
    let _ = writeln!(out, "| {first} |{cells}"); // a String takes everything
}

fn count(attacks: &[Attack], row: &Row, wanted: impl Fn(&Attack) -> bool) -> String {
    let own = attacks.iter().zip(&row.verdicts).filter(|(a, _)| wanted(a)).filter_map(|(_, v)| v.as_ref());
    let (tried, stopped) = own.fold((0, 0), |(n, s), v| (n + 1, s + usize::from(*v == Verdict::Stopped)));
    format!("{stopped} of {tried}")
}

fn word(verdict: Option<&Verdict>) -> &'static str {
    match verdict {
        None => "not tried",
        Some(Verdict::Stopped) => "stopped",
        Some(Verdict::Succeeded(_)) => "succeeded",
        Some(Verdict::Broken(_)) => "broken",
    }
}
