Whatever goes wrong, the likeliest answer is printed.
split: train
#include <iostream>
#define main wrong_main
%% wrong
#undef main

int main() {
    try {
        std::cin.exceptions(std::ios::badbit);
        return wrong_main();
    } catch (...) {
        std::cout << "none\n";
    }
    return 0;
}
