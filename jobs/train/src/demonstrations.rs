//! Demonstrations: conversations to imitate before the first round. In: a JSONL file, one object a line with `messages` as
//! the chat formats of OpenAI and TRL have them: an optional `system`, then `user` and `assistant` in turns, an `assistant`
//! last. Out: one experience per line, of which the assistant's words and the token that ends its turn are trained on.
//! Must hold: tokens are those a rollout would send and sample, by the same chat template; a bad line is named, counted and
//! left out.

use rollmill_job::JobError;
use rollmill_policy::{Chat, Tokenizer};
use rollmill_train::Experience;
use serde::Deserialize;
use std::path::Path;

/// What was read.
pub struct Demonstrations {
    /// One per good line.
    pub experiences: Vec<Experience>,
    /// Lines left out.
    pub refused: usize,
}

#[derive(Deserialize)]
struct Line {
    messages: Vec<Message>,
}

#[derive(Deserialize)]
struct Message {
    role: String,
    content: String,
}

/// Reads `file` for the model in `folder`; conversations longer than `positions` tokens are bad lines.
pub fn read(file: &Path, folder: &Path, positions: usize) -> Result<Demonstrations, JobError> {
    let place = || file.display().to_string();
    let config = |reason: String| JobError::Config { place: place(), reason };
    let text =
        std::fs::read_to_string(file).map_err(|e| config(format!("cannot be read ({e}); fix [sft] demonstrations")))?;
    let tokenizer = Tokenizer::load(folder).map_err(|e| config(e.to_string()))?;
    let chat = Chat::load(folder, &tokenizer).map_err(|e| config(e.to_string()))?;
    let mut read = Demonstrations { experiences: vec![], refused: 0 };
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let parsed = serde_json::from_str::<Line>(line).map_err(|e| e.to_string());
        match parsed.and_then(|line| experience(number, &line.messages, &tokenizer, &chat, positions)) {
            Ok(experience) => read.experiences.push(experience),
            Err(reason) => {
                eprintln!("train: {}:{}: {reason}; the line is left out", place(), number + 1);
                read.refused += 1;
            }
        }
    }
    if read.experiences.is_empty() {
        return Err(config("has no conversation to imitate; see the lines above".into()));
    }
    Ok(read)
}

fn experience(
    number: usize,
    messages: &[Message],
    tokenizer: &Tokenizer,
    chat: &Chat,
    positions: usize,
) -> Result<Experience, String> {
    let (system, turns) = match messages.split_first() {
        Some((first, rest)) if first.role == "system" => (first.content.trim(), rest),
        _ => ("", messages),
    };
    let roles = turns.iter().enumerate().all(|(at, turn)| turn.role == ["user", "assistant"][at % 2]);
    if turns.is_empty() || !roles || turns.len() % 2 == 1 {
        return Err("messages must be an optional system, then user and assistant in turns, an assistant last".into());
    }
    let (mut tokens, mut trainable) = (vec![], vec![]);
    let mut add = |ids: &[u32], train: bool| {
        tokens.extend(ids.iter().copied().map(i64::from));
        trainable.resize(tokens.len(), train);
    };
    let end = chat.end_of_turn();
    for (at, turn) in turns.chunks(2).enumerate() {
        let user = turn[0].content.trim();
        let opened = match at {
            0 => chat.open(tokenizer, system, user),
            _ => chat.next_user(tokenizer, user),
        };
        let opened = opened.map_err(|e| e.to_string())?;
        // The end of the turn before was learned as the assistant's own token.
        add(&opened[usize::from(at > 0 && end.is_some())..], false);
        let said = tokenizer.encode_untrusted(turn[1].content.trim()).map_err(|e| e.to_string())?;
        add(&said, true);
        add(end.as_slice(), true);
    }
    if tokens.len() > positions {
        return Err(format!("{} tokens are more than the {positions} positions of the model", tokens.len()));
    }
    let log_probs = vec![0.0; tokens.len()];
    // Each line is a task of its own: nothing is compared.
    Ok(Experience {
        task_id: format!("line {}", number + 1),
        tokens,
        trainable,
        log_probs,
        reward: Some(1.0),
        truncated: false,
    })
}
