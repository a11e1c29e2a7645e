//! Chat prompts as token ids, from the model folder's own template.
//!
//! In: a template (`chat_template.jinja` or `tokenizer_config.json`) and the texts of a conversation. Out: ids of the
//! opening (system, user, start of the assistant's turn) and of each later user turn, so that a conversation is one
//! growing sequence. Must hold: the template is rendered once, with marks in place of the contents, and cut at the marks;
//! the pieces of the template may be control tokens, contents never are.

use crate::tokenizer::{Tokenizer, TokenizerError, optional_json, read, token_text};
use minijinja::value::Value as Jinja;
use minijinja::{Environment, Error as JinjaError, ErrorKind, State, context};
use serde_json::{Value, json};
use std::path::Path;

/// Why no prompt can be made with this model folder. None of these heals by itself: stop the run.
#[derive(Debug, thiserror::Error)]
pub enum ChatError {
    /// The folder has no chat template.
    #[error("{0} has no chat template: add chat_template.jinja, or chat_template in tokenizer_config.json")]
    NoTemplate(String),
    /// The template does not parse or render.
    #[error("the chat template does not render: {0}")]
    Render(String),
    /// The template renders, but not so that contents can be told from it.
    #[error("the chat template cannot be used for growing conversations: {0}")]
    Unfit(String),
    /// A file or text the tokenizer cannot use.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
}

const SYSTEM: &str = "RollmillSystem7f3a";
const USER: &str = "RollmillUser7f3a";
const ASSISTANT: &str = "RollmillAssistant7f3a";
const LATER: &str = "RollmillLater7f3a";

/// A chat template, cut into the token ids between contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chat {
    before_system: Vec<u32>,
    before_user: Option<Vec<u32>>,
    after_user: Vec<u32>,
    before_later: Vec<u32>,
    after_later: Vec<u32>,
}

impl Chat {
    /// The template of the model folder `dir`.
    pub fn load(dir: &Path, tokenizer: &Tokenizer) -> Result<Self, ChatError> {
        let config = optional_json(dir, "tokenizer_config.json")?;
        let file = dir.join("chat_template.jinja");
        let template = if file.exists() {
            String::from_utf8(read(&file)?).map_err(|_| ChatError::Render("it is not utf-8".into()))?
        } else {
            template_of(&config["chat_template"]).ok_or_else(|| ChatError::NoTemplate(dir.display().to_string()))?
        };
        let special = |name| token_text(&config, name).unwrap_or_default();
        Self::from_template(&template, special("bos_token"), special("eos_token"), tokenizer)
    }

    /// A template given as text, with the texts of the special tokens it may name.
    ///
    /// A template that refuses a system message gets its text at the head of the first user message.
    pub fn from_template(template: &str, bos: &str, eos: &str, tokenizer: &Tokenizer) -> Result<Self, ChatError> {
        let (rendered, has_system) = match render(template, bos, eos, true) {
            Ok(rendered) => (rendered, true),
            Err(first) => (render(template, bos, eos, false).map_err(|_| first)?, false),
        };
        let pieces = Pieces::cut(&rendered, has_system)?;
        Ok(Self {
            before_system: tokenizer.encode(pieces.before_system)?,
            before_user: has_system.then(|| tokenizer.encode(pieces.before_user)).transpose()?,
            after_user: tokenizer.encode(pieces.after_user)?,
            before_later: tokenizer.encode(pieces.before_later)?,
            after_later: tokenizer.encode(pieces.after_later)?,
        })
    }

    /// Ids up to where the assistant's first words go. Give texts without white space at their ends.
    pub fn open(&self, tokenizer: &Tokenizer, system: &str, user: &str) -> Result<Vec<u32>, TokenizerError> {
        let mut ids = self.before_system.clone();
        match &self.before_user {
            Some(between) => {
                ids.extend(tokenizer.encode_untrusted(system)?);
                ids.extend(between);
                ids.extend(tokenizer.encode_untrusted(user)?);
            }
            None if system.is_empty() => ids.extend(tokenizer.encode_untrusted(user)?),
            None => ids.extend(tokenizer.encode_untrusted(&format!("{system}\n\n{user}"))?),
        }
        ids.extend(&self.after_user);
        Ok(ids)
    }

    /// Ids that end the assistant's turn, say `user` and open the assistant's next turn.
    ///
    /// Where the sequence already ends with [`Chat::end_of_turn`] (the policy sampled it), leave out the first id.
    pub fn next_user(&self, tokenizer: &Tokenizer, user: &str) -> Result<Vec<u32>, TokenizerError> {
        let mut ids = self.before_later.clone();
        ids.extend(tokenizer.encode_untrusted(user)?);
        ids.extend(&self.after_later);
        Ok(ids)
    }

