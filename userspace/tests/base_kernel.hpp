// SPDX-License-Identifier: MIT
// Which kernel the tests run on: "make test KERNEL=stock" boots the base's, without the
// series. The caller of the tests knows it, and sets KERNEL. If the kernel itself were
// asked, a defect of the series could pass for a kernel without it.
#pragma once

#include <cstdlib>
#include <string_view>

namespace sluice {

/// Whether this kernel has no patches.
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
