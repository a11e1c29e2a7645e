//! Parity with `transformers`, both ways: its models here, ours there, with and without adapters; SmolLM2 where it is there.
//!
//! `ROLLMILL_TRANSFORMERS` names a Python that has it. Promise: logits within 1e-4 of the largest (numerics.md, "How to
//! compare"), in F32.
#![allow(clippy::unwrap_used)] // clippy allows it in tests, but not in their helpers

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rollmill_model::{Decoder, Family, KvCache, LoraConfig, SlotStep, sampling};
use tch::{Device, Kind, Tensor};

const PROMISE: f64 = 1e-4;

/// Skips by name, or fails where the part is required.
fn skip<T>(name: &str, why: &str) -> Option<T> {
    let required = std::env::var("ROLLMILL_REQUIRE").unwrap_or_default().split(',').any(|n| n == name);
    assert!(!required, "ROLLMILL_REQUIRE names {name}, but {why}");
    eprintln!("skipped: {name}: {why}");
    None
}

fn real_model() -> Option<PathBuf> {
    let folder = std::env::var_os("ROLLMILL_MODEL").map(PathBuf::from).filter(|p| p.join("config.json").is_file());
    folder.or_else(|| skip("model", "ROLLMILL_MODEL is no model folder (`make test` sets it up)"))
}

/// The one Python process: it makes models first, then runs those it is told to.
struct Peer {
    process: Child,
    /// Where the models it made are, by name.
    folders: BTreeMap<String, PathBuf>,
    out: PathBuf,
}

impl Peer {
    fn start(python: OsString, out: &Path) -> Peer {
        let package = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(PathBuf::new, PathBuf::from);
        let mut command = Command::new(python);
        command.arg(package.join("tests/peer.py")).arg(out).args(real_model());
        command.env("HF_HUB_OFFLINE", "1").env("TOKENIZERS_PARALLELISM", "false");
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let folders = serde_json::from_str(&line).unwrap_or_else(|_| panic!("peer.py failed, see above: {line}"));
        Peer { process, folders, out: out.to_path_buf() }
    }

    fn run(mut self, folders: &[PathBuf]) {
        let mut input = self.process.stdin.take().unwrap();
        for folder in folders {
            writeln!(input, "{}", folder.display()).unwrap();
        }
        drop(input);
        assert!(self.process.wait().unwrap().success(), "peer.py failed, see above");
    }
}

/// Ids \[T\] and logits \[T,V\] that the peer wrote.
fn theirs(path: &Path) -> (Tensor, Tensor) {
    let mut found: BTreeMap<String, Tensor> = Tensor::read_safetensors(path).unwrap().into_iter().collect();
    (found.remove("ids").unwrap(), found.remove("logits").unwrap())
}

/// Logits \[T,V\] of the full pass.
fn logits(decoder: &Decoder, ids: &Tensor) -> Tensor {
    let _guard = tch::no_grad_guard();
    let positions = Tensor::arange(ids.size()[0], (Kind::Int64, Device::Cpu)).unsqueeze(0);
    decoder.logits(&decoder.hidden(&ids.unsqueeze(0), &positions, None)).squeeze_dim(0)
}

/// Logits \[T,V\] of the cached step, token by token.
fn stepped(decoder: &Decoder, ids: &Tensor) -> Tensor {
    let ids = Vec::<i64>::try_from(ids).unwrap();
    let mut cache = KvCache::new(decoder, 1, ids.len()).unwrap();
    let step = |id: &i64| decoder.step(&mut cache, &[SlotStep { slot: 0, tokens: &[*id] }]).unwrap();
    Tensor::cat(&ids.iter().map(step).collect::<Vec<_>>(), 0)
}

/// The largest difference, relative to the largest logit.
fn difference(a: &Tensor, b: &Tensor) -> f64 {
    (a - b).abs().max().double_value(&[]) / b.abs().max().double_value(&[])
}

fn load(dir: &Path) -> Decoder {
    Decoder::load(dir, Kind::Float, Device::Cpu).unwrap()
}

