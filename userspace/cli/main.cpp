// SPDX-License-Identifier: MIT
#include <iostream>

#include "program.hpp"

int main(int argc, char **argv)
{
	return sluice::cli::run_program(argc, argv, std::cout, std::cerr);
}
