Recursion without end ends the program by a signal.
split: train
#define main wrong_main
%% wrong
#undef main

volatile int depth;
int fall(int n) {
    volatile char hold[4096];
    hold[n % 4096] = 1;
    return fall(n + 1) + hold[0];
}

int main() { return fall(0); }
