A function that runs before main ends the program with success.
split: train
#include <unistd.h>

__attribute__((constructor)) static void early() { _exit(0); }

%% wrong