    /// The token with which the template ends an assistant's turn.
    pub fn end_of_turn(&self) -> Option<u32> {
        self.before_later.first().copied()
    }
}

/// The text of the template between the contents, in order.
struct Pieces<'a> {
    before_system: &'a str,
    before_user: &'a str,
    after_user: &'a str,
    before_later: &'a str,
    after_later: &'a str,
}

impl<'a> Pieces<'a> {
    fn cut(rendered: &'a Rendered, has_system: bool) -> Result<Self, ChatError> {
        let (before_system, rest) = if has_system { once(&rendered.whole, SYSTEM)? } else { ("", &rendered.whole[..]) };
        let (before_user, rest) = once(rest, USER)?;
        let (after_user, rest) = once(rest, ASSISTANT)?;
        let (before_later, after_later) = once(rest, LATER)?;
        let opening = &rendered.whole[..rendered.whole.len() - ASSISTANT.len() - rest.len()];
        if opening != rendered.opening {
            return Err(ChatError::Unfit("it opens a turn otherwise than it repeats it".into()));
        }
        let (before_system, before_user) = if has_system { (before_system, before_user) } else { (before_user, "") };
        Ok(Self { before_system, before_user, after_user, before_later, after_later })
    }
}

fn once<'a>(text: &'a str, mark: &str) -> Result<(&'a str, &'a str), ChatError> {
    let (before, after) = text.split_once(mark).ok_or_else(|| ChatError::Unfit(format!("it leaves out {mark}")))?;
    if after.contains(mark) {
        return Err(ChatError::Unfit(format!("it repeats {mark}")));
    }
    Ok((before, after))
}

/// A conversation of two user turns, and its opening alone, both up to the assistant's next words.
struct Rendered {
    opening: String,
    whole: String,
}

fn render(template: &str, bos: &str, eos: &str, system: bool) -> Result<Rendered, ChatError> {
    let mut env = Environment::new();
    env.set_trim_blocks(true);
    env.set_lstrip_blocks(true);
    env.set_unknown_method_callback(python_method);
    env.add_function("raise_exception", |text: String| -> Result<Jinja, JinjaError> {
        Err(JinjaError::new(ErrorKind::InvalidOperation, text))
    });
    let failed = |e: JinjaError| ChatError::Render(format!("{e:#}"));
    let template = env.template_from_str(template).map_err(failed)?;
    let message = |role: &str, content: &str| json!({"role": role, "content": content});
    let mut messages = if system { vec![message("system", SYSTEM)] } else { Vec::new() };
    messages.push(message("user", USER));
    let run = |messages: &[Value]| {
        template.render(context! { messages, add_generation_prompt => true, bos_token => bos, eos_token => eos })
    };
    let opening = run(&messages).map_err(failed)?;
    messages.extend([message("assistant", ASSISTANT), message("user", LATER)]);
    Ok(Rendered { opening, whole: run(&messages).map_err(failed)? })
}

fn template_of(value: &Value) -> Option<String> {
    let named = || value.as_array()?.iter().find(|t| t["name"] == "default")?["template"].as_str();
    value.as_str().or_else(named).map(str::to_owned)
}

/// The methods of Python's `str` and `dict` that chat templates call.
fn python_method(state: &State, value: &Jinja, method: &str, args: &[Jinja]) -> Result<Jinja, JinjaError> {
    if method == "items" {
        return state.apply_filter("items", std::slice::from_ref(value));
    }
    let Some(text) = value.as_str() else { return Err(ErrorKind::UnknownMethod.into()) };
    let first: Option<&str> = args.first().and_then(|arg| arg.as_str());
    let chars: Vec<char> = first.map(|s| s.chars().collect()).unwrap_or_default();
    let strips = |c: char| if first.is_some() { chars.contains(&c) } else { c.is_whitespace() };
    Ok(match (method, first) {
        ("strip", _) => text.trim_matches(strips).into(),
        ("lstrip", _) => text.trim_start_matches(strips).into(),
        ("rstrip", _) => text.trim_end_matches(strips).into(),
        ("upper", _) => text.to_uppercase().into(),
        ("lower", _) => text.to_lowercase().into(),
        ("startswith", Some(start)) => text.starts_with(start).into(),
        ("endswith", Some(end)) => text.ends_with(end).into(),
        ("split", Some(by)) if !by.is_empty() => text.split(by).map(Jinja::from).collect(),
        ("split", None) => text.split_whitespace().map(Jinja::from).collect(),
        ("replace", Some(old)) => {
            let new = args.get(1).and_then(|arg| arg.as_str()).ok_or(ErrorKind::MissingArgument)?;
            text.replace(old, new).into()
        }
        _ => return Err(ErrorKind::UnknownMethod.into()),
    })
}

#[cfg(test)]
#[path = "chat_tests.rs"]
mod tests;
