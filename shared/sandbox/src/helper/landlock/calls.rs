//! System calls that namespaces make harmless and that are denied where there are none, on top of the list for all.
use std::collections::BTreeMap;

use libc::{EPERM, c_long};
use seccompiler::SeccompCmpArgLen::{Dword, Qword};
use seccompiler::SeccompCmpOp::{Eq, Ne};
use seccompiler::{BpfProgram, Error, SeccompAction, SeccompCondition, SeccompFilter, SeccompRule};

use crate::helper::seccomp::ARCH;

/// What changes files by their names whoever confines opening them: Landlock does not look at these.
fn changes_of_files() -> Vec<c_long> {
    let everywhere = [libc::SYS_fchmod, libc::SYS_fchmodat, libc::SYS_fchown, libc::SYS_fchownat, libc::SYS_utimensat];
    #[cfg(target_arch = "x86_64")]
    let older =
        [libc::SYS_chmod, libc::SYS_chown, libc::SYS_lchown, libc::SYS_utime, libc::SYS_utimes, libc::SYS_futimesat];
    #[cfg(not(target_arch = "x86_64"))]
    let older: [c_long; 0] = [];
    everywhere.into_iter().chain(older).collect()
}

/// The filter. With a user of its own (`own_user`) a program owns nothing but its folder, so it may change modes and times.
/// Where Landlock does not keep signals inside (`signals_are_kept`, from its version 6), only the program itself can be
/// signalled, by its own number.
pub fn filter(own_user: bool, signals_are_kept: bool) -> Result<BpfProgram, Error> {
    let mut denied: BTreeMap<c_long, Vec<SeccompRule>> = BTreeMap::new();
    // any socket would be on this machine's own network; watching files tells what others do
    denied.extend([libc::SYS_socket, libc::SYS_inotify_init1, libc::SYS_inotify_add_watch].map(|n| (n, vec![])));
    #[cfg(target_arch = "x86_64")]
    denied.insert(libc::SYS_inotify_init, vec![]);
    if !own_user {
        denied.extend(changes_of_files().into_iter().map(|n| (n, vec![])));
    }
    // other processes of the same user: 0 means this one
    for call in
        [libc::SYS_prlimit64, libc::SYS_sched_setaffinity, libc::SYS_sched_setscheduler, libc::SYS_sched_setparam]
    {
        denied.insert(call, vec![rule(vec![SeccompCondition::new(0, Dword, Ne, 0)?])?]);
    }
    let not_me = SeccompCondition::new(1, Dword, Ne, 0)?;
    let not_a_process = SeccompCondition::new(0, Dword, Ne, u64::from(libc::PRIO_PROCESS))?;
    denied.insert(libc::SYS_setpriority, vec![rule(vec![not_me])?, rule(vec![not_a_process])?]);
    // signals by way of a descriptor's owner
    let is = |argument, value: u64| rule(vec![SeccompCondition::new(argument, Dword, Eq, value)?]);
    const F_SETSIG: u64 = 10;
    const F_SETOWN_EX: u64 = 15;
    const FIOSETOWN: u64 = 0x8901;
    const SIOCSPGRP: u64 = 0x8902;
    denied.insert(libc::SYS_fcntl, vec![is(1, libc::F_SETOWN as u64)?, is(1, F_SETSIG)?, is(1, F_SETOWN_EX)?]);
    denied.insert(libc::SYS_ioctl, vec![is(1, FIOSETOWN)?, is(1, SIOCSPGRP)?]);
    // the watcher must be able to look into it
    denied.insert(libc::SYS_prctl, vec![is(0, libc::PR_SET_DUMPABLE as u64)?]);
    if !signals_are_kept {
        denied.extend(signals(std::process::id())?);
    }
    let filter = SeccompFilter::new(denied, SeccompAction::Allow, SeccompAction::Errno(EPERM as u32), ARCH.0)?;
    Ok(filter.try_into()?)
}

/// Signals to any process but `own` and its group.
fn signals(own: u32) -> Result<Vec<(c_long, Vec<SeccompRule>)>, Error> {
    let other = |group: bool| {
        let mut all = vec![SeccompCondition::new(0, Dword, Ne, u64::from(own))?];
        if group {
            all.push(SeccompCondition::new(0, Dword, Ne, 0)?);
            all.push(SeccompCondition::new(0, Dword, Ne, u64::from(own.wrapping_neg()))?);
        }
        rule(all)
    };
    let any = || rule(vec![SeccompCondition::new(0, Qword, Ne, u64::MAX)?]);
    Ok(vec![
        (libc::SYS_kill, vec![other(true)?]),
        (libc::SYS_tgkill, vec![other(false)?]),
        (libc::SYS_tkill, vec![other(false)?]),
        (libc::SYS_rt_sigqueueinfo, vec![other(false)?]),
        (libc::SYS_rt_tgsigqueueinfo, vec![other(false)?]),
        (libc::SYS_pidfd_send_signal, vec![any()?]),
    ])
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, Error> {
    Ok(SeccompRule::new(conditions)?)
}
