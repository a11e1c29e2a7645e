//! A seccomp filter as a search tree over the numbers of system calls.
//!
//! In: a verdict for each number, and one for all others. Out: a program for the kernel. What must hold: it answers what a chain of
//! comparisons answers, whatever the number and the arguments (the tests compare it with seccompiler's). Why not the chain: the
//! kernel translates a filter and asks it about every call there is each time a program starts; for the chain of our 250
//! calls that took half a millisecond, a sixth of what a sandbox costs.
use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{BpfProgram, sock_filter};

#[cfg(target_arch = "x86_64")]
const AUDIT_ARCH: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const AUDIT_ARCH: u32 = 0xC000_00B7;

/// What the kernel is to do about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    /// Answers with an error.
    Errno(u32),
    /// Allows it if one of these holds, else answers with the error.
    AnyOf(Vec<When>, u32),
}

/// What an argument's lower 32 bits must be: `argument & mask == value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct When {
    pub argument: u8,
    pub mask: u32,
    pub value: u32,
}

// linux/bpf_common.h, and the offsets of struct seccomp_data on a little-endian machine
const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const FIRST_ARGUMENT: u32 = 16;

/// The program. Calls of another architecture end the process, as their numbers mean something else.
pub fn compile(calls: &BTreeMap<c_long, Verdict>, others: &Verdict) -> BpfProgram {
    let mut program = vec![
        plain(LOAD, ARCH),
        jump(JUMP_EQUAL, AUDIT_ARCH, 1, 0),
        plain(RETURN, libc::SECCOMP_RET_KILL_PROCESS),
        plain(LOAD, NUMBER),
    ];
    program.extend(tree(&ranges(calls, others)));
    program
}

/// Verdicts by the first number they hold for.
fn ranges(calls: &BTreeMap<c_long, Verdict>, others: &Verdict) -> Vec<(u32, Verdict)> {
    let mut ranges = vec![(0, others.clone())];
    for (number, verdict) in calls.iter().filter_map(|(n, v)| Some((u32::try_from(*n).ok()?, v))) {
        ranges.pop_if(|(start, _)| *start == number); // there is no gap behind the one before
        if ranges.last().is_none_or(|(_, before)| before != verdict) {
            ranges.push((number, verdict.clone()));
        }
        ranges.push((number + 1, others.clone()));
    }
    ranges
}

fn tree(ranges: &[(u32, Verdict)]) -> BpfProgram {
    if let [(_, verdict)] = ranges {
        return leaf(verdict);
    }
    let (low, high) = ranges.split_at(ranges.len() / 2);
    let (start, low) = (high[0].0, tree(low));
    let mut program = match u8::try_from(low.len()) {
        Ok(over) => vec![jump(JUMP_AT_LEAST, start, over, 0)],
        Err(_) => vec![jump(JUMP_AT_LEAST, start, 0, 1), plain(JUMP, low.len() as u32)],
    };
    program.extend(low);
    program.extend(tree(high));
    program
}

fn leaf(verdict: &Verdict) -> BpfProgram {
    let error = |errno: u32| plain(RETURN, libc::SECCOMP_RET_ERRNO | errno);
    match verdict {
        Verdict::Allow => vec![plain(RETURN, libc::SECCOMP_RET_ALLOW)],
        Verdict::Errno(errno) => vec![error(*errno)],
        Verdict::AnyOf(whens, errno) => {
            let tests = whens.iter().flat_map(|when| {
                let load = plain(LOAD, FIRST_ARGUMENT + 8 * u32::from(when.argument));
                [
                    load,
                    plain(AND, when.mask),
                    jump(JUMP_EQUAL, when.value, 0, 1),
                    plain(RETURN, libc::SECCOMP_RET_ALLOW),
                ]
            });
            tests.chain([error(*errno)]).collect()
        }
    }
}

fn plain(code: u16, k: u32) -> sock_filter {
    jump(code, k, 0, 0)
}

fn jump(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// What the kernel makes of a program for a call, for tests.
#[cfg(test)]
pub fn answer(program: &BpfProgram, number: u32, arguments: [u64; 6]) -> u32 {
    let word = |offset: u32| match offset {
        NUMBER => number,
        ARCH => AUDIT_ARCH,
        offset if offset >= FIRST_ARGUMENT => {
            let (argument, high) = ((offset - FIRST_ARGUMENT) / 8, (offset - FIRST_ARGUMENT) % 8 == 4);
            (arguments[argument as usize] >> if high { 32 } else { 0 }) as u32
        }
        other => panic!("a load from {other}"),
    };
    let (mut at, mut a) = (0, 0u32);
    loop {
        let f = &program[at];
        at += 1;
        let branch = |holds: bool| usize::from(if holds { f.jt } else { f.jf });
        match f.code {
            LOAD => a = word(f.k),
            AND => a &= f.k,
            JUMP => at += f.k as usize,
            JUMP_EQUAL => at += branch(a == f.k),
            JUMP_AT_LEAST => at += branch(a >= f.k),
            0x25 => at += branch(a > f.k),
            RETURN => return f.k,
            code => panic!("instruction {code:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn verdict() -> impl Strategy<Value = Verdict> {
        let when = (0..6u8, prop_oneof![Just(u32::MAX), any::<u32>()], 0..4u32);
        let whens =
            prop::collection::vec(when.prop_map(|(argument, mask, value)| When { argument, mask, value }), 1..4);
        prop_oneof![
            Just(Verdict::Allow),
            (1..100u32).prop_map(Verdict::Errno),
            (whens, 1..100u32).prop_map(|(whens, errno)| Verdict::AnyOf(whens, errno)),
        ]
    }

    /// The verdict said in words.
    fn expected(verdict: &Verdict, arguments: [u64; 6]) -> u32 {
        let holds = |w: &When| arguments[usize::from(w.argument)] as u32 & w.mask == w.value;
        match verdict {
            Verdict::AnyOf(whens, _) if whens.iter().any(holds) => libc::SECCOMP_RET_ALLOW,
            Verdict::Allow => libc::SECCOMP_RET_ALLOW,
            Verdict::AnyOf(_, errno) | Verdict::Errno(errno) => libc::SECCOMP_RET_ERRNO | errno,
        }
    }

    proptest! {
        #[test]
        fn every_number_gets_its_verdict(
            calls in prop::collection::btree_map(0..600 as c_long, verdict(), 0..400),
            others in verdict(),
            arguments in prop::array::uniform6(prop_oneof![0..4u64, any::<u64>()]),
        ) {
            let program = compile(&calls, &others);
            prop_assert!(program.len() < 4096, "the kernel takes no more");
            for number in (0..700).chain([0x4000_0000, 0x4000_0001, u32::MAX]) {
                let verdict = calls.get(&c_long::from(number)).unwrap_or(&others);
                prop_assert_eq!(answer(&program, number, arguments), expected(verdict, arguments), "call {}", number);
            }
        }
    }
}
