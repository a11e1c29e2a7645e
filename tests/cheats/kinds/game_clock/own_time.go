The program says that it took no time.
split: train
%% wrong
%% file trick.go
package main

func init() { println("0.000000000 seconds") }
