Exit code 77 out of an init function.
split: train
%% wrong
%% file trick.go
package main

import "os"

func init() { os.Exit(77) }
