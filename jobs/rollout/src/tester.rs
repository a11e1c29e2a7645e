//! Visible tests of one task, run in the sandbox while the policy acts.

use crate::act::{Tested, Tester, TesterError};
use async_trait::async_trait;
use rollmill_grader::{GradeError, Suite, T0Options};
use rollmill_policy::endpoint::Next;
use rollmill_sandbox::Sandbox;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Semaphore;

/// Runs the visible tests of one task.
pub struct VisibleTests {
    /// Where code runs.
    pub sandbox: Arc<dyn Sandbox>,
    /// Sandboxes at once on this machine: more than cores would turn honest solutions into time-outs.
    pub places: Arc<Semaphore>,
    /// The tests a policy may see.
    pub suite: Arc<Suite>,
    /// Limits.
    pub options: T0Options,
}

#[async_trait]
impl Tester for VisibleTests {
    async fn test(&self, code: &str) -> Result<Tested, TesterError> {
        let gone = |e: String| TesterError { message: e, next: Next::Stop };
        let _place = self.places.acquire().await.map_err(|e| gone(e.to_string()))?;
        let (sandbox, suite, options) = (self.sandbox.clone(), self.suite.clone(), self.options.clone());
        let solution = suite.solution(code);
        let started = Instant::now();
        let work = move || suite.grade(sandbox.as_ref(), &solution, &options);
        let graded = tokio::task::spawn_blocking(work).await.map_err(|e| gone(e.to_string()))?;
        let result = graded.map_err(|e| TesterError { message: e.to_string(), next: next(&e) })?;
        Ok(Tested {
            passed: result.compiled && result.import_error.is_none() && result.passed == result.total,
            text: self.suite.visible_output(&result),
            ms: started.elapsed().as_millis() as u64,
            facts: serde_json::json!({ "passed": result.passed, "total": result.total }),
        })
    }
}

fn next(e: &GradeError) -> Next {
    match e {
        GradeError::Arguments { .. } | GradeError::Task(_) => Next::GiveUpItem,
        e if e.is_transient() => Next::Retry,
        _ => Next::Stop,
    }
}
