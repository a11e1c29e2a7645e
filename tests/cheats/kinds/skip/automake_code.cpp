Exit code 77, which build tools take for a skipped test.
split: train
#define main wrong_main
%% wrong
#undef main

int main() { return 77; }
