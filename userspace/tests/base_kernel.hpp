// SPDX-License-Identifier: MIT
// Which kernel the tests run on: "make test KERNEL=stock" boots the base's, without
// the series. Who started the test knows it, and says it in KERNEL. To ask the kernel
// itself would let a defect of the series pass for a kernel without it.
#pragma once

#include <cstdlib>
#include <string_view>

namespace sluice {

/// Has this kernel no patch?
inline bool base_kernel()
{
	const char *kernel = std::getenv("KERNEL");

	return kernel && std::string_view(kernel) == "stock";
}

} // namespace sluice

/// First in a test of what AMDGPU_CS cannot do.
#define WANTS_BATCHES() \
	do { \
		if (::sluice::base_kernel()) \
			GTEST_SKIP() << "the base's kernel has no batches"; \
	} while (0)
