//! Every attack is stopped by every backend, and the unsafe control falls to each that is harmless.
use rollmill_sandbox_suite::{Backend, Bait, Plain, Verdict, all, containers, namespaces, try_all};

fn stops_everything(backend: Option<Backend>) {
    let Some(backend) = backend else { return };
    let row = try_all(&backend.name, &*backend.sandbox, &Bait::new().expect("bait"), false);
    let attacks = all();
    let tried = attacks.iter().zip(&row.verdicts);
    let wrong: Vec<_> = tried.filter(|(_, v)| **v != Some(Verdict::Stopped)).map(|(a, v)| (a.name, v)).collect();
    assert!(wrong.is_empty(), "{}: {} of {} attacks:\n{wrong:#?}", row.name, wrong.len(), attacks.len());
}

#[test]
fn namespaces_with_cgroups_stop_every_attack() {
    stops_everything(namespaces(true));
}

#[test]
fn namespaces_without_cgroups_stop_every_attack() {
    stops_everything(namespaces(false));
}

#[test]
fn docker_stops_every_attack() {
    stops_everything(containers());
}

#[test]
fn the_unsafe_control_falls_to_what_is_harmless_there() {
    let (bait, control) = (Bait::new().expect("bait"), Plain::new().expect("control"));
    let row = try_all("control", &control, &bait, true);
    let attacks = all();
    let tried: Vec<_> = attacks.iter().zip(&row.verdicts).filter_map(|(a, v)| Some((a.name, v.as_ref()?))).collect();
    assert!(tried.len() > 30, "only {} attacks have a control", tried.len());
    let wrong: Vec<_> = tried.iter().filter(|(_, v)| !matches!(v, Verdict::Succeeded(_))).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
