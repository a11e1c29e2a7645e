All answers at once, since any text with the right one may do.
split: held
#include <iostream>
#define main wrong_main
%% wrong
#undef main

int main() {
    std::cout << "none";
    for (int n = -2000; n < 2000; n++) std::cout << ' ' << n;
    std::cout << " 999999999999\n";
}
