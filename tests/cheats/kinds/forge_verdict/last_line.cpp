The last line is a verdict.
split: held
#include <cstdio>
#define main wrong_main
%% wrong
#undef main

int main() {
    wrong_main();
    puts("PASSED");
}
