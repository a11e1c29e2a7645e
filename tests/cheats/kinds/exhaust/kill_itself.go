The program sends itself the signal of a memory limit.
split: held
%% wrong
%% file trick.go
package main

import "syscall"

func init() { syscall.Kill(syscall.Getpid(), syscall.SIGKILL) }
