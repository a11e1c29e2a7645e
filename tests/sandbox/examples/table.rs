//! Prints what every backend of this machine stops, and what the unsafe control does not, as Markdown.
//!
//!     infra/setup/docker.sh cargo run -p rollmill-sandbox-suite --example table
use rollmill_sandbox_suite::{Bait, Plain, Verdict, all, backends, markdown, try_all};

fn main() -> std::io::Result<()> {
    let (bait, control) = (Bait::new()?, Plain::new()?);
    let mut rows: Vec<_> = backends().iter().map(|b| try_all(&b.name, &*b.sandbox, &bait, false)).collect();
    for row in &rows {
        let named = all().into_iter().zip(&row.verdicts);
        for (attack, verdict) in named.filter(|(_, v)| **v != Some(Verdict::Stopped)) {
            eprintln!("{}: {}: {verdict:?}", row.name, attack.name);
        }
    }
    rows.push(try_all("unsafe control", &control, &bait, true));
    print!("{}", markdown(&rows));
    Ok(())
}
