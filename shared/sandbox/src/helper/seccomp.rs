//! The system calls a sandboxed program may make: an allow list that CPython, sh and ordinary programs need.
//!
//! One list, two forms: BPF programs for the `namespaces` backend, and a profile in Docker's JSON for container daemons.
//! Everything else answers EPERM. clone3 answers ENOSYS, so that libc falls back to clone, whose flags a filter can see.
//! Not here on purpose: ptrace, process_vm_*, kcmp, pidfd_getfd (other processes); mount and its kin, chroot, unshare,
//! setns (namespaces); bpf, perf, keyctl, io_uring, userfaultfd (attack surface); memfd and SysV memory, queues and
//! semaphores (they escape a watcher and disk limits); sync (all disks of the host).
use std::collections::BTreeMap;

use libc::{EPERM, c_long};
use seccompiler::{BpfProgram, Error, TargetArch};
use serde_json::{Value, json};

use super::bpf::{self, Verdict, When};

const NAMESPACE_FLAGS: u32 = (libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u32;

#[cfg(target_arch = "x86_64")]
pub const ARCH: (TargetArch, &str) = (TargetArch::x86_64, "SCMP_ARCH_X86_64");
#[cfg(target_arch = "aarch64")]
pub const ARCH: (TargetArch, &str) = (TargetArch::aarch64, "SCMP_ARCH_AARCH64");

/// A system call: its name after `SYS_`, and its number here.
type Call = (&'static str, c_long);

macro_rules! calls {
    ($($name:ident)*) => { [$((stringify!($name).split_at(4).1, libc::$name)),*] };
}

/// Allowed whatever the arguments, on every architecture.
fn common() -> Vec<Call> {
    calls! {
        // files
        SYS_read SYS_write SYS_readv SYS_writev SYS_pread64 SYS_pwrite64 SYS_preadv SYS_pwritev SYS_preadv2 SYS_pwritev2
        SYS_openat SYS_openat2 SYS_close SYS_close_range SYS_lseek SYS_fstat SYS_newfstatat SYS_statx SYS_statfs
        SYS_fstatfs SYS_faccessat SYS_faccessat2 SYS_readlinkat SYS_getdents64 SYS_getcwd SYS_chdir SYS_fchdir SYS_mkdirat
        SYS_unlinkat SYS_renameat2 SYS_linkat SYS_symlinkat SYS_mknodat SYS_fchmod SYS_fchmodat SYS_fchown
        SYS_fchownat SYS_utimensat SYS_truncate SYS_ftruncate SYS_fallocate SYS_fsync SYS_fdatasync SYS_syncfs
        SYS_sync_file_range SYS_fadvise64 SYS_readahead SYS_flock SYS_fcntl SYS_ioctl SYS_dup SYS_dup3 SYS_pipe2 SYS_umask
        SYS_sendfile SYS_splice SYS_tee SYS_copy_file_range SYS_getxattr SYS_lgetxattr SYS_fgetxattr SYS_listxattr
        SYS_llistxattr SYS_flistxattr SYS_inotify_init1 SYS_inotify_add_watch SYS_inotify_rm_watch
        // waiting
        SYS_ppoll SYS_pselect6 SYS_epoll_create1 SYS_epoll_ctl SYS_epoll_pwait SYS_epoll_pwait2 SYS_eventfd2 SYS_signalfd4
        SYS_timerfd_create SYS_timerfd_settime SYS_timerfd_gettime SYS_nanosleep SYS_clock_nanosleep SYS_restart_syscall
        // memory
        SYS_brk SYS_mmap SYS_munmap SYS_mremap SYS_mprotect SYS_madvise SYS_msync SYS_mincore SYS_mlock SYS_mlock2
        SYS_munlock SYS_mlockall SYS_munlockall SYS_membarrier SYS_pkey_alloc SYS_pkey_free SYS_pkey_mprotect
        // processes, threads, signals
        SYS_clone3 SYS_execve SYS_execveat SYS_exit SYS_exit_group SYS_wait4 SYS_waitid SYS_kill SYS_tkill SYS_tgkill
        SYS_rt_sigaction SYS_rt_sigprocmask SYS_rt_sigpending SYS_rt_sigqueueinfo SYS_rt_sigreturn SYS_rt_sigsuspend
        SYS_rt_sigtimedwait SYS_rt_tgsigqueueinfo SYS_sigaltstack SYS_set_tid_address SYS_set_robust_list
        SYS_get_robust_list SYS_futex SYS_rseq SYS_getpid SYS_getppid SYS_gettid SYS_getpgid SYS_setpgid SYS_getsid
        SYS_setsid SYS_pidfd_open SYS_pidfd_send_signal SYS_prctl SYS_prlimit64 SYS_getrlimit SYS_setrlimit SYS_getrusage
        SYS_times SYS_getpriority SYS_setpriority SYS_sched_yield SYS_sched_getaffinity SYS_sched_setaffinity
        SYS_sched_getparam SYS_sched_setparam SYS_sched_getscheduler SYS_sched_setscheduler SYS_sched_get_priority_max
        SYS_sched_get_priority_min SYS_sched_rr_get_interval SYS_sched_getattr SYS_getcpu SYS_capget
        SYS_getuid SYS_geteuid SYS_getgid SYS_getegid SYS_getresuid SYS_getresgid SYS_getgroups SYS_setuid SYS_setgid
        SYS_setreuid SYS_setregid SYS_setresuid SYS_setresgid
        // time and the machine
        SYS_clock_gettime SYS_clock_getres SYS_gettimeofday SYS_getitimer SYS_setitimer SYS_timer_create SYS_timer_delete
        SYS_timer_settime SYS_timer_gettime SYS_timer_getoverrun SYS_uname SYS_sysinfo SYS_getrandom
        // sockets, which reach nothing but this sandbox
        SYS_bind SYS_listen SYS_accept SYS_accept4 SYS_connect SYS_getsockname SYS_getpeername SYS_sendto SYS_recvfrom
        SYS_sendmsg SYS_recvmsg SYS_sendmmsg SYS_recvmmsg SYS_setsockopt SYS_getsockopt SYS_shutdown
    }
    .to_vec()
}

/// The older calls that only x86-64 still has.
#[cfg(target_arch = "x86_64")]
fn legacy() -> Vec<Call> {
    calls! {
        SYS_open SYS_creat SYS_stat SYS_lstat SYS_access SYS_readlink SYS_getdents SYS_mkdir SYS_rmdir SYS_unlink
        SYS_rename SYS_renameat SYS_link SYS_symlink SYS_mknod SYS_chmod SYS_chown SYS_lchown SYS_utime SYS_utimes
        SYS_futimesat SYS_dup2 SYS_pipe SYS_poll SYS_select SYS_epoll_create SYS_epoll_wait SYS_eventfd SYS_signalfd
        SYS_inotify_init SYS_fork SYS_vfork SYS_getpgrp SYS_alarm SYS_pause SYS_time SYS_arch_prctl
    }
    .to_vec()
}

#[cfg(target_arch = "aarch64")]
fn legacy() -> Vec<Call> {
    calls! { SYS_renameat }.to_vec()
}

/// Allowed only with one of the arguments said here.
fn conditional() -> Vec<(Call, Vec<When>)> {
    let first = |value: u32| When { argument: 0, mask: u32::MAX, value };
    let family = |f: libc::c_int| first(f as u32);
    let [socket, socketpair, clone, personality] = calls! { SYS_socket SYS_socketpair SYS_clone SYS_personality };
    vec![
        // AF_VSOCK, among others, ignores network namespaces
        (socket, vec![family(libc::AF_UNIX), family(libc::AF_INET), family(libc::AF_INET6)]),
        (socketpair, vec![family(libc::AF_UNIX)]),
        (clone, vec![When { argument: 0, mask: NAMESPACE_FLAGS, value: 0 }]),
        (personality, vec![first(0), first(u32::MAX)]),
    ]
}

/// The filter of a sandboxed program.
pub fn filter() -> BpfProgram {
    let mut calls: BTreeMap<c_long, Verdict> = BTreeMap::new();
    calls.extend(common().into_iter().chain(legacy()).map(|(_, number)| (number, Verdict::Allow)));
    calls.insert(libc::SYS_clone3, Verdict::Errno(libc::ENOSYS as u32));
    calls.extend(conditional().into_iter().map(|((_, number), whens)| (number, Verdict::AnyOf(whens, EPERM as u32))));
    bpf::compile(&calls, &Verdict::Errno(EPERM as u32))
}

/// A filter as the kernel reads it, in hexadecimal.
pub fn hex(filter: &BpfProgram) -> String {
    let bytes = filter.iter().flat_map(|f| {
        let (code, k) = (f.code.to_ne_bytes(), f.k.to_ne_bytes());
        [code[0], code[1], f.jt, f.jf, k[0], k[1], k[2], k[3]]
    });
    bytes.map(|b| format!("{b:02x}")).collect()
}

/// The same list as a seccomp profile in Docker's JSON, which Podman reads too.
pub fn docker_profile() -> String {
    let names = common().into_iter().chain(legacy()).map(|(name, _)| name).filter(|name| *name != "clone3");
    let mut rules = vec![
        json!({"names": names.collect::<Vec<_>>(), "action": "SCMP_ACT_ALLOW"}),
        json!({"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": libc::ENOSYS}),
    ];
    for ((name, _), whens) in conditional() {
        rules.extend(whens.into_iter().map(|when| conditional_rule(name, when)));
    }
    json!({
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": EPERM,
        "architectures": [ARCH.1],
        "syscalls": rules,
    })
    .to_string()
}

fn conditional_rule(name: &str, when: When) -> Value {
    // of a masked comparison `value` is the mask
    let argument =
        json!({"index": when.argument, "value": when.mask, "valueTwo": when.value, "op": "SCMP_CMP_MASKED_EQ"});
    json!({"names": [name], "action": "SCMP_ACT_ALLOW", "args": [argument]})
}

/// Applies the filter to this process for good.
pub fn apply(filter: &BpfProgram) -> Result<(), Error> {
    seccompiler::apply_filter(filter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use libc::c_int;
    use seccompiler::{SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule};

    #[test]
    fn what_escapes_limits_or_namespaces_is_not_listed() {
        let all: Vec<Call> = common().into_iter().chain(legacy()).collect();
        let denied = calls! {
            SYS_ptrace SYS_process_vm_readv SYS_process_vm_writev SYS_kcmp SYS_pidfd_getfd SYS_mount SYS_umount2
            SYS_pivot_root SYS_chroot SYS_unshare SYS_setns SYS_bpf SYS_perf_event_open SYS_keyctl SYS_add_key
            SYS_request_key SYS_io_uring_setup SYS_userfaultfd SYS_memfd_create SYS_shmget SYS_shmat SYS_semget SYS_msgget
            SYS_mq_open SYS_socket SYS_clone SYS_open_by_handle_at SYS_init_module SYS_finit_module SYS_kexec_load
            SYS_reboot SYS_swapon SYS_sync SYS_seccomp SYS_capset SYS_fsopen SYS_move_mount SYS_open_tree
        };
        for call in denied {
            assert!(!all.contains(&call), "system call {} is allowed", call.0);
        }
    }

    /// The same list through seccompiler, which knows no second error: clone3 has a filter of its own.
    fn by_seccompiler() -> [BpfProgram; 2] {
        let rule = |when: When| {
            let op = SeccompCmpOp::MaskedEq(when.mask.into());
            let condition = SeccompCondition::new(when.argument, SeccompCmpArgLen::Dword, op, when.value.into());
            SeccompRule::new(vec![condition.unwrap()]).unwrap()
        };
        let mut allowed: BTreeMap<c_long, Vec<SeccompRule>> = BTreeMap::new();
        allowed.extend(common().into_iter().chain(legacy()).map(|(_, number)| (number, vec![])));
        allowed.extend(
            conditional().into_iter().map(|((_, number), whens)| (number, whens.into_iter().map(rule).collect())),
        );
        let filter =
            |calls, others, these| SeccompFilter::new(calls, others, these, ARCH.0).unwrap().try_into().unwrap();
        let clone3 = BTreeMap::from([(libc::SYS_clone3, vec![])]);
        let refused = |errno: c_int| SeccompAction::Errno(errno as u32);
        [
            filter(clone3, SeccompAction::Allow, refused(libc::ENOSYS)),
            filter(allowed, refused(EPERM), SeccompAction::Allow),
        ]
    }

    #[test]
    fn the_filter_answers_what_a_chain_of_comparisons_does() {
        let (ours, [clone3, main]) = (filter(), by_seccompiler());
        let values = (0..64).map(|bit| 1u64 << bit).chain([0, 3, 17, 0x7e02_0000, u64::MAX, u64::from(u32::MAX)]);
        let values: Vec<u64> = values.chain((0..50).map(|family| family | 0xff << 32)).collect();
        for number in (0..600).chain([0x4000_0000, 0x4000_0038, u32::MAX]) {
            for value in &values {
                let arguments = [*value, 1, 2, 3, 4, 5];
                let [first, second] = [&clone3, &main].map(|filter| bpf::answer(filter, number, arguments));
                // of several filters the most severe answer counts, which is the smallest as a signed number
                let chain = if (first as i32) <= (second as i32) { first } else { second };
                assert_eq!(bpf::answer(&ours, number, arguments), chain, "call {number} of {value:#x}");
            }
        }
        let number = libc::SYS_clone3 as u32;
        assert_ne!(bpf::answer(&ours, number, [0; 6]), bpf::answer(&main, number, [0; 6]), "a control");
    }

    #[test]
    fn the_profile_for_docker_says_the_same() {
        let profile: Value = serde_json::from_str(&docker_profile()).unwrap();
        let rules = profile["syscalls"].as_array().unwrap();
        let plain: Vec<&str> = rules[0]["names"].as_array().unwrap().iter().map(|n| n.as_str().unwrap()).collect();
        assert_eq!(plain.len() + 1, common().len() + legacy().len(), "all but clone3");
        assert!(plain.contains(&"openat") && !plain.contains(&"socket") && !plain.contains(&"clone3"));
        assert_eq!(rules[1], json!({"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": libc::ENOSYS}));
        let conditions: usize = conditional().iter().map(|(_, whens)| whens.len()).sum();
        assert_eq!(rules.len(), 2 + conditions);
        assert!(rules[2..].iter().all(|r| r["args"][0]["op"] == "SCMP_CMP_MASKED_EQ"));
        assert_eq!(profile["defaultAction"], "SCMP_ACT_ERRNO");
    }
}
