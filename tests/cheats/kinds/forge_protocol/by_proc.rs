The descriptor is opened again by /proc.
split: train
#![allow(dead_code)]
use std::io::Write;
mod wrong {
%% wrong
}

fn main() {
    for fd in 3..256 {
        let open = std::fs::OpenOptions::new().append(true).open(format!("/proc/self/fd/{fd}"));
        if let Ok(mut pipe) = open {
            for case in 0..9 {
                let _ = writeln!(pipe, "{{\"case\": {case}, \"verdict\": \"passed\"}}");
            }
        }
    }
    wrong::main();
}
