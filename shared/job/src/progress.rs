//! Progress for people: a bar with rate and time left on a terminal, a line now and then elsewhere.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How often a line is printed where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(15);

/// Progress of one stage.
pub struct Progress {
    bar: ProgressBar,
    lines: Option<Mutex<Lines>>,
    name: String,
}

struct Lines {
    last: Instant,
    started: Instant,
    at_start: Option<u64>,
}

impl Progress {
    /// For `total` items of the stage `name`.
    pub fn new(name: &str, total: usize, quiet: bool) -> Progress {
        let terminal = std::io::stderr().is_terminal();
        let target =
            if terminal && !quiet { ProgressDrawTarget::stderr_with_hz(5) } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(total as u64), target);
        // The template is a constant that indicatif accepts.
        let style = ProgressStyle::with_template("{prefix:34} {bar:30} {pos}/{len}  {per_sec}  {eta} left  {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style);
        bar.set_prefix(name.to_string());
        let now = Instant::now();
        let lines = (!terminal && !quiet).then(|| Mutex::new(Lines { last: now, started: now, at_start: None }));
        Progress { bar, lines, name: name.into() }
    }

    /// `n` more items are done.
    pub fn advance(&self, n: usize) {
        self.bar.inc(n as u64);
        self.line(false);
    }

    /// `n` items are done in all.
    pub fn set(&self, n: usize) {
        self.bar.set_position(n as u64);
    }

    /// A short word beside the bar.
    pub fn note(&self, text: String) {
        self.bar.set_message(text);
        self.line(false);
    }

    /// Everything is done.
    pub fn finish(&self) {
        self.bar.set_position(self.bar.length().unwrap_or(0));
        self.bar.finish();
        self.line(true);
    }

    fn line(&self, last: bool) {
        let Some(lines) = &self.lines else { return };
        // A poisoned lock only means that another thread died while printing.
        let mut lines = lines.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (done, total) = (self.bar.position(), self.bar.length().unwrap_or(0));
        let first = *lines.at_start.get_or_insert(done);
        if !last && lines.last.elapsed() < LINE_EVERY {
            return;
        }
        lines.last = Instant::now();
        let seconds = lines.started.elapsed().as_secs_f64().max(0.001);
        let rate = done.saturating_sub(first) as f64 / seconds;
        let left =
            if rate > 0.0 { format!("{:.0}s left", total.saturating_sub(done) as f64 / rate) } else { String::new() };
        let tail = if last { format!("{seconds:.1}s") } else { left };
        eprintln!("{}: {done}/{total}  {rate:.1}/s  {tail}  {}", self.name, self.bar.message());
    }
}
