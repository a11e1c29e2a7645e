//! The command line.

use std::net::IpAddr;
use std::path::PathBuf;

/// Serve a checkpoint over HTTP (OpenAI completions), convert one, or measure one.
#[derive(Debug, clap::Parser)]
#[command(name = "rollmill-serve", version, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    /// What to do instead of serving.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// How to serve.
    #[command(flatten)]
    pub serve: Option<ServeArgs>,
}

/// What else the program does.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Convert a GGUF file into a Hugging Face folder.
    ConvertGguf {
        /// The GGUF file (llama type with SmolLM's tokenizer; F32, F16, BF16, Q8_0 or Q4_1).
        src: PathBuf,
        /// The folder to write.
        dst: PathBuf,
    },
    /// Print tokens per second at batch 1 and 16.
    Bench(BenchArgs),
}

/// How to serve.
#[derive(Debug, clap::Args)]
pub struct ServeArgs {
    /// Hugging Face folder: config.json, safetensors, tokenizer.json.
    #[arg(long)]
    pub model: PathBuf,
    /// Name of the weights in answers; by default `sha256:` and the first 16 hex digits of their hash.
    #[arg(long)]
    pub checkpoint_id: Option<String>,
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1")]
    pub host: IpAddr,
    /// Port to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    pub port: u16,
    /// File to write the port to once ready.
    #[arg(long)]
    pub port_file: Option<PathBuf>,
    /// Sequences computed at once.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub slots: u16,
    /// Longest sequence, prompt and completion, in tokens.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(2..))]
    pub context: u32,
    /// Requests that may wait; beyond it the answer is 503.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..))]
    pub queue: u16,
    /// Numbers to compute in.
    #[arg(long, value_enum, default_value_t = Dtype::F32)]
    pub dtype: Dtype,
    /// Threads of libtorch; by default one per core.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Stop when the thread that started this process ends (Linux's parent-death signal).
    #[arg(long)]
    pub die_with_parent: bool,
}

/// Numbers a model computes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Dtype {
    /// Log-probs within 1e-4 of the trainer's.
    F32,
    /// About twice as fast where the CPU multiplies bf16; log-probs are further from an F32 trainer's.
    Bf16,
}

impl Dtype {
    /// The same in libtorch's words.
    pub fn kind(self) -> tch::Kind {
        match self {
            Dtype::F32 => tch::Kind::Float,
            Dtype::Bf16 => tch::Kind::BFloat16,
        }
    }
}

/// What to measure.
#[derive(Debug, clap::Args)]
pub struct BenchArgs {
    /// Hugging Face folder.
    #[arg(long)]
    pub model: PathBuf,
    /// Sequences at once.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 16])]
    pub batch: Vec<usize>,
    /// Tokens of each prompt.
    #[arg(long, default_value_t = 128)]
    pub prompt: usize,
    /// Tokens to sample per sequence.
    #[arg(long, default_value_t = 64)]
    pub tokens: usize,
    /// Numbers to compute in.
    #[arg(long, value_enum, default_value_t = Dtype::F32)]
    pub dtype: Dtype,
    /// Threads of libtorch; by default one per core.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn serving_needs_a_model_and_subcommands_do_not() {
        let parse = |words: &str| Args::try_parse_from(format!("rollmill-serve {words}").split_whitespace());
        assert_eq!(parse("--model m --slots 4").unwrap().serve.unwrap().slots, 4);
        assert!(matches!(parse("convert-gguf a b").unwrap().command, Some(Command::ConvertGguf { .. })));
        assert!(matches!(parse("bench --model m").unwrap().command, Some(Command::Bench(_))));
        assert!(parse("--slots 4").is_err());
        assert!(parse("").is_err());
        assert!(parse("--model m --slots 0").is_err());
        assert!(parse("--model m --context 1").is_err());
    }
}
