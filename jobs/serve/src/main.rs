//! Parses the command line and answers with an exit code: 0 done, 2 usage or a model that cannot be used, 101 a bug.

use std::process::ExitCode;

use clap::Parser;
use rollmill_serve::args::{Args, Command};
use rollmill_serve::{bench, process, serve};

fn main() -> ExitCode {
    let args = Args::parse();
    if let Err(e) = process::wait_passively() {
        return report(
            &anyhow::Error::from(e).context("cannot start over with OMP_WAIT_POLICY=passive; set it yourself"),
        );
    }
    let done = match (args.command, args.serve) {
        (Some(Command::ConvertGguf { src, dst }), _) => {
            rollmill_model::gguf::convert(&src, &dst).map_err(anyhow::Error::from)
        }
        (Some(Command::Bench(args)), _) => bench::bench(&args),
        (None, Some(args)) => return serve(&args).unwrap_or_else(|e| report(&e)),
        (None, None) => Err(anyhow::anyhow!("give --model DIR, or a subcommand; --help lists them")),
    };
    done.map_or_else(|e| report(&e), |()| ExitCode::SUCCESS)
}

fn report(error: &anyhow::Error) -> ExitCode {
    eprintln!("rollmill-serve: {error:#}");
    ExitCode::from(2)
}
