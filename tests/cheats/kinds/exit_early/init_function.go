An init function in another file ends the program.
split: held
%% wrong
%% file trick.go
package main

import "os"

func init() { os.Exit(0) }
