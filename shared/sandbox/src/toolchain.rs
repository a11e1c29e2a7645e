//! Languages: which packages hold the tool chain, how a program is compiled and run, and under which limits.
//!
//! Constants only; nobody here runs anything. A grader makes a [`Spec`](crate::Spec) of them: the source under its name in
//! /work, one run that compiles and brings [`PROGRAM`] out, and any number of runs of it. The limits leave room above the
//! least with which a program of a few lines went through (Debian 12, x86-64). Without a cgroup it is the rlimit on address
//! space that decides, twice the memory and 256 MiB more: runtimes reserve what they do not use, V8 and Go's 768 MiB.
//!
//! | | MiB, cgroup | MiB, none | processes and threads | MiB on disk |
//! |---|---|---|---|---|
//! | g++ | 192 | 256 | 3 | 1 |
//! | rustc | 96 | 256 | 8 | 16 |
//! | go build (standard library from its archive) | 256 | 384 | 20 | 64 |
//! | a Go program | 16 | 256 | 4 | |
//! | node with a worker thread | 32 | 256 | 8 | |
//! | bash with a pipeline | 16 | 16 | 2 | |
//! | a C++, Rust or Python program | 16 | 16 | 2 | |
use std::time::Duration;

use crate::Limits;

/// The name under /work of what a compiler makes.
pub const PROGRAM: &str = "program";

/// One language.
#[derive(Debug, Clone)]
pub struct Toolchain {
    /// Its name, and that of the [`RootSource::profile`](crate::RootSource::profile) that holds it.
    pub language: &'static str,
    /// Debian packages.
    pub packages: &'static [&'static str],
    /// The name under /work of a program of one file.
    pub source: &'static str,
    /// Command that makes [`PROGRAM`]; empty where there is nothing to compile.
    pub compile: &'static [&'static str],
    /// Command that runs the program.
    pub run: &'static [&'static str],
    /// Environment of both.
    pub env: &'static [(&'static str, &'static str)],
    /// Limits while compiling.
    pub compile_limits: Limits,
    /// Limits while running.
    pub run_limits: Limits,
}

impl Toolchain {
    /// The tool chain of a language.
    pub fn of(language: &str) -> Option<&'static Toolchain> {
        ALL.iter().find(|t| t.language == language)
    }
}

const MIB: u64 = 1 << 20;

/// [`Limits::default`] with these; it is no constant.
const fn limits(seconds: u64, memory_mib: u64, pids: u32, disk_mib: u64) -> Limits {
    Limits {
        wall: Duration::from_secs(seconds),
        cpu: Duration::from_secs(seconds),
        memory_bytes: memory_mib * MIB,
        pids,
        disk_bytes: disk_mib * MIB,
        output_bytes: MIB,
        collect_bytes: 32 * MIB,
    }
}

/// All languages there are.
pub static ALL: [Toolchain; 6] = [
    Toolchain {
        language: "cpp",
        packages: &["gcc", "g++"],
        source: "main.cpp",
        compile: &["g++", "-O2", "-std=c++17", "-o", PROGRAM, "main.cpp"],
        run: &["./program"],
        env: &[],
        compile_limits: limits(60, 1024, 32, 128),
        run_limits: limits(10, 512, 32, 64),
    },
    Toolchain {
        language: "rust",
        packages: &["rustc", "gcc"],
        source: "main.rs",
        // threads of the code generator are counted as processes
        compile: &["rustc", "-O", "--edition", "2021", "-C", "codegen-units=4", "-o", PROGRAM, "main.rs"],
        run: &["./program"],
        env: &[],
        compile_limits: limits(120, 2048, 64, 256),
        run_limits: limits(10, 512, 32, 64),
    },
    Toolchain {
        language: "go",
        packages: &["golang-go"],
        source: "main.go",
        compile: &["go", "build", "-o", PROGRAM, "main.go"],
        run: &["./program"],
        // no cgo, since there need be no C compiler; no proxy, since there is no network; threads bounded
        env: &[
            ("CGO_ENABLED", "0"),
            ("GOCACHE", "/tmp/go-build"),
            ("GOFLAGS", "-buildvcs=false"),
            ("GOMAXPROCS", "2"),
            ("GOPATH", "/tmp/go"),
            ("GOPROXY", "off"),
            ("GOTOOLCHAIN", "local"),
        ],
        compile_limits: limits(120, 2048, 128, 512),
        run_limits: limits(10, 1024, 64, 64),
    },
    Toolchain {
        language: "javascript",
        packages: &["nodejs"],
        source: "main.js",
        compile: &[],
        run: &["node", "main.js"],
        env: &[],
        compile_limits: limits(60, 1024, 32, 64),
        run_limits: limits(10, 1024, 32, 64),
    },
    Toolchain {
        language: "shell",
        packages: &["bash", "coreutils", "grep", "sed", "gawk"],
        source: "main.sh",
        compile: &[],
        run: &["bash", "main.sh"],
        env: &[],
        compile_limits: limits(10, 512, 32, 64),
        run_limits: limits(10, 512, 32, 64),
    },
    Toolchain {
        language: "python",
        packages: &["python3", "python3-pytest"],
        source: "main.py",
        compile: &[],
        run: &["python3", "-I", "main.py"],
        env: &[],
        compile_limits: limits(10, 512, 32, 64),
        run_limits: limits(10, 512, 32, 64),
    },
];
