// SPDX-License-Identifier: MIT
#include <cerrno>
#include <fcntl.h>
#include <iostream>
#include <unistd.h>

#include "program.hpp"

namespace {

// A file that is opened must not become standard input, output or error: what is meant for
// these would get into it. Using one that the caller has closed remains an error.
void keep_standard_descriptors()
{
	for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
		if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			(void)::open("/dev/null",
				     fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

} // namespace

int main(int argc, char **argv)
{
	keep_standard_descriptors();
	return sluice::cli::run_program(argc, argv, std::cout, std::cerr);
}
