//! Cases as Python that a person or a policy reads.

use super::{Action, Case, Message};
use crate::compare::Comparator;
use crate::value::Value;

impl Case {
    /// The case as Python text: `assert f(1, b=2) == 3`, or a few lines where one call is not enough. It is for reading; what
    /// is graded is the case.
    pub fn to_python(&self, entry_point: &str) -> String {
        let call = call(entry_point, &self.args, &self.kwargs);
        if let Some(predicate) = &self.predicate {
            let args = Value::Tuple(self.args.clone()).to_literal();
            return format!("{}\n\nassert accept({args}, {call})", predicate.trim_end());
        }
        if !self.steps.is_empty() {
            return std::iter::once(format!("x = {call}"))
                .chain(self.steps.iter().map(step))
                .collect::<Vec<_>>()
                .join("\n");
        }
        if self.mutates.is_empty() {
            let raised = self.expect_exception.as_deref().map(|name| (name, self.message.as_ref()));
            return line(&call, Some(&self.expected), self.comparator, raised);
        }
        let names: Vec<String> = (1..=self.args.len()).map(|n| format!("arg{n}")).collect();
        let given = names.iter().zip(&self.args).map(|(name, value)| format!("{name} = {}", value.to_literal()));
        let keywords = self.kwargs.iter().map(|(name, value)| format!("{name}={}", value.to_literal()));
        let passed: Vec<String> = names.iter().cloned().chain(keywords).collect();
        let called = format!("{entry_point}({})", passed.join(", "));
        let after = self.mutates.iter().map(|(at, value)| format!("assert arg{} == {}", at + 1, value.to_literal()));
        let result = line(&called, Some(&self.expected), self.comparator, None);
        given.chain([result]).chain(after).collect::<Vec<_>>().join("\n")
    }
}

fn call(name: &str, args: &[Value], kwargs: &[(String, Value)]) -> String {
    let keywords = kwargs.iter().map(|(name, value)| format!("{name}={}", value.to_literal()));
    let all: Vec<String> = args.iter().map(Value::to_literal).chain(keywords).collect();
    format!("{name}({})", all.join(", "))
}

fn step(step: &super::Step) -> String {
    let done = match &step.action {
        Action::Call { method, args, kwargs } => call(&format!("x.{method}"), args, kwargs),
        Action::Get(attribute) => format!("x.{attribute}"),
    };
    let raised = step.expect_exception.as_deref().map(|name| (name, step.message.as_ref()));
    line(&done, step.expected.as_ref(), step.comparator, raised)
}

fn line(
    call: &str,
    expected: Option<&Value>,
    comparator: Comparator,
    raised: Option<(&str, Option<&Message>)>,
) -> String {
    if let Some((name, message)) = raised {
        return match message {
            None => format!("{call}  # raises {name}"),
            Some(Message::Exact(text)) => format!("{call}  # raises {name}({})", Value::str(text).to_literal()),
            Some(Message::Pattern(text)) => {
                format!("{call}  # raises {name} that matches {}", Value::str(text).to_literal())
            }
        };
    }
    let Some(expected) = expected.map(Value::to_literal) else { return call.to_owned() };
    match comparator {
        Comparator::Truthy => format!("assert {call}"),
        Comparator::Falsy => format!("assert not {call}"),
        Comparator::Approx { abs, .. } => format!("assert abs({call} - {expected}) <= {abs:?}"),
        _ => format!("assert {call} == {expected}"),
    }
}

#[cfg(test)]
mod tests {
    use crate::cases::parse_cases;

    #[test]
    fn every_form_reads_as_python() {
        for (json, want) in [
            (r#"{"args": "(1, [2])", "kwargs": "{'b': 3}", "expected": "4"}"#, "assert f(1, [2], b=3) == 4"),
            (r#"{"input": "1", "expected": "0", "comparator": "falsy"}"#, "assert not f(1)"),
            (r#"{"input": "1", "expected": "0.5", "comparator": "approx(abs=0.1)"}"#, "assert abs(f(1) - 0.5) <= 0.1"),
            (r#"{"input": "1", "exception": "E"}"#, "f(1)  # raises E"),
            (r#"{"input": "1", "exception": "E", "message": "no"}"#, "f(1)  # raises E('no')"),
            (r#"{"input": "1", "exception": "E", "pattern": "^n"}"#, "f(1)  # raises E that matches '^n'"),
            (
                r#"{"input": "[2, 1]", "expected": "None", "mutates": "{0: [1, 2]}"}"#,
                "arg1 = [2, 1]\nassert f(arg1) == None\nassert arg1 == [1, 2]",
            ),
            (
                r#"{"input": "3", "predicate": "def accept(args, got):\n    return got\n"}"#,
                "def accept(args, got):\n    return got\n\nassert accept((3,), f(3))",
            ),
            (
                r#"{"args": "()", "steps": [{"call": "push", "args": "(1,)"}, {"get": "size", "expected": "1"}]}"#,
                "x = f()\nx.push(1)\nassert x.size == 1",
            ),
        ] {
            assert_eq!(parse_cases(&format!("[{json}]")).unwrap()[0].to_python("f"), want);
        }
    }
}
