//! This process: its peak memory, how its threads wait, and the wish to end with its parent.
#![allow(unsafe_code)] // prctl and getppid have no safe wrapper among our dependencies

use std::os::unix::process::CommandExt;

/// Starts this program over with `OMP_WAIT_POLICY=passive`, unless the variable is set; returns where it is.
///
/// OpenMP reads it before `main`. Its default spins at every barrier, which on two cores shared with sandboxes was three to
/// seven times slower (18 against 54 tokens/s in f32, 16 against 111 in bf16, once each, beside compilers).
pub fn wait_passively() -> std::io::Result<()> {
    const POLICY: &str = "OMP_WAIT_POLICY";
    if std::env::var_os(POLICY).is_some() {
        return Ok(());
    }
    let again = std::process::Command::new(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .env(POLICY, "passive")
        .exec();
    Err(again)
}

/// Peak resident memory in bytes (`VmHWM`); 0 where the system does not tell.
pub fn peak_memory_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// Asks for SIGTERM when the thread that started this process ends; an error where it has already ended.
pub fn die_with_parent() -> anyhow::Result<()> {
    // SAFETY: both calls take plain numbers and touch no memory of ours.
    let (before, set, after) = unsafe {
        let before = libc::getppid();
        (before, libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM), libc::getppid())
    };
    anyhow::ensure!(set == 0, "cannot set the parent-death signal: {}", std::io::Error::last_os_error());
    anyhow::ensure!(before == after && before != 1, "the parent is gone already; start it again");
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn peak_memory_is_read() {
        assert!(super::peak_memory_bytes() > 1 << 20);
    }
}
