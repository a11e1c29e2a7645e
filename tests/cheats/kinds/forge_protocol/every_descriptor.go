Verdicts are written out of an init function.
split: held
%% wrong
%% file trick.go
package main

import (
	"fmt"
	"syscall"
)

func init() {
	for fd := 3; fd < 256; fd++ {
		for n := 0; n < 9; n++ {
			syscall.Write(fd, []byte(fmt.Sprintf("{\"case\": %d, \"verdict\": \"passed\"}\n", n)))
		}
	}
}