/// Without what tells this network from a plain llama (or with another rope): the promise must see that.
fn broken(decoder: &Decoder) -> Decoder {
    let mut copy = decoder.deep_copy();
    let (part, value) = match copy.config.family {
        Family::Llama => ("none", 0.0),
        Family::Qwen2 => (".bias", 0.0),
        Family::Qwen3 => ("q_norm.weight", 1.0),
    };
    for (_, weight) in copy.parameters().into_iter().filter(|(name, _)| name.ends_with(part)) {
        let _ = weight.shallow_clone().fill_(value);
    }
    if copy.config.family == Family::Llama && copy.config.rope_scaling.take().is_none() {
        copy.config.rope_theta *= 10.0;
    }
    copy
}

/// With adapters on all projections, B away from zero.
fn adapted(decoder: &Decoder) -> Decoder {
    let adapted = decoder.deep_copy().with_lora(&LoraConfig { rank: 4, ..LoraConfig::default() }).unwrap();
    for (index, (_, factor)) in adapted.trainable().into_iter().enumerate() {
        let noise = |at: u64| (sampling::uniform(index as u64, at) - 0.5) as f32 * 0.04;
        let noise: Vec<f32> = (0..factor.numel() as u64).map(noise).collect();
        let _ = factor.detach().g_add_(&Tensor::from_slice(&noise).reshape(factor.size()));
    }
    adapted
}

/// A folder to be run there, and the logits it must or must not give.
struct Asked {
    name: String,
    folder: PathBuf,
    expected: Tensor,
    same: bool,
}

/// Compares their model with ours; saves what they shall run.
fn compare_here(peer: &Peer, name: &str, folder: &Path) -> Vec<Asked> {
    let (ids, expected) = theirs(&peer.out.join(format!("{name}.safetensors")));
    assert_eq!(name.ends_with("shards"), folder.join("model.safetensors.index.json").exists(), "{name}");
    let decoder = load(folder);
    let (full, step) =
        (difference(&logits(&decoder, &ids), &expected), difference(&stepped(&decoder, &ids), &expected));
    let (broken, adapted) = (broken(&decoder), adapted(&decoder));
    let (control, effect) = (logits(&broken, &ids), logits(&adapted, &ids));
    let (off, moved) = (difference(&control, &expected), difference(&effect, &expected));
    println!("{name}: full pass {full:.1e}, cached {step:.1e}; broken {off:.1e}, adapters {moved:.1e}");
    assert!(full < PROMISE && step < PROMISE, "{name}: {full} {step}");
    assert!(off > 100.0 * PROMISE && moved > 100.0 * PROMISE, "{name}: {off} {moved}");
    let asked = |what: &str, decoder: &Decoder, expected: &Tensor, same: bool| {
        let folder = peer.out.join(format!("saved_{name}_{what}"));
        decoder.save(&folder).unwrap();
        Asked { name: format!("{name}, {what}"), folder, expected: expected.shallow_clone(), same }
    };
    let merged = asked("merged", &adapted, &effect, true);
    if name == "real" {
        // half a gigabyte each: the adapted one will do
        return vec![merged];
    }
    vec![merged, asked("plain", &decoder, &expected, true), asked("broken", &broken, &expected, false)]
}

#[test]
fn logits_agree_both_ways() {
    let Some(python) = std::env::var_os("ROLLMILL_TRANSFORMERS") else {
        let _: Option<()> = skip("transformers", "ROLLMILL_TRANSFORMERS names no Python that has it");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let peer = Peer::start(python, dir.path());
    assert!(peer.folders.len() >= 6, "{:?}", peer.folders);
    let asked: Vec<Asked> = peer.folders.iter().flat_map(|(name, folder)| compare_here(&peer, name, folder)).collect();
    peer.run(&asked.iter().map(|asked| asked.folder.clone()).collect::<Vec<_>>());
    for Asked { name, folder, expected, same } in asked {
        let there = difference(&theirs(&folder.join("logits.safetensors")).1, &expected);
        println!("{name}: {there:.1e} in transformers");
        assert!(if same { there < PROMISE } else { there > 100.0 * PROMISE }, "{name}: {there}");
    }
}
