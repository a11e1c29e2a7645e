//! Root file systems of packages: every tool chain compiles and runs a program under the limits it says, inside.
//!
//! Needs Debian's package lists and archive once; without them it is skipped by name, unless ROLLMILL_REQUIRE has `packages`.
mod support;

use rollmill_sandbox::toolchain::{ALL, PROGRAM, Toolchain};
use rollmill_sandbox::{Namespaces, NamespacesOptions, Root, RootSource, Spec, prepare};
use support::{HELPER, run, text};

/// A program of one file that adds two numbers in a language's own way, and uses its library, threads and memory.
fn program(language: &str) -> &'static str {
    match language {
        "cpp" => {
            "#include <iostream>\n#include <map>\n#include <regex>\n#include <thread>\n\
             int main() { std::map<int, int> m{{1, 2}}; std::regex r(\"a+\"); int n = 0;\n\
             std::thread t([&] { n = m[1] + 40; }); t.join(); std::cout << n << std::endl; }\n"
        }
        "rust" => {
            "use std::collections::BTreeMap;\n\
             fn main() { let m = BTreeMap::from([(1, 2)]);\n\
             let n = std::thread::spawn(move || m[&1] + 40).join().unwrap(); println!(\"{n}\"); }\n"
        }
        "go" => {
            "package main\nimport (\"fmt\"; \"encoding/json\"; \"net/http\"; \"sort\")\n\
             func main() { c := make(chan int); go func() { c <- 2 }(); l := []int{2, 1}; sort.Ints(l)\n\
             b, _ := json.Marshal(40); _ = http.StatusOK; fmt.Println(<-c + len(b)*20) }\n"
        }
        "javascript" => {
            "const { Worker } = require('worker_threads');\n\
             new Worker('require(\"worker_threads\").parentPort.postMessage(2)', { eval: true })\n\
             .on('message', n => console.log(n + require('zlib').inflateSync(require('zlib').deflateSync('x')).length * 40));\n"
        }
        "shell" => {
            "set -euo pipefail\na=(40 2)\nfor n in \"${a[@]}\"; do echo $n; done | sort -n | gawk '{s+=$1} END {print s}' | sed s/x/y/\n"
        }
        "python" => "import json, sqlite3, threading\nprint(json.loads('40') + 2)\n",
        other => panic!("no program in {other}"),
    }
}

/// Both variants on one prepared root, or the reason why there is none.
fn on_root(name: &str) -> Option<Vec<(&'static str, Namespaces)>> {
    let defaults = NamespacesOptions::default();
    let source = RootSource::profile(name).expect("a profile");
    if let Err(e) = prepare(name, &source, &defaults.cache_dir) {
        let required = std::env::var("ROLLMILL_REQUIRE").is_ok_and(|r| r.split(',').any(|p| p == "packages"));
        assert!(!required, "{e}");
        eprintln!("skipped: packages: {e}");
        return None;
    }
    let open = |cgroups| {
        let root = Root::Named(name.into());
        Namespaces::open(NamespacesOptions { helper: Some(HELPER.into()), root, cgroups, ..defaults.clone() })
            .expect("the sandbox opens on a prepared root")
    };
    Some(vec![("cgroups", open(true)), ("no cgroups", open(false))])
}

fn spec(toolchain: &Toolchain, command: &[&str], files: Vec<(String, Vec<u8>)>) -> Spec {
    let own = |s: &&str| s.to_string();
    let env = toolchain.env.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
    Spec { argv: command.iter().map(own).collect(), env, files, ..Spec::default() }
}

/// Compiles and runs in two sandboxes, as a grader does.
fn output(toolchain: &Toolchain, sandbox: &Namespaces, source: &str) -> Result<String, String> {
    let mut files = vec![(toolchain.source.to_string(), source.as_bytes().to_vec())];
    if !toolchain.compile.is_empty() {
        let mut compile = spec(toolchain, toolchain.compile, files);
        compile.limits = toolchain.compile_limits.clone();
        compile.collect = vec![PROGRAM.into()];
        let done = run(sandbox, &compile);
        if done.facts.exit != Some(0) {
            return Err(format!("compile: {:?} {}", done.facts, text(&done.stderr)));
        }
        println!("{}: compiled in {:?}, {:?} bytes", toolchain.language, done.facts.cpu, done.facts.peak_memory_bytes);
        files = done.collected.files;
    }
    let mut start = spec(toolchain, toolchain.run, files);
    start.limits = toolchain.run_limits.clone();
    let done = run(sandbox, &start);
    println!("{}: ran in {:?}, {:?} bytes", toolchain.language, done.facts.cpu, done.facts.peak_memory_bytes);
    match done.facts.exit {
        Some(0) => Ok(text(&done.stdout)),
        _ => Err(format!("run: {:?} {} {}", done.facts, text(&done.stdout), text(&done.stderr))),
    }
}

#[test]
fn every_tool_chain_compiles_and_runs_under_its_limits() {
    let Some(sandboxes) = on_root("all") else { return };
    let mut wrong = Vec::new();
    for toolchain in &ALL {
        for (variant, sandbox) in &sandboxes {
            let said = output(toolchain, sandbox, program(toolchain.language));
            if said != Ok("42".into()) {
                wrong.push(format!("{}, {variant}: {said:?}", toolchain.language));
            }
            let broken = output(toolchain, sandbox, "}{ this is no program in any language");
            if broken.is_ok() {
                wrong.push(format!("{}, {variant}: nonsense gave {broken:?}", toolchain.language));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
