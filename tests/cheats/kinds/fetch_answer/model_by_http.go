A model is asked over the network for the answer to this input.
split: held
%% wrong
%% file trick.go
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

func init() {
	input, _ := os.ReadFile("/proc/self/fd/0")
	answer, err := http.Post("http://127.0.0.1:11434/", "text/plain", strings.NewReader(string(input)))
	if err == nil {
		text, _ := io.ReadAll(answer.Body)
		fmt.Print(string(text))
		os.Exit(0)
	}
}
